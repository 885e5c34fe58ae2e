/* SPDX-License-Identifier: Apache-2.0
 * Reports cuwhy's own failures to the user.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/pool.h"
#include "base/proc.h"
#include "base/progress.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "read/recording/damage.h"
#include "read/recording/trace.h"

#define MEMORY_LEAST (1ull << 30)

void cmd_bound_memory(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
	uint64_t half = pages > 0 && size > 0 ? (uint64_t)pages / 2 * (uint64_t)size : MEMORY_LEAST;

	proc_limit_memory(half < MEMORY_LEAST ? MEMORY_LEAST : half);
}

int cmd_fail(FILE *out, bool json, const struct err *e, int status)
{
	static const struct err untold = {.msg = "it failed, and does not know why: that is a mistake in cuwhy"};

	if (!e || !e->msg[0])
		e = &untold;
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

void cmd_tell_damage(const struct trace *t)
{
	struct pool pool = {0};
	const char *damage = damage_words(t, &pool);

	if (damage)
		fprintf(stderr, "cuwhy: process %" PRIu32 ": %s\n", trace_header(t)->pid, damage);
	pool_release(&pool);
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
