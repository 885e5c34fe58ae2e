/* SPDX-License-Identifier: Apache-2.0
 * Reports cuwhy's own failures to the user.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/term.h"
#include "cmd/cmd.h"

#define MEMORY_LEAST ((rlim_t)1 << 30)

void cmd_bound_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	rlim_t half = pages > 0 && size > 0 ? (rlim_t)pages / 2 * (rlim_t)size : MEMORY_LEAST;
	struct rlimit limit;

	half = half < MEMORY_LEAST ? MEMORY_LEAST : half;
#ifdef __SANITIZE_ADDRESS__
	return;		/* its shadow memory is terabytes of data */
#endif
	if (getrlimit(RLIMIT_DATA, &limit) != 0 || (limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur <= half))
		return;
	limit.rlim_cur = half;
	setrlimit(RLIMIT_DATA, &limit);
}

int cmd_fail(FILE *out, bool json, const struct err *e, int status)
{
	progress_end();
	if (!json) {
		fprintf(stderr, "cuwhy: %s\n", e->msg);
		if (e->hint[0])
			fprintf(stderr, "hint: %s\n", e->hint);
		return status;
	}
	json_print(out, JSON_OF(J_INT("schema", 1),
				J_VALUE("failure", JSON_OF(J_TEXT("message", e->msg), J_TEXT("hint", e->hint)))));
	return out == stdout ? cmd_finish(status) : status;
}

int cmd_finish(int status)
{
	FILE *bytes;

	progress_end();
	if (fflush(stdout) == 0 && !ferror(stdout)) {
		bytes = term_bytes();
		if (fflush(bytes) == 0 && !ferror(bytes))
			return status;
	}
	fprintf(stderr, "cuwhy: cannot write the output: %s\n", strerror(errno ? errno : EIO));
	return EXIT_TROUBLE;
}
