/* SPDX-License-Identifier: Apache-2.0
 * Does what its arguments say: actor STEP [NUMBER] [{ STEP … }] …
 *
 * grammar.py makes the sentences. What a sentence prints depends on nothing but the sentence: children are waited for,
 * threads joined, results added up. Steps that meddle with cuwhy do nothing where it is absent.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HELD_MAX	64
#define THREADS_MAX	256
#define TOO_MUCH	((size_t)1 << 44)

extern char **environ;
static char *self;

static const char image[] = "cuwhy-sim-module 1\ntarget compute_50 ptx 6.0\nkernel nop\nkernel spin\nkernel oob_store\n";

/* Only what is called: everything is an int function of integers and pointers. */
static int (*init)(unsigned int), (*retain)(void **, int), (*current)(void *), (*load)(void **, const void *);
static int (*get)(void **, void *, const char *), (*alloc)(uint64_t *, size_t), (*release)(uint64_t), (*sync_all)(void);
static int (*launch)(void *, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
		     unsigned int, void *, void **, void **);
static void *context, *nop, *spin, *oob_store;
static atomic_long calls, codes;	/* how many, and the sum of what they returned */
static __thread uint64_t held[HELD_MAX];
static __thread int n_held;
static __thread bool attached;

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char line[256];
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, line, (size_t)n) < 0) { /* closed by the program itself */
	}
}

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

/* As closefrom, which glibc has since 2.34; Linux has had this call since 5.9. */
static void close_from(unsigned first)
{
	syscall(SYS_close_range, first, ~0u, 0);
}

static int count(int code)
{
	calls++;
	codes += code;
	return code;
}

static void attach(void)
{
	if (!attached && current)
		current(context);
	attached = true;
}

static void *find(void *lib, const char *name)
{
	return lib ? dlsym(lib, name) : NULL;
}

static void do_cuda(long n, char **block)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *module = NULL;

	(void)n, (void)block;
	*(void **)&init = find(lib, "cuInit");
	*(void **)&retain = find(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&current = find(lib, "cuCtxSetCurrent");
	*(void **)&load = find(lib, "cuModuleLoadData");
	*(void **)&get = find(lib, "cuModuleGetFunction");
	*(void **)&launch = find(lib, "cuLaunchKernel");
	*(void **)&alloc = find(lib, "cuMemAlloc_v2");
	*(void **)&release = find(lib, "cuMemFree_v2");
	*(void **)&sync_all = find(lib, "cuCtxSynchronize");
	if (!init || !launch || !alloc || !release) {
		say("no driver\n");
		_exit(99);
	}
	count(init(0));
	if (!load)
		return;		/* the small driver */
	if (count(retain(&context, 0)) || count(current(context)) || count(load(&module, image)) ||
	    count(get(&nop, module, "nop")) || count(get(&spin, module, "spin")) ||
	    count(get(&oob_store, module, "oob_store")))
		say("CUDA did not start\n");
	attached = true;
}

