/* SPDX-License-Identifier: Apache-2.0
 * The socket on which recorders hand over their memory.
 *
 * Every process that uses CUDA connects, sends one struct cw_hello with one memfd per segment, and
 * disconnects. We keep the descriptors: the memory outlives the process, whatever kills it. Nothing a
 * client sends is trusted, and nothing it does can make us wait.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "run/run.h"
#include "cuwhy/format.h"

#define SEGMENTS_MAX	(2 * CW_MAX_CHUNKS)
#define ACCEPT_PAUSE_NS	20000000u
#define MESSAGE_FILES	2	/* a segment, a pidfd */
#define FILES_SPARE	16	/* with fewer, those of ended processes are closed at once, not when they are judged */
#define MOVED_MAX	((size_t)1 << 30)	/* of their memory, which the keeper's limit is about */
#define OWN_FILES	8	/* for writing recordings, starting the probe */
#define FILES_ASKED	4096	/* one by one, where there is no /proc */

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

static int bind_socket(const struct sockaddr_un *a, socklen_t len)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0 || (bind(fd, (const struct sockaddr *)a, len) == 0 && listen(fd, QUEUE_MAX) == 0))
		return fd < 0 ? -errno : fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* The folder may disappear during the run: /run/user/UID does when the user logs out. A name in the abstract namespace
 * stays; recorders try it when there is no file. Another user could take it when we are gone, so they also check whose socket
 * it is. */
static int bind_spare(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	size_t n = strlen(path);
	int fd;

	if (1 + n > sizeof(a.sun_path))
		return -1;
	memcpy(a.sun_path + 1, path, n);
	fd = bind_socket(&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n));
	return fd < 0 ? -1 : fd;
}

static int try_place(struct server *s, const char *place, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *dir = fs_join(place, "cuwhy-XXXXXX"), *path = NULL;
	int rc = 0, fd = -1;

	if (strlen(dir) + sizeof("/s") > sizeof(a.sun_path))
		rc = -ENAMETOOLONG;
	else if (!mkdtemp(dir))		/* mode 0700 */
		rc = -errno;
	if (rc == 0) {
		path = fs_join(dir, "s");
		memcpy(a.sun_path, path, strlen(path) + 1);
		mark_make(&s->mark, dir, MARK_RUN_FOLDER);	/* unmarked, it is not found by a later run */
		fd = bind_socket(&a, sizeof(a));
		rc = fd < 0 ? fd : 0;
		if (rc != 0) {
			mark_release(&s->mark);
			fs_remove_dir(dir, 0);
		}
	}
	if (rc != 0) {
		err_set(e, rc, "cannot create a private folder in '%s': %s", place, strerror(-rc));
		free(dir);
		free(path);
		return rc;
	}
	s->dir = dir;
	s->path = path;
	s->fd = fd;
	s->spare_fd = bind_spare(path);
	return 0;
}

/* First a place where nobody else can ever create this folder: processes that outlive us may still have dumps written into
 * it. The state folder must be created, and may be on a network: it comes after those that are there already. XDG_RUNTIME_DIR is in
 * memory: not for dumps as large as a GPU's. */
static int try_lasting_place(struct server *s, bool on_disk)
{
	char *state = place_state();
	const char *places[] = {on_disk ? NULL : getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), state};
	size_t i;
	int rc = -ENOENT;

	for (i = 0; rc != 0 && i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i] && places[i][0] == '/' && place_trust(places[i]) == FS_NOBODY_ELSE &&
		    (places[i] != state || fs_mkdirs(state, NULL) == 0))
			rc = try_place(s, places[i], NULL);
	free(state);
	return rc;
}

static size_t count_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	for (int fd = 0; !d && fd < FILES_ASKED; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int server_open(struct server *s, bool on_disk, struct err *e)
{
	const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm"};
	struct err later = {0};
	size_t i;
	int rc;

	*s = SERVER_NONE;
	rc = try_lasting_place(s, on_disk);
	for (i = 0; rc != 0 && i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i] && places[i][0] == '/')
			rc = try_place(s, places[i], later.code ? NULL : &later);
	s->n_files = count_files();
	if (rc != 0)
		*e = later;	/* report the first place: that one should have worked */
	return rc;
}

