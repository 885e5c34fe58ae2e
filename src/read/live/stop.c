/* SPDX-License-Identifier: Apache-2.0
 * PTRACE_SEIZE and PTRACE_INTERRUPT, which leave no trace in the program: no signal, no SIGSTOP (see stop.h).
 *
 * Who traces is a process of its own, which shares our memory and ends with the stop. When a tracer ends, the kernel lets go whatever it traced,
 * in any state: a thread that is stuck in the kernel and would stop later, one that ended, one that goes by another number since it
 * called exec(). The tracer also never takes note of the stop (WNOWAIT): then the kernel keeps the signal that is about to be delivered, and
 * delivers it even if the tracer is killed in between.
 */
#include "read/live/stop.h"

#include <errno.h>

#ifdef __x86_64__

#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/proc.h"

#define PATIENCE_NS	50000000u	/* a thread that is stuck in the kernel stops when it comes out of it */
#define WAITS_NS	10000000000u	/* one that is ready for a processor stops when it gets one: it was told, and must not be left alone with that */
#define STACK_SIZE	(256u << 10)

struct job {
	uint32_t tid;
	void (*look)(const struct stopped *s, void *arg);
	void *arg;
	uint64_t ns;
	int rc;
};

/* While a thread is stopped, nothing should delay us in letting it go on. Root can ask the kernel for that. */
static void hurry(void)
{
	const struct sched_param p = {.sched_priority = 1};

	sched_setscheduler(0, SCHED_FIFO, &p);
}

/* Waits until the only thread that we trace, `tid`, has stopped or ended. Sleeps meanwhile: the thread may need our processor. */
static int wait_stop(siginfo_t *of, pid_t tid, const sigset_t *children)
{
	const struct timespec patience = {.tv_nsec = PATIENCE_NS};
	uint64_t start = proc_mono_ns();

	for (bool more = true;;) {
		of->si_pid = 0;
		if (waitid(P_ALL, 0, of, WEXITED | WSTOPPED | WNOWAIT | WNOHANG | __WALL) != 0)
			return -errno;
		if (of->si_pid)
			return of->si_code == CLD_TRAPPED || of->si_code == CLD_STOPPED ? 0 : -ESRCH;
		if (!more)
			return -ETIMEDOUT;
		if (sigtimedwait(children, NULL, &patience) < 0)
			more = proc_state(tid) == 'R' && proc_mono_ns() - start < WAITS_NS;
	}
}

/* It stops because of us, because it is stopped anyway, or because a signal is about to be delivered: that one has to be passed on. */
static int signal_of(const siginfo_t *stop)
{
	return stop->si_status >> 8 ? 0 : stop->si_status;
}

/* Calls that return EINTR whenever a thread is stopped, although nothing was done yet; the kernel makes all others again by itself. */
static bool may_be_made_again(long call)
{
	static const long calls[] = {
		SYS_epoll_wait,
		SYS_epoll_pwait,
		SYS_semop,
		SYS_semtimedop,
		SYS_rt_sigtimedwait,
		SYS_io_getevents,
		SYS_accept,
		SYS_accept4,
		SYS_connect,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_recvmmsg,
		SYS_sendto,
		SYS_sendmsg,
		SYS_sendmmsg,
		SYS_read,
		SYS_readv,
		SYS_pread64,
		SYS_preadv, SYS_write, SYS_writev, SYS_pwrite64, SYS_pwritev,
		333 /* io_pgetevents */, 426 /* io_uring_enter */, 441 /* epoll_pwait2 */,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i] == call)
			return true;
	return false;
}

#define CALL_AGAIN (-514)	/* ERESTARTNOHAND, of the kernel: again, but EINTR if a handler is going to run */

/* It has fallen asleep in a call since it was seen running. The program must not notice: the kernel gets the error code with
 * which select() asks to be restarted. */
static void restart_call(pid_t tid, const struct user_regs_struct *regs)
{
	if ((long)regs->rax == -EINTR && may_be_made_again((long)regs->orig_rax))
		ptrace(PTRACE_POKEUSER, tid, (void *)offsetof(struct user, regs.rax), (void *)(long)CALL_AGAIN);
}

/* False if they are not those of a 64-bit program. */
static bool read_registers(pid_t tid, struct stopped *s)
{
	struct user_regs_struct regs;
	struct iovec io = {&regs, sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &io) != 0 || io.iov_len != sizeof(regs))
		return false;
	restart_call(tid, &regs);
	*s = (struct stopped){.sp = regs.rsp,
			      .pc = regs.rip,
			      .reg = {regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi, regs.rbp, regs.rsp,
				      regs.r8, regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15}};
	return true;
}

static int stop(struct job *j)
{
	pid_t tid = (pid_t)j->tid;
	sigset_t children;
	struct stopped s;
	siginfo_t why;
	uint64_t since;
	int rc;

	signal(SIGCHLD, SIG_DFL);	/* were it ignored, nothing would tell us */
	sigemptyset(&children);
	sigaddset(&children, SIGCHLD);
	sigprocmask(SIG_BLOCK, &children, NULL);
	hurry();
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
		return -errno;
	rc = wait_stop(&why, tid, &children);
	if (rc)
		return rc;
	since = proc_mono_ns();
	if (why.si_pid == tid && read_registers(tid, &s))
		j->look(&s, j->arg);
	else
		rc = -ESRCH;	/* it called exec() */
	ptrace(PTRACE_DETACH, why.si_pid, NULL, (void *)(long)signal_of(&why));
	j->ns = proc_mono_ns() - since;
	return rc;
}

static int tracer(void *arg)
{
	struct job *j = arg;

	j->rc = stop(j);
	return 0;
}

int while_stopped(uint32_t tid, void (*look)(const struct stopped *s, void *arg), void *arg, uint64_t *ns)
{
	static char stack[STACK_SIZE] __attribute__((aligned(64)));
	struct job j = {.tid = tid, .look = look, .arg = arg, .rc = -EINTR};	/* that it was killed */
	pid_t pid = clone(tracer, stack + sizeof(stack), CLONE_VM | CLONE_VFORK, &j);	/* we sleep until it has ended */

	*ns = 0;
	if (pid < 0)
		return -errno;
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	*ns = j.ns;
	return j.rc;
}

#else

/* Where a call that was interrupted cannot be made again from outside, nothing is stopped. */
int while_stopped(uint32_t tid, void (*look)(const struct stopped *s, void *arg), void *arg, uint64_t *ns)
{
	(void)tid;
	(void)look;
	(void)arg;
	*ns = 0;
	return -ENOSYS;
}

#endif
