/* SPDX-License-Identifier: Apache-2.0
 * The program itself: start, signals, end.
 *
 * It runs in our process group with our terminal, so that Ctrl-C and Ctrl-Z reach it as if cuwhy were not there. Signals
 * sent only to cuwhy are forwarded. It inherits the signal mask, the dispositions and the limits that cuwhy was started
 * with. Nothing here needs memory or a descriptor once the program runs: whatever happens to the rest of cuwhy, the program
 * has a parent that waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/children.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "run/run.h"

/* Not forwarded: signals that cuwhy's own bugs raise, and those that stop background reads and writes. */
static const int not_passed[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS,
				 SIGTTIN, SIGTTOU, SIGPIPE, SIGXCPU, SIGXFSZ, SIGPROF};

static void raise_limit(struct child *c)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_NOFILE, &c->old_files) != 0) {
		c->old_files = (struct rlimit){0, 0};
		return;
	}
	most = c->old_files;
	most.rlim_cur = most.rlim_max;
	setrlimit(RLIMIT_NOFILE, &most);
}

void child_prepare(struct child *c)
{
	struct sigaction ours = {.sa_handler = SIG_IGN};
	sigset_t set;
	size_t i;

	*c = (struct child){.pidfd = -1, .uid = getuid()};
	raise_limit(c);
	sigfillset(&set);
	for (i = 0; i < sizeof(not_passed) / sizeof(not_passed[0]); i++)
		sigdelset(&set, not_passed[i]);
	c->signals = set;
	sigprocmask(SIG_BLOCK, &set, &c->old_mask);
	sigaction(SIGPIPE, &ours, &c->old_pipe);
	sigaction(SIGXFSZ, &ours, &c->old_xfsz);	/* treat a file size limit like a full disk */
	witness_start(&c->witness);
}

/* Why there is no program. */
struct report {
	bool held_back;		/* it cannot be: run_writes.h has the reason */
	int code;
};

static void become_program(const struct child *c, char **argv, int report)
{
	struct report why = {0};

	/* Whatever fails here: it must not start to write. */
	why.held_back = c->writes && run_writes_enter(c->writes, argv) != 0;
	if (why.held_back)
		_exit(write(report, &why, sizeof(why)) == (ssize_t)sizeof(why) ? 127 : 126);
	if (c->old_files.rlim_max)
		setrlimit(RLIMIT_NOFILE, &c->old_files);
	children_inherit();
	sigaction(SIGPIPE, &c->old_pipe, NULL);
	sigaction(SIGXFSZ, &c->old_xfsz, NULL);
	sigprocmask(SIG_SETMASK, &c->old_mask, NULL);
	execvp(argv[0], argv);
	why.code = errno;
	_exit(write(report, &why, sizeof(why)) == (ssize_t)sizeof(why) ? 127 : 126);
}

/* "python", or "python3" where that is the only one, as on Debian. */
static const char *python_here(void)
{
	char *found = env_find_program("python"), *other = env_find_program("python3");
	const char *name = !found && other ? "python3" : "python";

	free(found);
	free(other);
	return name;
}

static int cannot_run(const char *program, int code, struct err *e)
{
	struct stat st;

	err_set(e, -code, "cannot run '%s': %s", program, strerror(code));
	if (code == ENOENT && strchr(program, '/') && stat(program, &st) == 0)
		err_hint(e, "the file exists, but the interpreter that it names does not");
	else if (str_ends(program, ".py") &&
		 (code == EACCES || code == ENOEXEC || (code == ENOENT && stat(program, &st) == 0)))
		err_hint(e, "try: cuwhy run %s %s", python_here(), program);
	else if (code == ENOENT && !strcmp(program, "python") && strcmp(python_here(), "python") != 0)
		err_hint(e, "there is no 'python' in PATH; try %s", python_here());
	else if (code == ENOENT && !strchr(program, '/'))
		err_hint(e, "no such program in PATH");
	return code == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE;
}

static int cannot_fork(int code, struct err *e)
{
	err_set(e, -code, "cannot start a process: %s", strerror(code));
	if (code == EAGAIN)
		err_hint(e, "no process is left: see ulimit -u, and pids.max of the container; cuwhy run needs three beside the program");
	return EXIT_NOT_STARTED;
}

void child_leave_streams(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	close(null);
}

