/* SPDX-License-Identifier: Apache-2.0
 * Telling the user of a failure of cuwhy itself.
 */
#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "base/json_text.h"
#include "base/banned.h"

int cmd_fail(FILE *out, bool json, const struct err *e, int status)
{
	json_t *o;

	progress_end();
	if (!json) {
		fprintf(stderr, "cuwhy: %s\n", e->msg);
		if (e->hint[0])
			fprintf(stderr, "hint: %s\n", e->hint);
		return status;
	}
	o = json_pack("{s:i, s:{s:o, s:o}}", "schema", 1, "failure", "message", json_text(e->msg),
		      "hint", json_text(e->hint));
	if (o)
		json_dumpf(o, out, JSON_COMPACT);
	fputc('\n', out);
	json_decref(o);
	return out == stdout ? cmd_finish(status) : status;
}

int cmd_finish(int status)
{
	progress_end();
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "cuwhy: cannot write the answer: %s\n", strerror(errno ? errno : EIO));
	return EXIT_TROUBLE;
}
