/* SPDX-License-Identifier: Apache-2.0
 * PTRACE_SEIZE and PTRACE_INTERRUPT, which leave no trace in the program: no signal, no SIGSTOP (see stop.h).
 */
#include "input/live/stop.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/proc.h"

#define PATIENCE_US	50000	/* a thread inside the kernel stops when it comes out of it */
#define TRIES		20

static void on_alarm(int sig)
{
	(void)sig;
}

/* True when it has stopped; false when it has ended, or did not stop in time. Sleeps meanwhile: the thread may need our processor. */
static bool wait_stop(uint32_t tid)
{
	struct itimerval limit = {.it_value = {0, PATIENCE_US}, .it_interval = {0, PATIENCE_US}},
			 off = {.it_value = {0, 0}};
	struct sigaction act = {.sa_handler = on_alarm}, old;
	int status;
	pid_t got;

	sigaction(SIGALRM, &act, &old);
	setitimer(ITIMER_REAL, &limit, NULL);
	got = waitpid((pid_t)tid, &status, __WALL);
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	return got > 0 && WIFSTOPPED(status);
}

/* While somebody's thread is stopped, nothing should keep us from letting it go on. Root may say so to the kernel. */
static void hurry(bool on)
{
	struct sched_param p = {.sched_priority = on ? 1 : 0};

	sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &p);
}

static void read_registers(struct stopped *s)
{
#ifdef __x86_64__
	struct user_regs_struct regs;
	struct iovec io = {&regs, sizeof(regs)};

	if (ptrace(PTRACE_GETREGSET, (pid_t)s->tid, (void *)NT_PRSTATUS, &io) == 0) {
		const uint64_t order[16] = {regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi,
					    regs.rbp, regs.rsp, regs.r8,  regs.r9,  regs.r10, regs.r11,
					    regs.r12, regs.r13, regs.r14, regs.r15};

		s->sp = regs.rsp;
		s->pc = regs.rip;
		memcpy(s->reg, order, sizeof(order));
	}
#endif
}

bool stop_begin(struct stopped *s, uint32_t tid)
{
	*s = (struct stopped){.tid = tid};
	hurry(true);
	if (ptrace(PTRACE_SEIZE, (pid_t)tid, NULL, NULL) != 0)
		return false;
	s->seized = true;
	if (ptrace(PTRACE_INTERRUPT, (pid_t)tid, NULL, NULL) != 0)
		return false;
	s->stopped = wait_stop(tid);	/* it may have been waiting for a processor */
	s->since_ns = proc_mono_ns();
	if (s->stopped)
		read_registers(s);
	else
		errno = ETIMEDOUT;
	return s->stopped;
}

uint64_t stop_end(struct stopped *s)
{
	uint64_t ns;

	if (s->seized) {
		/* it must not stop later, when nobody lets it go on; one that is stuck in the kernel is let go when we end */
		for (int i = 0; !s->stopped && i < TRIES && ptrace(PTRACE_INTERRUPT, (pid_t)s->tid, NULL, NULL) == 0; i++)
			s->stopped = wait_stop(s->tid);
		ptrace(PTRACE_DETACH, (pid_t)s->tid, NULL, NULL);
	}
	ns = s->seized ? proc_mono_ns() - s->since_ns : 0;
	hurry(false);
	s->seized = s->stopped = false;
	return ns;
}