/* 0; the program's process cannot be held back: -EAGAIN; else an exit status, with `e` filled. */
static int try_to_start(struct child *c, char **argv, struct err *e)
{
	struct report why = {0};
	int fds[2], code = 0;
	pid_t pid;
	ssize_t n;

	if (pipe2(fds, O_CLOEXEC) != 0) {
		err_set(e, -errno, "cannot create a pipe: %s", strerror(errno));
		return EXIT_NOT_STARTED;
	}
	pid = fork();
	if (pid == 0)
		become_program(c, argv, fds[1]);
	code = pid < 0 ? errno : 0;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return cannot_fork(code, e);
	}
	c->pid = pid;
	/* The pipe closes if exec succeeds, and delivers the errno if it does not. */
	do
		n = read(fds[0], &why, sizeof(why));
	while (n < 0 && errno == EINTR);
	close(fds[0]);
	if (n != (ssize_t)sizeof(why)) {
		child_leave_streams();
		return 0;
	}
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
	return why.held_back ? -EAGAIN : cannot_run(argv[0], why.code, e);
}

int child_start(struct child *c, char **argv, struct err *e)
{
	int status;

	while ((status = try_to_start(c, argv, e)) == -EAGAIN)
		if (run_writes_make(c->writes, c->out, e) != 0)
			return EXIT_NOT_STARTED;
	return status;
}

/* The shell waits for us: it must see the job stop, and by which signal. */
static void stop_as_well(int sig)
{
	struct sigaction stop = {.sa_handler = SIG_DFL}, old;
	sigset_t one, mask;

	sigemptyset(&one);
	sigaddset(&one, sig);
	sigaction(sig, &stop, &old);
	sigprocmask(SIG_UNBLOCK, &one, &mask);
	raise(sig);
	sigprocmask(SIG_SETMASK, &mask, NULL);
	sigaction(sig, &old, NULL);
}

static void program_changed(struct child *c, int status)
{
	if (!WIFSTOPPED(status)) {
		c->ended = true;
		c->status = status;
	} else if (WSTOPSIG(status) != SIGSTOP) {
		/* A plain SIGSTOP comes from a debugger, which would not know to continue us as well. */
		log_line("child", 1, "stopped by %d", WSTOPSIG(status));
		stop_as_well(WSTOPSIG(status));
	}
}

/* While it is a zombie, it still says as whom it ran: another user's process cannot reach our socket. */
static void learn_user(struct child *c)
{
	siginfo_t si = {.si_pid = 0};

	if (!c->ended && waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 && si.si_pid == c->pid)
		c->uid = si.si_uid;
}

/* All children, also those we do not know: as PID 1 of a container, every orphan becomes ours, and so do children of
 * the process that became cuwhy by exec. */
static void reap(struct child *c, struct keeper *k)
{
	int status;
	pid_t pid;

	learn_user(c);
	while ((pid = waitpid(-1, &status, WNOHANG | WUNTRACED)) != 0) {
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return;
		if (pid == c->pid)
			program_changed(c, status);
		else if (pid == k->pid && WIFSTOPPED(status))
			keeper_stopped(k);
		else if (pid == k->pid)
			keeper_ended(k, status);
		else if (pid == c->witness.pid && !WIFSTOPPED(status))
			witness_ended(&c->witness);
	}
}

static void pass_on(struct child *c, const siginfo_t *si)
{
	int sig = si->si_signo;
	char state;

	if (!c->pid || c->ended || witness_saw(&c->witness, sig, si->si_code > 0))
		return;
	log_line("child", 1, "signal %d passed on", sig);
	state = sig == SIGCONT ? proc_state(c->pid) : 'T';
	if (state == 'T' || !state)	/* unknown without /proc */
		child_signal(c->pid, sig);
}

void child_step(struct child *c, struct keeper *k, int wait_ms)
{
	struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000L};
	const struct timespec none = {0, 0};
	siginfo_t si;
	int sig;

	for (sig = sigtimedwait(&c->signals, &si, &wait); sig > 0; sig = sigtimedwait(&c->signals, &si, &none))
		if (sig != SIGCHLD)
			pass_on(c, &si);
	sig = keeper_asks_signal(k);
	if (sig && !c->ended)
		child_signal(c->pid, sig);
	reap(c, k);
}

void child_release(struct child *c)
{
	witness_stop(&c->witness);
}

int child_exit_status(const struct child *c)
{
	return WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status) : WEXITSTATUS(c->status);
}

void child_end_alike(const struct child *c)
{
	struct sigaction act = {.sa_handler = SIG_DFL};
	sigset_t one;

	if (!WIFSIGNALED(c->status))
		return;
	prctl(PR_SET_DUMPABLE, 0);	/* a core file is the program's to leave, not ours */
	sigemptyset(&one);
	sigaddset(&one, WTERMSIG(c->status));
	sigaction(WTERMSIG(c->status), &act, NULL);
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	raise(WTERMSIG(c->status));
}
