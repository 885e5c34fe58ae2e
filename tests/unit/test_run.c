/* SPDX-License-Identifier: Apache-2.0
 * The internals of `cuwhy run`: clients of all kinds, and what is kept from them.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/json.h"
#include "read/recording/recording.h"
#include "run/run_waiters.h"
#include "read/recording/trace.h"
#include "trace_make.h"

static int dial(const struct server *s)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", s->path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		_exit(99);
	return fd;
}

static void send_bytes(int to, const void *bytes, size_t len, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control;
	struct iovec iov = {(void *)bytes, len};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	memset(&control, 0, sizeof(control));
	if (n) {
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	sendmsg(to, &m, MSG_NOSIGNAL);
}

static int memfd_of(const void *bytes, size_t len)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
		_exit(98);
	return fd;
}

static void hello(const struct server *s, uint64_t start, uint32_t off, uint32_t len, int fd)
{
	struct cw_hello h = {CW_HELLO_MAGIC, (uint32_t)getpid(), start, off, len};
	int to = dial(s);

	send_bytes(to, &h, sizeof(h), &fd, fd >= 0);
	close(to);
}

/* A whole recording in two segments. */
static void record(const struct server *s, uint64_t start)
{
	struct make m;
	uint32_t half;

	make_init(&m);
	make_usual(&m);
	half = (uint32_t)m.used / 2;
	hello(s, start, half, (uint32_t)m.used - half,
	      memfd_of(m.data + half, m.used - half));
	hello(s, start, 0, half, memfd_of(m.data, half));
	free(m.data);
}

