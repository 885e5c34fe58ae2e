/* SPDX-License-Identifier: Apache-2.0
 * See memory_pid.h.
 */
#include "cmd/memory_pid.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/progress.h"
#include "base/str.h"
#include "case/case.h"
#include "cmd/cmd.h"
#include "cuwhy/format.h"
#include "find/failure/observe.h"
#include "find/memory/holders.h"
#include "read/live/look.h"
#include "read/recording/live.h"
#include "read/recording/trace.h"
#include "show/memory_holders.h"

#define SEARCH_NS	2000000000u
#define EVERY_MS	5000

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

static int not_recorded(pid_t pid, struct err *e)
{
	if (kill(pid, 0) != 0 && errno == ESRCH)
		return look_refused(pid, -ESRCH, "memory", e);
	err_set(e, -ENOENT, "process %d is not recorded: its tensors are not known", (int)pid);
	return err_hint(e, "start it with: cuwhy run PROGRAM; which processes use the GPUs: cuwhy memory");
}

/* The recording of one of those under `cuwhy run`; NULL with `e` filled. */
static struct trace *find_recording(pid_t pid, struct err *e)
{
	struct trace *t = NULL;
	struct live *list;
	size_t n = live_list(&list);

	for (size_t i = 0; i < n; i++)
		if (list[i].pid == pid) {
			t = list[i].trace;
			list[i].trace = NULL;
		}
	live_free(list, n);
	if (!t)
		not_recorded(pid, e);
	return t;
}

static void show(const struct holders *found, pid_t pid, struct trace *t, uint64_t took_ns, bool json, struct pool *pool)
{
	struct casefile *c = xcalloc(1, sizeof(*c));
	struct memory_holders m = {.pid = pid, .trace = t, .c = c, .found = found, .took_ns = took_ns};
	struct cw_holders *kept = xcalloc(1, sizeof(*kept));

	case_init(c, pool);
	holders_keep(kept, found);
	holders_seen(c, t, kept);
	if (json)
		json_print(stdout, memory_holders_json(&m));
	else
		memory_holders_print(stdout, &m);
	fflush(stdout);
	free(kept);
	free(c);
}

static int look(pid_t pid, bool json, struct err *e)
{
	struct trace *t = find_recording(pid, e);
	uint64_t now = proc_mono_ns();
	struct holders_ask ask = {.pid = pid, .running = true, .for_ns = SEARCH_NS, .until_ns = now + SEARCH_NS};
	struct holders found;
	struct pool pool = {0};
	int rc = 0;

	if (!t)
		return e->code;
	holders_ask_of(&ask, t);
	holders_find(&found, &ask, &pool);
	if (found.refused)
		rc = look_refused(pid, found.refused, "memory", e);
	else
		show(&found, pid, t, proc_mono_ns() - now, json, &pool);
	pool_release(&pool);
	trace_free(t);
	return rc;
}

/* Until Ctrl-C, or the program ends. */
static void keep_looking(pid_t pid, bool json)
{
	struct sigaction act = {.sa_handler = on_interrupt};	/* without SA_RESTART: waiting ends at once */
	struct err e = {0};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	for (bool more = true; more && !ferror(stdout);) {
		poll(NULL, 0, EVERY_MS);
		if (interrupted)
			return;
		if (!json)
			putchar('\n');
		more = look(pid, json, &e) == 0 && !interrupted;
	}
}

int memory_of_pid(const char *words, bool json, bool watch)
{
	struct err e = {0};
	uint64_t pid;
	int rc = 0;

	if (!str_u64(words, &pid) || !pid || pid > INT32_MAX) {
		err_set(&e, -EINVAL, "--pid takes the number of a process, not '%s'", words);
		err_hint(&e, "for example: cuwhy memory --pid 4711");
		return cmd_fail(stdout, json, &e, EXIT_TROUBLE);
	}
	progress_begin("looking at process %d", (int)pid);
	rc = look((pid_t)pid, json, &e);
	progress_end();
	if (rc)
		return cmd_fail(stdout, json, &e, EXIT_TROUBLE);
	if (watch)
		keep_looking((pid_t)pid, json);
	return cmd_finish(EXIT_NOTHING);
}
