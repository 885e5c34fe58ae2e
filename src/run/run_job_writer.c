/* SPDX-License-Identifier: Apache-2.0
 * Writes to a job folder (see run_job_writer.h).
 */
#include "run/run_job_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/explain.h"
#include "run/run.h"
#include "read/rank/folder.h"
#include "read/rank/identity.h"

#define OTHERS_NS  10000000000ull	/* how long the others are waited for */
#define LOOK_NS	   250000000ull
#define TRIES	   3
#define FIRST_TRY_MS 100

/* One message: a file to write, or the last one. The text follows. */
struct message {
	uint32_t requeue, attempt;
	bool last;
	struct job_farewell farewell;
	char job[256], name[256], old[256];
};

struct writing {
	const char *dir;
	struct err why;		/* the first thing that went wrong */
};

static void writing_failed(struct writing *w, int rc, const struct err *e)
{
	if (w->why.code)
		return;
	if (e->code)
		w->why = *e;
	else
		err_set(&w->why, rc, "cannot write to the job folder '%s': %s", w->dir, strerror(-rc));
	fprintf(stderr, "cuwhy: %s\n", w->why.msg);
}

/* ESTALE: a server that restarted, a folder that was made anew elsewhere. */
static void write_file(struct writing *w, const struct message *m, const char *text, size_t n)
{
	struct job_rank r;
	struct err e = {0};
	int fd, rc = 0;

	job_rank_init(&r);
	r.job = m->job;
	r.requeue = m->requeue;
	r.attempt = m->attempt;
	for (int i = 0; i < TRIES; i++) {
		if (i)
			poll(NULL, 0, FIRST_TRY_MS << i);
		e = (struct err){0};
		fd = job_folder_open(w->dir, &r, &e);
		rc = fd < 0 ? fd : job_file_write(fd, m->name, text, n);
		if (fd >= 0 && rc == 0 && m->old[0] && strcmp(m->old, m->name) != 0)
			unlinkat(fd, m->old, 0);
		if (fd >= 0)
			close(fd);
		if (rc != -ESTALE && rc != -EIO && rc != -EINTR)
			break;
	}
	if (rc != 0)
		writing_failed(w, rc, &e);
}

static const struct job_attempt *newest(const struct job *j)
{
	return j->n_attempts ? &j->attempt[j->n_attempts - 1] : NULL;
}

/* Have all ranks of the newest attempt ended? */
static bool all_there(const char *path)
{
	struct job *j = job_folder_read(path, NULL);
	const struct job_attempt *a = j ? newest(j) : NULL;
	uint32_t world = 0, ended = 0;

	for (size_t i = 0; a && i < a->n; i++) {
		ended += a->rank[i].rank != JOB_UNKNOWN && a->rank[i].state != JOB_RUNNING;
		if (a->rank[i].world != JOB_UNKNOWN && a->rank[i].world > world)
			world = a->rank[i].world;
	}
	job_free(j);
	return ended >= world;
}

static void say_farewell(const struct writing *w, const struct message *m)
{
	char name[80];
	char *path;
	uint64_t until = proc_mono_ns() + OTHERS_NS;

	if (w->why.code)
		return;
	job_file_name(name, sizeof(name), m->job);
	path = xasprintf("%s/job-%s", w->dir, name);
	while (m->farewell.wait && !all_there(path) && proc_mono_ns() < until)
		poll(NULL, 0, (int)(LOOK_NS / 1000000));
	if (m->farewell.print)
		explain_job_end(stderr, path, &m->farewell.style);
	free(path);
}

static void writer_work(int from, const char *dir)
{
	struct writing w = {.dir = dir};
	char *bytes = xmalloc(JOB_MESSAGE_MAX);
	struct message m;
	ssize_t n;

	while ((n = recv(from, bytes, JOB_MESSAGE_MAX, 0)) >= (ssize_t)sizeof(m)) {
		memcpy(&m, bytes, sizeof(m));
		if (m.last) {
			say_farewell(&w, &m);
			break;
		}
		write_file(&w, &m, bytes + sizeof(m), (size_t)n - sizeof(m));
	}
	free(bytes);
}

void job_writer_start(struct job_writer *w, const char *dir, const struct server *s)
{
	int ends[2], room = 4 << 20;

	*w = (struct job_writer){.to = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return;
	setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	w->pid = fork();
	if (w->pid == 0) {
		close(ends[0]);
		if (s->fd >= 0)
			close(s->fd);
		if (s->spare_fd >= 0)
			close(s->spare_fd);
		prctl(PR_SET_NAME, "cuwhy-job");
		prctl(PR_SET_PDEATHSIG, 0);	/* what the keeper told it must still be written */
		writer_work(ends[1], dir);
		fflush(stderr);
		_exit(0);
	}
	close(ends[1]);
	w->to = ends[0];
	if (w->pid < 0) {
		close(w->to);
		*w = (struct job_writer){.to = -1};
	}
}

static void send_message(struct job_writer *w, const struct message *m, const char *text, size_t n)
{
	struct iovec part[] = {{(void *)(uintptr_t)m, sizeof(*m)}, {(void *)(uintptr_t)text, n}};
	struct msghdr h = {.msg_iov = part, .msg_iovlen = 2};

	if (w->to < 0)
		return;
	if (sizeof(*m) + n > JOB_MESSAGE_MAX || sendmsg(w->to, &h, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		w->lost = true;
}

void job_writer_send(struct job_writer *w, const struct job_rank *r, const char *name, const char *old, const char *text)
{
	struct message m = {.requeue = r->requeue, .attempt = r->attempt};

	str_copy(m.job, sizeof(m.job), r->job ? r->job : JOB_UNNAMED);
	str_copy(m.name, sizeof(m.name), name);
	str_copy(m.old, sizeof(m.old), old ? old : "");
	send_message(w, &m, text, strlen(text));
}

void job_writer_close(struct job_writer *w, const struct job_farewell *f)
{
	struct message m = {.last = true, .farewell = *f};

	str_copy(m.job, sizeof(m.job), f->job ? f->job : JOB_UNNAMED);
	m.farewell.job = NULL;
	send_message(w, &m, "", 0);
	if (w->to >= 0)
		close(w->to);
	w->to = -1;
}

bool job_writer_gone(struct job_writer *w)
{
	if (w->pid > 0 && waitpid(w->pid, NULL, WNOHANG) != 0)
		w->pid = 0;
	return w->pid == 0;
}

void job_writer_kill(struct job_writer *w)
{
	child_signal(w->pid, SIGKILL);
}