static void wait_for(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct trace *trace_of(const struct process *p)
{
	size_t len;
	void *bytes = process_bytes(p, &len);

	return bytes ? trace_from_bytes(bytes, len, NULL) : NULL;
}

static void open_server(struct server *s)
{
	struct err e = {0};

	assert_int_equal(server_open(s, false, &e), 0);
}

static void close_server(struct server *s)
{
	fs_remove_dir(s->dir, 1);
	server_close(s);
}

static void server__the_memory_of_a_killed_process_is_kept(void **state)
{
	const struct cw_failure *const *f;
	struct server s;
	struct trace *t;
	pid_t pid;

	(void)state;
	open_server(&s);
	pid = fork();
	if (pid == 0) {
		record(&s, 7);
		raise(SIGKILL);
	}
	wait_for(pid);
	server_step(&s, proc_mono_ns());
	server_step(&s, proc_mono_ns());
	assert_int_equal(s.n_processes, 1);
	assert_int_equal(s.process[0]->pid, pid);
	assert_true(s.process[0]->ended);
	t = trace_of(s.process[0]);
	assert_non_null(t);
	assert_int_equal(trace_failures(t, &f), 1);
	trace_free(t);
	close_server(&s);
}

static void send_garbage(const struct server *s)
{
	struct cw_hello h = {CW_HELLO_MAGIC, 1, 1, 0xffffff00u, 0x1000};
	int fds[16], i, to = dial(s), pipes[2];
	char big[10000] = "x";

	for (i = 0; i < 16; i++)
		fds[i] = memfd_of("x", 1);
	send_bytes(to, "", 1, NULL, 0);
	send_bytes(dial(s), big, sizeof(big), fds, 16);
	send_bytes(dial(s), &h, sizeof(h), fds, 1);	/* beyond the address space */
	h.off = 0;
	send_bytes(dial(s), &h, sizeof(h), NULL, 0);	/* no memory */
	if (pipe(pipes) == 0)
		send_bytes(dial(s), &h, sizeof(h), pipes, 2);	/* no file */
	h.len = 0;
	send_bytes(dial(s), &h, sizeof(h), fds, 1);
	h.magic = 0;
	send_bytes(dial(s), &h, sizeof(h), fds, 3);
	for (i = 0; i < 100; i++)
		dial(s);	/* sends nothing and stays connected */
}

static int open_files(void)
{
	int i, n = 0;

	for (i = 0; i < 1024; i++)
		n += fcntl(i, F_GETFD) >= 0;
	return n;
}

static void server__garbage_is_survived_and_leaves_nothing_open(void **state)
{
	int before = open_files();
	struct server s;
	pid_t pid;

	(void)state;
	open_server(&s);
	pid = fork();
	if (pid == 0) {
		send_garbage(&s);
		record(&s, 1);
		_exit(0);
	}
	wait_for(pid);
	server_step(&s, proc_mono_ns());
	server_step(&s, proc_mono_ns());
	assert_int_equal(s.n_processes, 1);
	assert_int_equal(s.process[0]->n_seg, 2);
	assert_int_equal(s.n_clients, 0);
	close_server(&s);
	assert_int_equal(open_files(), before);
}

static void server__an_exec_is_a_new_image_of_the_same_process(void **state)
{
	struct server s;
	pid_t pid;

	(void)state;
	open_server(&s);
	pid = fork();
	if (pid == 0) {
		record(&s, 100);
		record(&s, 200);
		_exit(0);
	}
	wait_for(pid);
	server_step(&s, proc_mono_ns());
	assert_int_equal(s.n_processes, 2);
	assert_true(s.process[0]->replaced);
	assert_false(s.process[1]->replaced);
	close_server(&s);
}

/* What a client might send instead of a sealed memfd of the size it claims. */
static int unfit(int n)
{
	char name[] = "/tmp/cuwhy-test-XXXXXX";
	int fd;

	switch (n) {
	case 0: return memfd_create("not sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	case 1: return memfd_create("cannot be sealed", MFD_CLOEXEC);
	case 2: return memfd_of("too short", 9);
	case 3: return open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	case 4: return open("/dev/zero", O_RDONLY | O_CLOEXEC);
	default:
		fd = mkstemp(name);
		unlink(name);
		return fd;
	}
}

static void server__only_memory_that_keeps_its_size_is_accepted(void **state)
{
	struct server s;
	pid_t pid;
	int fd, i;

	(void)state;
	open_server(&s);
	pid = fork();
	if (pid == 0) {
		for (i = 0; i < 6; i++) {
			fd = unfit(i);
			if (i != 2 && ftruncate(fd, 4096) != 0 && i != 3 && i != 4)
				_exit(98);
			hello(&s, 1, 0, 4096, fd);
		}
		_exit(0);
	}
	wait_for(pid);
	server_step(&s, proc_mono_ns());
	assert_int_equal(s.n_processes, 0);
	assert_int_equal(s.lost_segments, 6);
	close_server(&s);
}

static void server__many_processes_at_once(void **state)
{
	enum { N = 60 };
	struct server s;
	pid_t pid[N];
	size_t i;

	(void)state;
	open_server(&s);
	for (i = 0; i < N; i++) {
		pid[i] = fork();
		if (pid[i] == 0) {
			record(&s, 1);
			_exit(0);
		}
	}
	for (i = 0; i < N; i++)
		wait_for(pid[i]);
	server_step(&s, proc_mono_ns());
	server_step(&s, proc_mono_ns());
	assert_int_equal(s.n_processes, N);
	for (i = 0; i < N; i++)
		assert_int_equal(s.process[i]->n_seg, 2);
	close_server(&s);
}

static void server__clients_of_other_users_are_refused(void **state)
{
	struct server s;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		skip();
	open_server(&s);
	assert_int_equal(chmod(s.dir, 0755) | chmod(s.path, 0777), 0);
	pid = fork();
	if (pid == 0) {
		if (setuid(65534) != 0)
			_exit(1);
		record(&s, 1);
		_exit(0);
	}
	wait_for(pid);
	server_step(&s, proc_mono_ns());
	assert_int_equal(s.n_processes, 0);
	close_server(&s);
}

static void server__its_folder_is_private(void **state)
{
	struct server s;
	struct stat st;

	(void)state;
	open_server(&s);
	assert_int_equal(stat(s.dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	close_server(&s);
}

static char *marked_folder(struct mark *m, enum mark_kind kind)
{
	char *dir = strdup("/tmp/cuwhy-test-XXXXXX");

	assert_non_null(dir);
	assert_non_null(mkdtemp(dir));
	assert_int_equal(mark_make(m, dir, kind), 0);
	return dir;
}

/* Puts another text into the mark; the folder is as old as given. */
static void rewrite_mark(const char *dir, const char *text, time_t days)
{
	const struct timespec at[2] = {{.tv_sec = time(NULL) - days * 86400}, {.tv_sec = time(NULL) - days * 86400}};
	char *path = fs_join(dir, MARK_FILE);

	assert_int_equal(fs_write(path, text, strlen(text), NULL), 0);
	assert_int_equal(utimensat(AT_FDCWD, dir, at, 0), 0);
	free(path);
}

static void mark__a_folder_in_use_is_not_abandoned_whoever_asks(void **state)
{
	struct mark m, second;
	char *dir = marked_folder(&m, MARK_RECORDING);
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	if (pid == 0) {
		mark_release(&m);
		_exit(mark_borrow(&m, dir) == -EBUSY && !mark_abandoned(dir, MARK_RECORDING) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(mark_make(&second, dir, MARK_RECORDING), -EEXIST);
	mark_end(&m);
	assert_false(mark_abandoned(dir, MARK_RECORDING));	/* complete, but still held */
	mark_release(&m);
	assert_true(mark_abandoned(dir, MARK_RECORDING));
	fs_remove_dir(dir, 0);
	free(dir);
}

static void mark__a_folder_is_borrowed_by_one_at_a_time_and_left_as_it_was(void **state)
{
	char dir[] = "/tmp/cuwhy-test-XXXXXX", *path;
	struct mark m, second;

	(void)state;
	assert_non_null(mkdtemp(dir));
	path = fs_join(dir, MARK_FILE);
	assert_int_equal(mark_borrow(&m, dir), 0);
	assert_int_equal(mark_borrow(&second, dir), -EBUSY);
	assert_false(mark_abandoned(dir, MARK_RECORDING));
	mark_return(&second, dir);
	assert_true(fs_exists(path));
	mark_return(&m, dir);
	assert_true(fs_dir_empty(dir));
	assert_int_equal(fs_write(path, "somebody's file", 15, NULL), 0);
	assert_int_equal(mark_borrow(&m, dir), 0);
	mark_return(&m, dir);
	assert_true(fs_exists(path));
	fs_remove_dir(dir, 0);
	free(path);
}

static void mark__only_a_folder_made_for_the_purpose_under_its_own_name_is_ours(void **state)
{
	struct mark m;
	char *dir = marked_folder(&m, MARK_RECORDING), *other = xasprintf("%s-renamed", dir);

	(void)state;
	mark_release(&m);
	assert_true(mark_abandoned(dir, MARK_RECORDING));
	assert_false(mark_abandoned(dir, MARK_RUN_FOLDER));
	assert_int_equal(symlink(dir, other), 0);
	assert_false(mark_is(other, MARK_RECORDING));
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rename(dir, other), 0);
	assert_false(mark_is(other, MARK_RECORDING));
	assert_false(mark_abandoned(other, MARK_RECORDING));
	rewrite_mark(other, "", 400);
	assert_false(mark_abandoned(other, MARK_RECORDING));
	rewrite_mark(other, "ended\n", 400);
	assert_false(mark_abandoned(other, MARK_RECORDING));
	fs_remove_dir(other, 0);
	assert_false(mark_abandoned(other, MARK_RECORDING));
	free(other);
	free(dir);
}

/* Its locks may be invisible here. */
static void mark__a_folder_of_another_machine_is_abandoned_when_complete_or_old(void **state)
{
	struct mark m;
	char *dir = marked_folder(&m, MARK_RECORDING), *path = fs_join(dir, MARK_FILE), *text, *complete;
	struct buf b;

	(void)state;
	mark_release(&m);
	buf_init(&b, 4096);
	assert_int_equal(fs_read(path, &b, NULL), 0);
	text = xasprintf("%.*sboot of-another-machine\n", (int)(strstr(b.data, "boot ") - b.data), b.data);
	rewrite_mark(dir, text, 0);
	assert_true(mark_is(dir, MARK_RECORDING));
	assert_false(mark_abandoned(dir, MARK_RECORDING));
	rewrite_mark(dir, text, 29);
	assert_false(mark_abandoned(dir, MARK_RECORDING));
	rewrite_mark(dir, text, 31);
	assert_true(mark_abandoned(dir, MARK_RECORDING));
	complete = xasprintf("%sended\n", text);
	rewrite_mark(dir, complete, 0);
	assert_true(mark_abandoned(dir, MARK_RECORDING));
	buf_release(&b);
	free(complete);
	free(text);
	fs_remove_dir(dir, 0);
	free(path);
	free(dir);
}

static void recording__a_part_cannot_lead_out_of_its_folder(void **state)
{
	static const char run[] = "{\"processes\": [{\"pid\": 1, \"part\": \"../x.cwr\"},"
				  "{\"pid\": 2, \"part\": \"/etc/passwd\"},"
				  "{\"pid\": 3, \"part\": \".hidden\"}, 5,"
				  "{\"pid\": 4, \"part\": \"4-1.cwr\", \"exit\": 1,"
				  "\"status_known\": true}]}";
	char dir[] = "/tmp/cuwhy-test-XXXXXX", *path;
	struct recording r;

	(void)state;
	assert_non_null(mkdtemp(dir));
	path = fs_join(dir, RUN_FILE);
	assert_int_equal(fs_write(path, run, strlen(run), NULL), 0);
	assert_int_equal(recording_read(&r, dir, NULL), 0);
	assert_int_equal(r.n, 4);	/* 5 is no process */
	assert_null(r.process[0].part);
	assert_null(r.process[1].part);
	assert_null(r.process[2].part);
	assert_non_null(r.process[3].part);
	assert_int_equal(r.process[3].end.exit, 1);
	recording_release(&r);
	fs_remove_dir(dir, 0);
	free(path);
}

static void hang__a_time_is_a_number_with_a_unit(void **state)
{
	static const struct { const char *text; uint64_t seconds; } good[] = {
		{"90", 90}, {"60s", 60}, {"5m", 300}, {"1h", 3600}, {"8760h", 31536000}};
	static const char *const bad[] = {"", "s", "0", "0s", "-1", "1.5s", "1d", "60 s", "60ss", "1m30s", "8761h",
					  "99999999999999999999", "123456789012345678901234567890s", " 5"};
	uint64_t ns;
	struct err e;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ns = 0;
		assert_int_equal(hang_parse(&ns, "hang-after", good[i].text, NULL), 0);
		assert_int_equal(ns, good[i].seconds * 1000000000u);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ns = 0;
		e = (struct err){0};
		if (hang_parse(&ns, "hang-after", bad[i], &e) == 0)
			fail_msg("'%s' was taken for a time", bad[i]);
		assert_int_equal(ns, 0);
		assert_true(e.msg[0] && e.hint[0]);
	}
}

/* A process whose memory is a recording with a ring of calls for each thread. */
static struct process *process_with(struct make *m, struct segment *g)
{
	struct process *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	*g = (struct segment){.fd = memfd_of(m->data, MAKE_BYTES), .len = MAKE_BYTES};
	p->seg = g;
	p->n_seg = 1;
	return p;
}

static struct cw_ring *thread_ring(struct make *m, uint32_t tid, uint64_t since, uint32_t polls)
{
	struct cw_ring *r = (struct cw_ring *)make_ring(m, CW_CHUNK_CALLS, 4, sizeof(struct cw_call), 0) - 1;

	r->tid = tid;
	r->polls = polls;
	r->wait = (struct cw_wait){.since_ns = since, .api = 30};
	return r;
}

static void hang__the_longest_wait_comes_first_and_who_stopped_asking_is_left_out(void **state)
{
	struct segment g;
	struct process *p;
	struct waiters w;
	struct cw_ring *asks;
	struct make m;
	long at;

	(void)state;
	make_init(&m);
	thread_ring(&m, 1, 0, 0);		/* does not wait */
	thread_ring(&m, 2, 300, 0);
	asks = thread_ring(&m, 3, 100, 7);
	thread_ring(&m, 4, 200, 0);
	thread_ring(&m, 5, 9000, 0);		/* not for long */
	at = (char *)asks - (char *)m.data;
	p = process_with(&m, &g);
	assert_true(waiters_find(&w, p, 1000));
	assert_int_equal(w.n, 3);
	assert_int_equal(w.list[0].tid, 3);
	assert_int_equal(w.list[1].tid, 4);
	assert_int_equal(w.list[2].tid, 2);
	assert_true(waiter_still(p, &w.list[1]));
	assert_true(waiters_find(&w, p, 1000));		/* thread 3 has not called since */
	assert_int_equal(w.n, 2);
	assert_int_equal(w.list[0].tid, 4);
	asks->polls = 8;
	assert_int_equal(pwrite(g.fd, asks, sizeof(*asks), at), sizeof(*asks));
	assert_true(waiters_find(&w, p, 1000));
	assert_int_equal(w.n, 3);
	asks->wait.since_ns = 0;
	assert_int_equal(pwrite(g.fd, asks, sizeof(*asks), at), sizeof(*asks));
	assert_false(waiter_still(p, &w.list[0]));
	close(g.fd);
	free(p->hang.polls);
	free(p);
	free(m.data);
}

static void hang__more_threads_than_are_kept_lose_the_shortest_wait(void **state)
{
	struct segment g;
	struct process *p;
	struct waiters w;
	struct make m;
	uint32_t i;

	(void)state;
	make_init(&m);
	for (i = 0; i < CW_HANG_THREADS + 4; i++)
		thread_ring(&m, i + 1, 100 + (i * 7) % (CW_HANG_THREADS + 4), 0);
	p = process_with(&m, &g);
	assert_true(waiters_find(&w, p, 1000));
	assert_int_equal(w.n, CW_HANG_THREADS);
	for (i = 0; i < CW_HANG_THREADS; i++)
		assert_int_equal(w.list[i].wait.since_ns, 100 + i);
	close(g.fd);
	free(p->hang.polls);
	free(p);
	free(m.data);
}

static void hang__what_was_found_is_written_into_the_recording(void **state)
{
	struct cw_hang note = {.mono_ns = 77, .flags = CW_HANG_TRIGGERED, .n = 1000}; /* more than there are */
	struct segment g;
	struct process *p;
	struct trace *t;
	struct make m;

	(void)state;
	make_init(&m);
	p = process_with(&m, &g);
	assert_true(hang_write(p, &note));
	t = trace_of(p);
	assert_non_null(t);
	assert_int_equal(trace_header(t)->hang.mono_ns, 77);
	assert_int_equal(trace_header(t)->hang.n, CW_HANG_THREADS);
	trace_free(t);
	close(g.fd);
	free(p);
	free(m.data);
}

static void json_text__any_bytes_become_valid(void **state)
{
	static const char *const texts[] = {"plain", "\xc3\xa4", "\xff\xfe", "\xe2\x82",
					    "a\xf0\x9f",
					    "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xc0\x80", "\xfa"};
	json_t *o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		o = json_text(texts[i]);
		assert_true(json_is_string(o));
		json_decref(o);
	}
	o = json_text("\xc3\xa4\xff");
	assert_string_equal(json_string_value(o), "\xc3\xa4?");
	json_decref(o);
	assert_true(json_is_null(json_text(NULL)));
}

static void note_use(struct dry_run *d, uint8_t gpu, uint64_t reserved, uint64_t used)
{
	struct make m;
	struct trace *t;

	make_init(&m);
	make_usual(&m);
	make_header(&m)->sim = 1;
	make_header(&m)->device[0].uuid[0] = gpu;
	make_header(&m)->memory[0].peak_reserved = reserved;
	make_header(&m)->sim_used_peak[0] = used;
	t = trace_from_bytes(m.data, m.used, NULL);
	assert_non_null(t);
	dry_run_note(d, t);
	trace_free(t);
}

static void dry_run__processes_on_one_gpu_are_not_several_gpus(void **state)
{
	struct dry_run d = {0};

	(void)state;
	note_use(&d, 1, 1000, 5000);
	note_use(&d, 1, 3000, 3100);
	note_use(&d, 2, 4000, 4100);
	assert_int_equal(d.n_devices, 2);
	assert_int_equal(d.n_users, 3);
	assert_int_equal(dry_run_fullest(&d)->reserved, 3000);
	assert_int_equal(dry_run_fullest(&d)->used, 5000);
	free(d.read);
}

static char state_of(pid_t pid)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state;
}

static void wait_for_state(pid_t pid, char wanted)
{
	while (state_of(pid) != wanted)
		usleep(1000);
}

/* It is slow to take notice of the first, and the second comes meanwhile. */
static void witness__a_signal_that_comes_while_another_is_taken_is_still_seen(void **state)
{
	sigset_t all, old;
	struct witness w;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	witness_start(&w);
	assert_true(w.pid > 0);
	wait_for_state(w.pid, 'S');
	kill(w.pid, SIGUSR1);
	kill(w.pid, SIGSTOP);
	wait_for_state(w.pid, 'T');
	assert_true(witness_saw(&w, SIGUSR1, false));
	kill(w.pid, SIGUSR2);
	kill(w.pid, SIGCONT);
	while (witness_saw(&w, SIGUSR1, false))
		usleep(1000);
	assert_true(witness_saw(&w, SIGUSR2, false));
	witness_stop(&w);
	sigprocmask(SIG_SETMASK, &old, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dry_run__processes_on_one_gpu_are_not_several_gpus),
		cmocka_unit_test(witness__a_signal_that_comes_while_another_is_taken_is_still_seen),
		cmocka_unit_test(server__the_memory_of_a_killed_process_is_kept),
		cmocka_unit_test(server__garbage_is_survived_and_leaves_nothing_open),
		cmocka_unit_test(server__an_exec_is_a_new_image_of_the_same_process),
		cmocka_unit_test(server__only_memory_that_keeps_its_size_is_accepted),
		cmocka_unit_test(server__many_processes_at_once),
		cmocka_unit_test(server__clients_of_other_users_are_refused),
		cmocka_unit_test(server__its_folder_is_private),
		cmocka_unit_test(mark__a_folder_in_use_is_not_abandoned_whoever_asks),
		cmocka_unit_test(mark__a_folder_is_borrowed_by_one_at_a_time_and_left_as_it_was),
		cmocka_unit_test(mark__only_a_folder_made_for_the_purpose_under_its_own_name_is_ours),
		cmocka_unit_test(mark__a_folder_of_another_machine_is_abandoned_when_complete_or_old),
		cmocka_unit_test(recording__a_part_cannot_lead_out_of_its_folder),
		cmocka_unit_test(hang__a_time_is_a_number_with_a_unit),
		cmocka_unit_test(hang__the_longest_wait_comes_first_and_who_stopped_asking_is_left_out),
		cmocka_unit_test(hang__more_threads_than_are_kept_lose_the_shortest_wait),
		cmocka_unit_test(hang__what_was_found_is_written_into_the_recording),
		cmocka_unit_test(json_text__any_bytes_become_valid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