static void do_launch(long n, char **block)
{
	(void)block;
	attach();
	while (n-- > 0)
		count(launch(nop, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void do_bad_launch(long n, char **block)
{
	(void)block;
	attach();
	while (n-- > 0)
		count(launch(nop, 1, 70000, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void do_alloc(long bytes, char **block)
{
	(void)block;
	attach();
	if (n_held < HELD_MAX && count(alloc(&held[n_held], (size_t)bytes)) == 0)
		n_held++;
}

static void do_free(long n, char **block)
{
	(void)block;
	while (n-- > 0 && n_held > 0)
		count(release(held[--n_held]));
}

static void do_oom(long n, char **block)
{
	uint64_t address;

	(void)block;
	attach();
	while (n-- > 0)
		count(alloc(&address, TOO_MUCH));
}

static void do_sync(long n, char **block)
{
	(void)n, (void)block;
	attach();
	if (sync_all)
		count(sync_all());
}

static void do_spin(long ms, char **block)
{
	int number = (int)ms;
	void *params[] = {&number};

	(void)block;
	attach();
	count(launch(spin, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
}

/* What programs print that do not expect the error. */
static void die(const char *what, int code)
{
	dprintf(STDERR_FILENO, "%s: error %d\n", what, code);
	exit(1);
}

static void do_die_oom(long n, char **block)
{
	uint64_t address;

	(void)n, (void)block;
	attach();
	die("cuMemAlloc", alloc(&address, TOO_MUCH));
}

static void do_die_launch(long n, char **block)
{
	(void)n, (void)block;
	attach();
	die("cuLaunchKernel", launch(nop, 1, 70000, 1, 32, 1, 1, 0, NULL, NULL, NULL));
}

static void do_die_fault(long n, char **block)
{
	uint64_t address = 0;
	long offset = 1L << 40;
	void *params[] = {&address, &offset};

	(void)n, (void)block;
	attach();
	alloc(&address, 4096);
	launch(oob_store, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	die("cuCtxSynchronize", sync_all());
}

static char **run_block(char **at);

static void *in_thread(void *block)
{
	run_block(block);
	do_free(HELD_MAX, NULL);
	return NULL;
}

static void do_threads(long n, char **block)
{
	pthread_t id[THREADS_MAX];

	for (int i = 0; i < n; i++)
		if (pthread_create(&id[i], NULL, in_thread, block))
			id[i] = 0, say("no thread\n");
	for (int i = 0; i < n; i++)
		if (id[i])
			pthread_join(id[i], NULL);
}

/* They are still at it when the process ends. */
static void *in_loose_thread(void *unused)
{
	uint64_t address;

	attach();
	for (;;) {
		launch(nop, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
		if (alloc(&address, 256) == 0)
			release(address);
		alloc(&address, TOO_MUCH);
	}
	return unused;
}

static void do_loose(long n, char **block)
{
	pthread_t id;

	(void)block;
	while (n-- > 0)
		if (pthread_create(&id, NULL, in_loose_thread, NULL) == 0)
			pthread_detach(id);
}

static atomic_bool stop_setting;

static void *set_variables(void *unused)
{
	char name[32];

	for (unsigned int i = 0; !stop_setting; i++) {
		snprintf(name, sizeof(name), "VARIABLE_%u", i % 300);
		if (i / 300 % 2)
			unsetenv(name);
		else
			setenv(name, "1", 1);
	}
	return unused;
}

static void do_setenv(long n, char **block)
{
	pthread_t id;

	(void)n;
	stop_setting = false;
	if (pthread_create(&id, NULL, set_variables, NULL))
		return;
	run_block(block);
	stop_setting = true;
	pthread_join(id, NULL);
}

static void wait_for(pid_t child)
{
	int status = -1;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	say("child ended: %x\n", (unsigned int)status);
}

static void do_fork(long n, char **block)
{
	pid_t child = fork();

	(void)n;
	if (child == 0) {
		run_block(block);
		_exit(0);
	}
	wait_for(child);
}

/* The block of a step as the arguments of another actor. */
static char **arguments(char **block)
{
	static __thread char *argv[512];
	int depth = 1, n = 0;

	argv[n++] = self;
	for (; *block && n < 511; block++) {
		depth += strcmp(*block, "{") == 0 ? 1 : strcmp(*block, "}") == 0 ? -1 : 0;
		if (depth == 0)
			break;
		argv[n++] = *block;
	}
	argv[n] = NULL;
	return argv;
}

static void do_spawn(long n, char **block)
{
	pid_t child;

	(void)n;
	if (posix_spawn(&child, self, NULL, NULL, arguments(block), environ))
		say("no process\n");
	else
		wait_for(child);
}

static void do_vfork(long n, char **block)
{
	char **argv = arguments(block);
	pid_t child = vfork();

	(void)n;
	if (child == 0) {
		execv(self, argv);
		_exit(127);
	}
	wait_for(child);
}

static void do_exec(long n, char **block)
{
	(void)n;
	execv(self, arguments(block));
	say("no exec: %d\n", errno);
}

/* Nobody waits for it, and it holds nothing of its parent's. */
static void do_daemon(long n, char **block)
{
	pid_t child = fork();

	if (child == 0) {
		int null = open("/dev/null", O_RDWR);

		setsid();
		if (fork())
			_exit(0);
		for (int i = 0; i < 3; i++)
			dup2(null, i);
		close_from(3);
		usleep((useconds_t)n * 1000);
		execv(self, arguments(block));
		_exit(127);
	}
	wait_for(child);
}

static void do_exit(long n, char **block)
{
	(void)block;
	exit((int)n);
}

static void do_quick_exit(long n, char **block)
{
	(void)block;
	_exit((int)n);
}

static void do_raise(long n, char **block)
{
	(void)block;
	signal((int)n, SIG_DFL);
	raise((int)n);
}

static void nothing(int signal)
{
	(void)signal;
}

static void with_timer(int which, int signal, int flags, long us, char **block)
{
	struct sigaction act = {.sa_handler = nothing, .sa_flags = flags}, old;
	struct itimerval every = {{0, us}, {0, us}}, never = {{0, 0}, {0, 0}};

	sigaction(signal, &act, &old);
	setitimer(which, &every, NULL);
	run_block(block);
	setitimer(which, &never, NULL);
	act.sa_handler = SIG_IGN;	/* one may be pending */
	sigaction(signal, &act, NULL);
	sigaction(signal, &old, NULL);
}

static void do_prof(long us, char **block)
{
	with_timer(ITIMER_PROF, SIGPROF, SA_RESTART, us, block);
}

/* Whatever can be interrupted is. */
static void do_alarm(long us, char **block)
{
	with_timer(ITIMER_REAL, SIGALRM, 0, us, block);
}

static void do_children(long n, char **block)
{
	struct sigaction act = {.sa_handler = nothing}, old;
	pid_t child[64];

	(void)block;
	sigaction(SIGCHLD, &act, &old);
	for (int i = 0; i < n; i++)
		if ((child[i] = fork()) == 0)
			_exit(0);
	do_launch(50, NULL);
	for (int i = 0; i < n; i++)
		while (waitpid(child[i], NULL, 0) < 0 && errno == EINTR)
			;
	sigaction(SIGCHLD, &old, NULL);
}

/* Stopped, as by a debugger, and continued a moment later. */
static void do_stop(long ms, char **block)
{
	pid_t child = fork();

	(void)block;
	if (child == 0) {
		kill(getppid(), SIGSTOP);
		usleep((useconds_t)ms * 1000);
		kill(getppid(), SIGCONT);
		_exit(0);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static sigjmp_buf back;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

/* Only with the small driver, which has no lock that a jump could leave behind. */
static void do_jump(long n, char **block)
{
	struct itimerval soon = {{0, 0}, {0, 0}};
	uint64_t address;

	(void)block;
	signal(SIGALRM, jump);
	for (volatile long i = 0; i < n; i++) {
		if (sigsetjmp(back, 1))
			continue;
		soon.it_value.tv_usec = 20 + i % 100;
		setitimer(ITIMER_REAL, &soon, NULL);
		for (;;)
			alloc(&address, i % 2 ? 16 : TOO_MUCH);
	}
	signal(SIGALRM, SIG_DFL);
}

static void do_dlopen(long n, char **block)
{
	char path[4096];
	int (*use)(void);

	(void)block;
	snprintf(path, sizeof(path), "%.*s/plugin.so", (int)(strrchr(self, '/') - self), self);
	while (n-- > 0) {
		void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		*(void **)&use = find(plugin, "use");
		count(use ? use() : -1);
		if (plugin)
			dlclose(plugin);
	}
}

static void do_close(long first, char **block)
{
	(void)block;
	close_from((unsigned)first);
}

static void do_limit_files(long n, char **block)
{
	struct rlimit limit = {(rlim_t)n, (rlim_t)n};

	(void)block;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void do_limit_size(long bytes, char **block)
{
	struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};

	(void)block;
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
}

static long status_number(const char *key, int base)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	unsigned long value = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, key, strlen(key)) == 0)
			value = strtoul(line + strlen(key), NULL, base);
	if (f)
		fclose(f);
	return (long)value;
}

/* Address space: what there is, and so much more. */
static void do_limit_memory(long mb, char **block)
{
	rlim_t bytes = ((rlim_t)status_number("VmSize:", 10) << 10) + ((rlim_t)mb << 20);
	struct rlimit limit = {bytes, bytes};

	(void)block;
	setrlimit(RLIMIT_AS, &limit);
}

static int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void do_sleep(long ms, char **block)
{
	struct timespec left = {ms / 1000, ms % 1000 * 1000000};

	(void)block;
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
}

/* What a guest must leave as it was. */
static void do_state(long n, char **block)
{
	const long libc_own = 3L << 31;		/* signals 32 and 33, set up by the first thread */
	mode_t mask = umask(0);

	(void)n, (void)block;
	umask(mask);
	say("calls %ld, codes %ld, files %d, umask %o\n", calls, codes, open_files(), mask);
	say("signals blocked %lx, ignored %lx, caught %lx\n", status_number("SigBlk:", 16) & ~libc_own,
	    status_number("SigIgn:", 16) & ~libc_own, status_number("SigCgt:", 16) & ~libc_own);
}

static pid_t supervisor;	/* 0 = there is none */

static void read_name(pid_t pid, char *name, int size)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	f = fopen(path, "re");
	if (!f || !fgets(name, size, f))
		*name = '\0';
	if (f)
		fclose(f);
	name[strcspn(name, "\n")] = '\0';
}

static pid_t keeper(void)
{
	char path[64], name[32];
	pid_t found = 0;
	FILE *f;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)supervisor, (int)supervisor);
	f = supervisor ? fopen(path, "re") : NULL;
	while (f && fscanf(f, "%d", &pid) == 1) {
		read_name(pid, name, sizeof(name));
		if (strcmp(name, "cuwhy-keeper") == 0)
			found = pid;
	}
	if (f)
		fclose(f);
	return found;
}

static void do_signal_keeper(long n, char **block)
{
	pid_t pid = keeper();

	(void)block;
	if (pid)
		kill(pid, (int)n);
}

static void do_kill_supervisor(long n, char **block)
{
	(void)n, (void)block;
	if (supervisor)
		kill(supervisor, SIGKILL);
}

static const struct step {
	const char *name;
	bool number, block;
	void (*run)(long n, char **block);
} steps[] = {
	{"cuda", false, false, do_cuda},	{"launch", true, false, do_launch},
	{"bad-launch", true, false, do_bad_launch}, {"alloc", true, false, do_alloc},
	{"free", true, false, do_free},		{"oom", true, false, do_oom},
	{"sync", false, false, do_sync},	{"spin", true, false, do_spin},
	{"die-oom", false, false, do_die_oom},	{"die-launch", false, false, do_die_launch},
	{"die-fault", false, false, do_die_fault}, {"threads", true, true, do_threads},
	{"loose", true, false, do_loose},	{"setenv", false, true, do_setenv},
	{"fork", false, true, do_fork},		{"spawn", false, true, do_spawn},
	{"vfork", false, true, do_vfork},	{"exec", false, true, do_exec},
	{"daemon", true, true, do_daemon},	{"exit", true, false, do_exit},
	{"quick-exit", true, false, do_quick_exit}, {"raise", true, false, do_raise},
	{"prof", true, true, do_prof},		{"alarm", true, true, do_alarm},
	{"children", true, false, do_children}, {"stop", true, false, do_stop},
	{"jump", true, false, do_jump},		{"dlopen", true, false, do_dlopen},
	{"close", true, false, do_close},	{"limit-files", true, false, do_limit_files},
	{"limit-size", true, false, do_limit_size}, {"limit-memory", true, false, do_limit_memory},
	{"sleep", true, false, do_sleep},	{"state", false, false, do_state},
	{"signal-keeper", true, false, do_signal_keeper}, {"kill-supervisor", false, false, do_kill_supervisor},
};

static char **skip_block(char **at)
{
	for (int depth = 1; *at && depth; at++)
		depth += strcmp(*at, "{") == 0 ? 1 : strcmp(*at, "}") == 0 ? -1 : 0;
	return at;
}

static char **run_step(char **at)
{
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const struct step *s = &steps[i];
		long n = 0;

		if (strcmp(*at, s->name) != 0)
			continue;
		at++;
		if (s->number && *at)
			n = strtol(*at++, NULL, 10);
		if (s->block && *at && strcmp(*at++, "{") == 0) {
			s->run(n, at);
			return skip_block(at);
		}
		s->run(n, NULL);
		return at;
	}
	say("no step '%s'\n", *at);
	_exit(98);
}

static char **run_block(char **at)
{
	while (*at && strcmp(*at, "}") != 0)
		at = run_step(at);
	return at;
}

int main(int argc, char **argv)
{
	char name[32];

	(void)argc;
	self = realpath("/proc/self/exe", NULL);
	read_name(getppid(), name, sizeof(name));
	if (strcmp(name, "cuwhy") == 0)
		supervisor = getppid();
	run_block(argv + 1);
	return 0;
}