void server_close(struct server *s)
{
	size_t i;

	for (i = 0; i < s->n_clients; i++)
		close(s->client[i]);
	for (i = 0; i < s->n_processes; i++)
		process_free(s->process[i]);
	free(s->client);
	free(s->process);
	if (s->fd >= 0)
		close(s->fd);
	if (s->spare_fd >= 0)
		close(s->spare_fd);
	mark_release(&s->mark);
	free(s->path);
	free(s->dir);
	*s = SERVER_NONE;
}

void server_leave(struct server *s)
{
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
}

/* Exact, if the kernel has it (6.5): no risk that the pid has been reused. */
static int peer_pidfd(int client)
{
	int fd = -1;
	socklen_t len = sizeof(fd);

	return getsockopt(client, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0 ? fd : -1;
}

/* By its pid. If it died after its hello, its memory is all that is left of it, and its pid may be another process by now. */
static void watch_process(struct process *p)
{
	if (p->elsewhere)
		return;
	p->pidfd = proc_pidfd(p->pid);
	p->ended = p->pidfd == -ESRCH;
	if (p->pidfd >= 0 && proc_began_after(p->pid, p->start_ns)) {
		close(p->pidfd);
		p->pidfd = -1;
		p->ended = true;
	}
	if (p->pidfd < 0)
		p->pidfd = -1;
}

static void image_replaced(struct server *s, pid_t pid, bool elsewhere, uint64_t now)
{
	size_t i;

	for (i = 0; i < s->n_processes; i++) {
		if (s->process[i]->pid != pid || s->process[i]->elsewhere != elsewhere || s->process[i]->ended)
			continue;
		s->process[i]->ended = s->process[i]->replaced = true;
		s->process[i]->ended_ns = now;
	}
}

/* Whose number is the client's own word is nobody that we could look at, or signal. */
static struct process *find_process(struct server *s, int client, const struct ucred *who, const struct cw_hello *h,
				    uint64_t now)
{
	pid_t pid = who->pid > 0 ? who->pid : (pid_t)h->pid;
	uint64_t start = h->start_mono_ns;
	struct process *p;
	size_t i;

	for (i = s->n_processes; i-- > 0;)
		if (s->process[i]->pid == pid && s->process[i]->start_ns == start)
			return s->process[i];
	image_replaced(s, pid, who->pid <= 0, now);
	p = xcalloc(1, sizeof(*p));
	p->pid = pid;
	p->elsewhere = who->pid <= 0;
	p->start_ns = start;
	p->ended_ns = now;
	p->alive_ns = start;
	p->pidfd = peer_pidfd(client);
	if (p->pidfd < 0)
		watch_process(p);
	s->process = xgrow(s->process, s->n_processes, &s->cap_processes, sizeof(*s->process));
	s->process[s->n_processes++] = p;
	log_line("server", 1, "process %d, image %llu", (int)pid, (unsigned long long)start);
	return p;
}

/* A memfd that has the size it claims and can never lose it. Anything else could make a read fail or wait: a file on a
 * slow disk or FUSE, one in /proc, one that shrinks. */
static bool is_sealed_memfd(int fd, uint32_t len)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &st) == 0 && st.st_size >= (off_t)len;
}

static bool segment_ok(const struct cw_hello *h, int fd)
{
	return h->magic == CW_HELLO_MAGIC && h->len > 0 && h->off <= UINT32_MAX - h->len && is_sealed_memfd(fd, h->len);
}

/* The process that sent this; NULL: it is not known. */
static struct process *sender(struct server *s, int client, const struct cw_hello *h)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	pid_t pid;

	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return NULL;
	pid = who.pid > 0 ? who.pid : (pid_t)h->pid;
	for (size_t i = s->n_processes; i-- > 0;)
		if (s->process[i]->pid == pid && s->process[i]->start_ns == h->start_mono_ns)
			return s->process[i];
	return NULL;
}

