/* SPDX-License-Identifier: Apache-2.0
 * Programs that lock themselves in (seccomp) after they have started.
 *
 * Such a filter may end the process at a system call that it did not expect. It expects what the program and the driver
 * do, not that a memfd is made or a socket connected. So once a filter has come that was not there when we were
 * loaded, the recorder makes no such calls anymore: what it has mapped is still written, but nothing new is requested.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "rec.h"

#define COUNT_UNKNOWN (-1)

static struct { int mode; long filters; } loaded;

/* How many filters this thread has (Linux 5.9). */
static long filters_now(void)
{
	static const char word[] = "Seccomp_filters:";
	char text[2048];
	const char *line;

	rec_read_file("/proc/thread-self/status", text, sizeof(text));
	line = strstr(text, word);
	return line ? strtol(line + strlen(word), NULL, 10) : COUNT_UNKNOWN;
}

/* Nearly always there is no filter, or we are in a container and there is one all the time. */
void sandbox_load(void)
{
	loaded.mode = prctl(PR_GET_SECCOMP);
	loaded.filters = loaded.mode > 0 ? filters_now() : 0;
}

bool sandbox_is_new(void)
{
	int mode = prctl(PR_GET_SECCOMP);
	long n;

	if (likely(mode <= 0))
		return false;
	if (mode != loaded.mode)
		return true;
	n = filters_now();
	return n != COUNT_UNKNOWN && loaded.filters != COUNT_UNKNOWN && n != loaded.filters;
}
