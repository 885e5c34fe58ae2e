/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy run --hang-after`: the core dump of a GPU that is still running, asked for and waited for (see run_hang.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/run/run_hang.h"
#include "input/dump/dump.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"
#include "base/banned.h"

#define PIPE_BYTES	(1u << 20)	/* so much had to be written for a dump (R580) */
#define FEED_MS		20		/* for a driver that is slow to read them */
#define DUMP_NS		(20ull * SECOND_NS)
#define STABLE_NS	(2ull * SECOND_NS)	/* a dump that has not grown for so long is complete */
#define SETTLED_NS	(300ull * MS_NS)	/* likewise, when the call that waited has returned */

/* " (train.py:12)", or "" where the line is not known; owned by the caller. */
static char *place_text(const struct process *p, uint32_t stack)
{
	struct place at = {0};
	struct trace *t;
	size_t len;
	void *bytes = process_bytes(p, &len);
	char *text = NULL;

	t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;
	if (t && place_of_stack(t, stack, &at))
		text = xasprintf(" (%s:%u)", file_shown(at.file, trace_header(t)->cwd), at.line);
	trace_free(t);
	return text ? text : xstrdup("");
}

static void tell(const struct hang *h, const struct process *p, const struct waiters *w, uint64_t now, const char *place,
		 const char *then)
{
	if (h->quiet)
		return;
	fprintf(stderr, "cuwhy: process %d has waited %llu s for the GPU in %s%s; %s\n", (int)p->pid,
		(unsigned long long)((now - w->list[0].wait.since_ns) / SECOND_NS), api_name(w->list[0].wait.api), place,
		then);
	fflush(stderr);
}

static void tell_no_dump(const struct hang *h, const struct process *p)
{
	if (!h->quiet)
		fprintf(stderr, "cuwhy: process %d: the driver wrote no core dump within %llu s\n", (int)p->pid,
			DUMP_NS / SECOND_NS);
}

/* A name in our folder. The recording tells it, and is not trusted. */
static bool is_ours(const struct server *s, const char *path, const char *start)
{
	size_t n = s->dir ? strlen(s->dir) : 0;

	return n && strncmp(path, s->dir, n) == 0 && str_starts(path + n, start) && !strchr(path + n + 1, '/');
}

/* The pipe, open for writing; -1 when nobody listens there. Never waits. */
static int open_pipe(const struct server *s, const struct waiters *w)
{
	struct stat st;
	int fd;

	if (!is_ours(s, w->pipe_path, "/pipe-"))
		return -1;
	fd = open(w->pipe_path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* In one go, as far as the driver reads on: after a pause, what still comes would be another request. */
static void feed(int pipe)
{
	static const char bytes[65536];
	struct pollfd p = {.fd = pipe, .events = POLLOUT};
	size_t fed = 0;
	ssize_t n = 0;

	while (fed < PIPE_BYTES && n >= 0 && poll(&p, 1, FEED_MS) == 1) {
		n = write(pipe, bytes, PIPE_BYTES - fed < sizeof(bytes) ? PIPE_BYTES - fed : sizeof(bytes));
		fed += n > 0 ? (size_t)n : 0;
	}
	log_line("hang", 1, "%zu bytes written to the pipe", fed);
}

static void fill_record(struct cw_hang *r, const struct hang *h, const struct waiters *w, uint64_t now)
{
	*r = (struct cw_hang){.mono_ns = now, .flags = h->go_on ? 0 : CW_HANG_END, .n = (uint32_t)w->n};
	for (size_t i = 0; i < w->n; i++) {
		r->thread[i].tid = w->list[i].tid;
		r->thread[i].api = w->list[i].wait.api;
		r->thread[i].stack = w->list[i].wait.stack;
		r->thread[i].polls = w->list[i].polls;
		r->thread[i].waited_ns = now - w->list[i].wait.since_ns;
	}
}

/* Nobody can be asked: the waiting lines and the suspects are all there will be. */
static void go_without(const struct hang *h, struct process *p, const struct waiters *w, uint64_t now, const char *place)
{
	struct process_hang *ph = &p->hang;
	char *then = xasprintf("no core dump can be taken: %s", w->pipe_path[0] ? "the driver does not listen at its pipe"
									       : reason_text(w->pipe_reason));

	tell(h, p, w, now, place, then);
	free(then);
	ph->record.flags |= w->pipe_path[0] ? CW_HANG_NO_PIPE : 0;
	hang_write(p, &ph->record);
	ph->state = HANG_TOLD;
}

void hang_ask(const struct hang *h, const struct server *s, struct process *p, const struct waiters *w)
{
	struct process_hang *ph = &p->hang;
	char *place = place_text(p, w->list[0].wait.stack);
	uint64_t now = proc_mono_ns();

	fill_record(&ph->record, h, w, now);
	ph->first = w->list[0];
	str_copy(ph->dump_path, sizeof(ph->dump_path), is_ours(s, w->dump_path, "/core-") ? w->dump_path : "");
	/* to find the line took a moment: a wait that ended meanwhile is no hang */
	if (!waiter_still(p, &w->list[0])) {
		free(place);
		return;
	}
	ph->pipe = fs_exists(ph->dump_path) ? -1 : open_pipe(s, w);
	if (ph->pipe < 0) {
		go_without(h, p, w, now, place);
	} else {
		tell(h, p, w, now, place, "taking a core dump, which ends the kernel");
		ph->record.flags |= CW_HANG_TRIGGERED;
		hang_write(p, &ph->record);	/* before the dump: it must not be taken for a fault */
		ph->state = HANG_ASKED;
		ph->asked_ns = ph->grown_ns = now;
		feed(ph->pipe);
	}
	free(place);
}

static bool opens(const char *path)
{
	struct dump *d = dump_open(path, NULL);
	bool yes = d != NULL;

	dump_free(d);
	return yes;
}

static bool is_complete(struct process *p, uint64_t now)
{
	struct process_hang *ph = &p->hang;
	struct stat st;

	if (!ph->dump_path[0] || stat(ph->dump_path, &st) != 0 || st.st_size == 0)
		return false;
	if ((uint64_t)st.st_size != ph->size) {
		ph->size = (uint64_t)st.st_size;
		ph->grown_ns = now;
	}
	return now - ph->grown_ns >= (waiter_still(p, &ph->first) ? STABLE_NS : SETTLED_NS) && opens(ph->dump_path);
}

void hang_follow_dump(const struct hang *h, struct process *p, uint64_t now)
{
	struct process_hang *ph = &p->hang;
	bool complete = is_complete(p, now);

	if (!complete && !p->ended && now - ph->asked_ns < DUMP_NS)
		return;
	if (!complete && !ph->size) {
		ph->record.flags |= CW_HANG_NO_DUMP;
		hang_write(p, &ph->record);
		tell_no_dump(h, p);
	}
	log_line("hang", 1, "dump of %d: %llu bytes", (int)p->pid, (unsigned long long)ph->size);
	close(ph->pipe);
	ph->pipe = -1;
	ph->state = HANG_TOLD;
}