/* A known process ran out of memory: sample who holds the GPU now. */
static void take_wake(struct server *s, int client, const struct cw_hello *h)
{
	struct process *p = sender(s, client, h);

	if (!p || p->judged)
		return;
	if (!p->elsewhere) {
		run_ram_look(&p->ram, p->pid, s->sim);
		p->end.ram = &p->ram;
	}
	/* a sample already in progress covers this moment, too */
	if (p->sample == SAMPLE_NONE)
		p->sample = SAMPLE_WANTED;
}

/* It ends, and waits for us to look at its objects. */
static void take_question(struct server *s, int client, const struct cw_hello *h)
{
	struct process *p = sender(s, client, h);

	if (p && !p->elsewhere && !p->judged && !p->ended)
		p->holders_asked = true;
}

/* Takes ownership of fd (-1 = none came with the message). */
static void take_segment(struct server *s, int client, const struct cw_hello *h, int fd,
			 uint64_t now)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	struct process *p;

	s->n_segments++;
	if (fd >= 0 && segment_ok(h, fd) &&
	    getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0) {
		p = find_process(s, client, &who, h, now);
		if (p->n_seg < SEGMENTS_MAX && !p->judged) {
			p->seg = xgrow(p->seg, p->n_seg, &p->cap_seg, sizeof(*p->seg));
			p->seg[p->n_seg++] = (struct segment){.fd = fd, .off = h->off, .len = h->len};
			return;		/* ownership of fd moved */
		}
	}
	s->lost_segments++;
	if (fd >= 0)
		close(fd);
}

/* Every descriptor in a message is ours to close, expected or not; the first is kept. */
static int message_fd(struct msghdr *m)
{
	struct cmsghdr *c;
	int kept = -1, fd;
	size_t i, n;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (kept < 0)
				kept = fd;
			else
				close(fd);
		}
	}
	return kept;
}

/* Receives one message. False when the connection has ended. */
static bool receive(struct server *s, int client, uint64_t now)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	struct cw_hello h = {0};
	struct iovec iov = {&h, sizeof(h)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t n;
	int fd;

	do
		n = recvmsg(client, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return false;
	fd = message_fd(&m);
	if (n == 0 && fd < 0)
		return false;
	if (n != (ssize_t)sizeof(h) || (m.msg_flags & MSG_TRUNC))
		h.magic = 0;	/* not ours */
	if (h.magic == CW_HOLDERS_MAGIC && fd < 0) {
		take_question(s, client, &h);
		return true;
	}
	if (h.magic == CW_WAKE_MAGIC && fd < 0) {
		take_wake(s, client, &h);
		return true;
	}
	take_segment(s, client, &h, fd, now);
	return h.magic == CW_HELLO_MAGIC;
}

/* For so many more? A segment that is received when no descriptor is left is lost; until then it waits: in its connection, or with that in
 * the queue. */
static bool files_left(struct server *s, size_t more)
{
	size_t n = s->n_files + OWN_FILES + s->n_clients + more, i;
	struct rlimit l;
	bool left;

	for (i = 0; i < s->n_processes; i++)
		n += process_files(s->process[i]) + (s->process[i]->pidfd >= 0) + (s->process[i]->events.name != NULL);
	left = getrlimit(RLIMIT_NOFILE, &l) != 0 || n <= l.rlim_cur;
	s->was_full |= !left;
	return left;
}

bool server_behind(const struct server *s)
{
	struct pollfd p[] = {{.fd = s->fd, .events = POLLIN}, {.fd = s->spare_fd, .events = POLLIN}};

	return s->was_full && (s->n_clients || poll(p, 2, 0) > 0);
}

/* False: somebody may be waiting still. */
static bool accept_all(struct server *s, int from, uint64_t now)
{
	struct ucred who;
	socklen_t len;
	int fd, i;

	/* Bounded: any user can connect to the abstract name. */
	for (i = 0; i < CLIENTS_MAX && from >= 0 && s->n_clients < CLIENTS_MAX && now >= s->paused_until_ns; i++) {
		if (!files_left(s, (s->n_clients + 1) * MESSAGE_FILES + 1)) {
			s->paused_until_ns = now + ACCEPT_PAUSE_NS;
			return false;
		}
		fd = accept4(from, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			s->was_full |= errno == EMFILE || errno == ENFILE;
			if (errno != EAGAIN)
				s->paused_until_ns = now + ACCEPT_PAUSE_NS;
			return errno == EAGAIN;
		}
		len = sizeof(who);
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0 ||
		    who.uid != geteuid()) {
			log_line("server", 1, "refused a client of another user");
			close(fd);
			continue;
		}
		s->client = xgrow(s->client, s->n_clients, &s->cap_clients, sizeof(*s->client));
		s->client[s->n_clients++] = fd;
	}
	return from < 0;
}

