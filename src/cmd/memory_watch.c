/* SPDX-License-Identifier: Apache-2.0
 * See memory_watch.h.
 */
#include "cmd/memory_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/memory_machine.h"
#include "read/recording/live.h"
#include "probe/probe.h"
#include "show/memory_live.h"

#define EVERY_NS	1000000000u

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Without SA_RESTART: waiting ends at once. */
static void watch_signals(void)
{
	struct sigaction act = {.sa_handler = on_interrupt};

	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
}

static int term_rows(void)
{
	struct winsize ws;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_row > 2 ? ws.ws_row : 24;
}

/* The bytes of as many columns. */
static size_t cut_at(const char *line, size_t len, int columns)
{
	size_t at = 0;

	for (int c = 0; at < len; at++)
		if ((line[at] & 0xc0) != 0x80 && c++ == columns)
			break;
	return at;
}

/* What does not fit is left out: lines that wrap, or scroll, would not be overwritten by the next frame. */
static void draw(const char *text, int width, int rows)
{
	FILE *raw = term_bytes();
	const char *line = text;

	fputs("\033[H", raw);
	for (int row = 0; row < rows - 1 && *line; row++) {
		size_t len = strcspn(line, "\n");

		printf("%.*s", (int)cut_at(line, len, width), line);
		raw = term_bytes();
		fputs("\033[K\n", raw);
		fflush(raw);
		line += len + (line[len] == '\n');
	}
	fputs("\033[J", raw);
	fflush(raw);
}

static void frame_show(const struct memory_frame *f, size_t top, bool terminal, bool first)
{
	int width = term_width(STDOUT_FILENO);
	char *text = NULL, stamp[32];
	time_t now = time(NULL);
	struct tm tm;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%H:%M:%S", &tm);
	fprintf(out, "%s%s\n", stamp, terminal ? "  cuwhy memory --watch; Ctrl-C ends it" : "");
	memory_frame_print(out, f, top, width);
	fclose(out);
	if (terminal && first)
		fputs("\033[2J", term_bytes());
	if (terminal)
		draw(text, width, term_rows());
	else
		printf("%s\n", text);
	free(text);
}

static void wait_until(uint64_t ns)
{
	uint64_t now = proc_mono_ns();

	while (!interrupted && now < ns) {
		poll(NULL, 0, (int)((ns - now + 999999) / 1000000));
		now = proc_mono_ns();
	}
}

struct watching {
	bool json, terminal, first;
	size_t top;
	struct usage_history history;
};

/* False: there is nothing to watch, and `e` says why. */
static bool watch_once(struct watching *w, struct err *e)
{
	struct gpu_usage *u = probe_gpus();
	struct memory_frame f = {.usage = u, .history = &w->history};
	struct live *live;
	bool any;

	f.n_live = live_list(&live);
	f.live = live;
	any = !w->first || u->n || f.n_live;
	usage_history_add(&w->history, u);
	if (!any)
		no_gpu_answer(u, e);
	else if (interrupted)
		;
	else if (w->json)
		json_print(stdout, memory_frame_json(&f));
	else
		frame_show(&f, w->top, w->terminal, w->first);
	fflush(stdout);
	w->first = false;
	live_free(live, f.n_live);
	usage_free(u);
	return any;
}

int memory_watch(bool json, size_t top)
{
	const char *term = getenv("TERM");
	struct watching *w = xcalloc(1, sizeof(*w));
	struct err e = {0};
	int status = EXIT_NOTHING;

	*w = (struct watching){.json = json, .first = true, .top = top,
			       .terminal = !json && isatty(STDOUT_FILENO) && term && strcmp(term, "dumb") != 0};
	watch_signals();
	for (uint64_t next = proc_mono_ns(); !interrupted; next += EVERY_NS) {
		uint64_t now = proc_mono_ns();

		next = next < now ? now : next;		/* a driver that answers late: no frames to catch up with */
		wait_until(next);
		if (!interrupted && !watch_once(w, &e))
			status = cmd_fail(stdout, json, &e, EXIT_TROUBLE);
		if (status != EXIT_NOTHING || ferror(stdout))
			break;
	}
	free(w);
	return status == EXIT_NOTHING ? cmd_finish(status) : status;
}