/* Receives all that one client has sent; false when it is finished. *all: it has, and no more is there for now. */
static bool drain_client(struct server *s, int client, uint64_t now, bool *all)
{
	int i;

	/* Bounded, so that a client that never stops sending cannot starve the others. */
	for (i = 0; i < SEGMENTS_MAX; i++) {
		if (!files_left(s, MESSAGE_FILES)) {
			s->paused_until_ns = now + ACCEPT_PAUSE_NS;
			*all = false;
			return true;
		}
		errno = 0;
		if (!receive(s, client, now))
			return errno == EAGAIN;
	}
	*all = false;
	return true;
}

/* False: nothing ended since the last look. */
static bool look_at_all(struct server *s)
{
	bool any = false;

	for (size_t i = 0; i < s->n_processes; i++) {
		struct process *p = s->process[i];
		uint64_t before = proc_mono_ns();

		if (p->ended)
			continue;
		if (p->pidfd < 0)
			watch_process(p);	/* there was no descriptor for it before */
		if (p->pidfd >= 0)
			p->ended = proc_pidfd_ended(p->pidfd);
		if (p->pidfd >= 0 && !p->ended)
			p->alive_ns = before;
		p->ended_ns = proc_mono_ns();
		any |= p->ended;
	}
	return any;
}

/* What is still alive after an end was noticed ends later: looked at once more, that is proven, whatever happens until the next step. */
static void notice_ends(struct server *s)
{
	if (look_at_all(s))
		look_at_all(s);
}

/* What ended needs no descriptors: its memory is moved into ours. More of it may be waiting to be received. */
static void make_room(struct server *s)
{
	size_t moved = 0;

	for (size_t i = 0; i < s->n_processes; i++)
		if (s->process[i]->ended && !s->process[i]->judged)
			moved += process_move(s->process[i], moved < MOVED_MAX);
}

void server_step(struct server *s, uint64_t now)
{
	bool all;
	size_t i;

	/* First check who ended, then receive: everything that a dead process sent is then here. */
	notice_ends(s);
	if (!files_left(s, FILES_SPARE))
		make_room(s);
	all = accept_all(s, s->fd, now);
	all &= accept_all(s, s->spare_fd, now);
	for (i = 0; i < s->n_clients;) {
		if (drain_client(s, s->client[i], now, &all)) {
			i++;
			continue;
		}
		close(s->client[i]);
		s->client[i] = s->client[--s->n_clients];
	}
	for (i = 0; all && i < s->n_processes; i++)
		s->process[i]->complete = s->process[i]->ended;
}

size_t server_fds(const struct server *s)
{
	return 2 + s->n_clients + s->n_processes;
}

size_t server_poll(const struct server *s, struct pollfd *p, uint64_t now)
{
	size_t i, n = 0;

	if (s->fd >= 0 && now >= s->paused_until_ns && s->n_clients < CLIENTS_MAX) {
		p[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
		p[n++] = (struct pollfd){.fd = s->spare_fd, .events = POLLIN};	/* -1 is skipped */
	}
	for (i = 0; i < s->n_clients && now >= s->paused_until_ns; i++)
		p[n++] = (struct pollfd){.fd = s->client[i], .events = POLLIN};
	for (i = 0; i < s->n_processes; i++)
		if (!s->process[i]->ended && s->process[i]->pidfd >= 0)
			p[n++] = (struct pollfd){.fd = s->process[i]->pidfd, .events = POLLIN};
	return n;
}
