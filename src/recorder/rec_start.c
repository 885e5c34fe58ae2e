/* SPDX-License-Identifier: Apache-2.0
 * Start, fork and stop: asleep until the program calls the driver, then one recording per process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "rec.h"
#include "recorder/guard/rec_guard.h"
#include "rec_segment.h"

#define DEFAULT_MB	64
#define FIRST_SEGMENT	(5u << 20)	/* what every process needs, and what most need soon */
#define KEEP_RINGS	8	/* dead threads' rings are reused once there are this many */
#define THREAD_BLOCK	128u	/* records of threads are allocated in blocks that fit into one large page */
#define MAX_THREADS	(256 * THREAD_BLOCK)
#define START_PATIENCE_NS 100000000u
#define REUSE_LOOKS	64	/* a thread that starts among thousands asks about this many others, not about all */

static atomic_uint asleep = REC_WIPED, never = REC_OFF;
HOT_DATA struct rec rec = {.state = &asleep};
TLS struct rec_thread *rec_self;
TLS uint32_t rec_nesting;
uint64_t rec_start_ns;

static struct {
	bool may_record;	/* a `cuwhy run` requested it, and this process may do it */
	_Atomic uint32_t waking;
	_Atomic uint32_t waking_pid;
	_Atomic(struct rec_thread *) threads[MAX_THREADS / THREAD_BLOCK];	/* survive fork: only the contents start over */
	_Atomic uint32_t n_threads, next_look;
	struct { uint32_t pid; uint64_t ticks, mono_ns; } loaded;	/* when, and in which process */
} st;

void text_copy(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		len = size - 1;
	memcpy(to, from, len);
	to[len] = '\0';
}

size_t rec_put_number(char *to, size_t size, long v)
{
	char digit[24];
	size_t n = 0, k = 0;
	unsigned long u = v < 0 ? 0ul - (unsigned long)v : (unsigned long)v;

	do
		digit[n++] = (char)('0' + u % 10);
	while (u /= 10);
	if (v < 0)
		digit[n++] = '-';
	while (n && k + 1 < size)
		to[k++] = digit[--n];
	to[k] = '\0';
	return k;
}

bool rec_fsize_allows(uint64_t len)
{
	struct rlimit l;

	return getrlimit(RLIMIT_FSIZE, &l) == 0 && (l.rlim_cur == RLIM_INFINITY || l.rlim_cur >= len);
}

void rec_read_file(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	n = n < 0 ? 0 : n;
	for (ssize_t i = 0; i + 1 < n; i++)	/* arguments are separated by NUL */
		if (!to[i])
			to[i] = ' ';
	to[n] = '\0';
}

bool rec_read_memory(void *to, const void *from, size_t n)
{
	struct iovec mine = {to, n}, theirs = {(void *)from, n};
	struct signals signals;
	int fd;
	bool ok;

	if (sandbox_is_new())
		return false;
	if (syscall(SYS_process_vm_readv, getpid(), &mine, 1UL, &theirs, 1UL, 0UL) == (long)n)
		return true;
	if (errno == EFAULT)
		return false;
	signals = signals_block();	/* a handler that jumps out would leave the descriptor open */
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);	/* a sandbox may forbid the system call above */
	ok = fd >= 0 && pread(fd, to, n, (off_t)(uintptr_t)from) == (ssize_t)n;
	if (fd >= 0)
		close(fd);
	signals_unblock(&signals);
	return ok;
}

struct signals signals_block(void)
{
	struct signals s;
	sigset_t all;

	sigfillset(&all);
	s.blocked = sigprocmask(SIG_SETMASK, &all, &s.before) == 0;	/* of this thread only, in spite of its name */
	return s;
}

void signals_unblock(const struct signals *s)
{
	if (s->blocked)
		sigprocmask(SIG_SETMASK, &s->before, NULL);
}

uint64_t rec_mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The processor reports a steady counter, or the kernel uses it: hypervisors hide the former. */
static bool ticks_are_steady(void)
{
	char source[8] = "";

	if (arch_has_steady_ticks())
		return true;
	rec_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, sizeof(source));
	return strncmp(source, ARCH_CLOCK_SOURCE, strlen(ARCH_CLOCK_SOURCE)) == 0;
}

static struct spin clock_lock;
LOCK_LISTED(clock, clock_lock);

/* Both readings must come from one thread: if another thread is at it, back off. */
void rec_clock_mark(void)
{
	if (!spin_once(&clock_lock, rec_self ? rec_self->tid : SPIN_STRANGER))
		return;
	rec.h->clock1.mono_ns = rec_mono_ns();
	rec.h->clock1.ticks = rec_ticks();
	spin_done(&clock_lock);
}

uint64_t rec_ticks_in(uint64_t ns)
{
	uint64_t since_ns = rec_mono_ns() - rec.h->clock0.mono_ns, since = rec_ticks() - rec.h->clock0.ticks;

	if (since_ns < 100000)
		return 2 * ns;
	return (uint64_t)((double)since / (double)since_ns * (double)ns) + 1;
}

static uint32_t env_number(const char *name)
{
	const char *v = rec_getenv(name);
	char *end;
	unsigned long n;

	if (!v || *v < '0' || *v > '9')
		return CW_UNKNOWN;
	n = strtoul(v, &end, 10);
	return *end || n > 0xfffffffeu ? CW_UNKNOWN : (uint32_t)n;
}

/* Recording begins when CUDA is first used, but times count from the program's start. */
static void mark_start(struct cw_header *h)
{
	rec_clock_mark();
	h->clock0 = h->clock1;
	if (st.loaded.pid != rec.pid)	/* forked */
		return;
	h->clock0.mono_ns = st.loaded.mono_ns;
	h->clock0.ticks = rec.ticks_are_tsc ? st.loaded.ticks : st.loaded.mono_ns;
	h->start_realtime_ns -= h->clock1.mono_ns - h->clock0.mono_ns;
}

static void fill_header(uint32_t forked_from)
{
	struct cw_header *h = rec.h;
	const char *conf = rec_getenv("PYTORCH_ALLOC_CONF");
	struct timespec t;
	ssize_t n;

	h->major = CW_MAJOR;
	h->minor = CW_MINOR;
	h->header_size = sizeof(*h);
	h->pid = rec.pid;
	h->ppid = (uint32_t)getppid();
	clock_gettime(CLOCK_REALTIME, &t);
	h->start_realtime_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	mark_start(h);
	h->rank = env_number("RANK");
	h->local_rank = env_number("LOCAL_RANK");
	h->world_size = env_number("WORLD_SIZE");
	h->init_result = h->device_count = CW_UNKNOWN;
	h->forked = forked_from != 0;
	h->parent_recorded_pid = forked_from;
	h->sim = rec_getenv("CUWHY_SIM") != NULL;
	env_copy("CUDA_VISIBLE_DEVICES", h->visible_devices_at_init, sizeof(h->visible_devices_at_init));
	env_copy("CUDA_VISIBLE_DEVICES", h->visible_devices_now, sizeof(h->visible_devices_now));
	env_copy(conf ? "PYTORCH_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF", h->alloc_conf,
		 sizeof(h->alloc_conf));
	n = readlink("/proc/self/exe", h->exe, sizeof(h->exe) - 1);
	h->exe[n < 0 ? 0 : n] = '\0';
	rec_read_file("/proc/self/cmdline", h->cmdline, sizeof(h->cmdline));
	if (!getcwd(h->cwd, sizeof(h->cwd)))
		h->cwd[0] = '\0';
	text_copy(h->libcuda_path, sizeof(h->libcuda_path), doors_library(), strlen(doors_library()));
	memcpy(h->magic, CW_MAGIC, 8);		/* last: a header without it is not one yet */
}

static bool recording_begin(uint32_t forked_from)
{
	const char *mb = rec_getenv("CUWHY_MEMORY_MB");
	unsigned long cap = mb ? strtoul(mb, NULL, 10) : DEFAULT_MB;

	if (cap < 16 || cap > 2048)
		cap = cap < 16 ? 16 : 2048;
	rec.generation++;
	rec.pid = (uint32_t)getpid();
	if (st.loaded.pid != rec.pid)	/* forked: the threads that held locks are not here */
		locks_reset();
	env_look();
	rec_start_ns = rec_mono_ns();
	rec.captures = 0;
	atomic_store(&st.n_threads, 0);
	if (!segments_start((uint64_t)cap << 20, FIRST_SEGMENT))
		return false;
	fill_header(forked_from);
	graph_start();
	dump_forget();
	look_forget();
	stock_forget();
	hang_forget();
	if (!tables_start() || !fail_start() || !function_start() || !site_start() ||
	    !driver_alloc_start())
		rec.h->off_because = CW_REASON_NO_MEMORY;
	else if (doors_open() && !doors_complete())
		rec.h->off_because = CW_REASON_NO_DOORS;
	else
		guard_start();
	return rec.h->off_because == CW_REASON_NONE;
}

/* A page that fork() wipes, so that a child sees at once that it is not the recorded process. */
static atomic_uint *live_page(void)
{
	void *p;

	if (rec.state != &asleep)
		return rec.state;
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, 4096, MADV_WIPEONFORK) != 0) {
		munmap(p, 4096);
		return NULL;
	}
	return p;
}

/* Only one thread starts the recording. In a forked child, the thread that was starting it in the parent does
 * not exist, so its claim does not count. */
static bool claim(uint32_t pid)
{
	uint32_t free = 0;

	if (st.waking_pid != pid) {
		st.waking_pid = pid;
		atomic_store(&st.waking, 0);
	}
	return atomic_compare_exchange_strong(&st.waking, &free, 1);
}

/* Other threads wait for it, usually a few milliseconds, so that their first calls are not lost. But not
 * forever: the starting thread may need the loader's lock, which this thread may hold. */
static bool wait_for_start(void)
{
	const struct timespec pause = {.tv_nsec = 100000};
	uint64_t until = rec_mono_ns() + START_PATIENCE_NS;

	while (atomic_load(&st.waking) && rec_mono_ns() < until)
		nanosleep(&pause, NULL);
	return rec_state() == REC_ON;
}

/* Called by the one thread that starts the recording, with signals blocked. */
static bool start(uint32_t pid)
{
	uint32_t forked_from = rec.pid && rec.pid != pid ? rec.pid : 0;
	atomic_uint *page;
	bool ok;

	errno = 0;
	page = live_page();
	if (!page || sandbox_is_new()) {
		notice_unrecorded(pid, page ? ENOSYS : errno);
		rec.state = &never;
		return false;
	}
	rec.ticks_are_tsc = ticks_are_steady();
	errno = 0;
	ok = recording_begin(forked_from);
	if (!ok)
		notice_unrecorded(pid, errno || rec_fsize_allows(FIRST_SEGMENT) ? errno : EFBIG);
	if (ok) {
		python_start();
		torch_start();
		exit_start();
	}
	atomic_store(page, ok ? REC_ON : REC_OFF);
	rec.state = page;
	return ok;
}

bool rec_wake(void)
{
	int saved = errno;
	struct signals signals;
	uint32_t pid;
	bool ok;

	if (!st.may_record || rec_nesting)
		return false;
	pid = (uint32_t)getpid();
	signals = signals_block();
	if (claim(pid)) {
		rec_nesting++;
		ok = rec_state() == REC_WIPED ? start(pid) : rec_state() == REC_ON;	/* another thread was faster */
		rec_nesting--;
		atomic_store(&st.waking, 0);
	} else {
		ok = wait_for_start();
	}
	signals_unblock(&signals);
	errno = saved;
	return ok;
}

EXPORT int cuwhy_rec_pause(int on);
EXPORT int cuwhy_rec_pause(int on)
{
	unsigned was = rec_state();

	if (was == REC_WIPED || rec.state == &never || (rec.h && rec.h->off_because))
		return -1;
	atomic_store(atomic_load(&rec.state), on ? REC_OFF : REC_ON);
	return was == REC_OFF;
}

EXPORT const char *cuwhy_rec_version(void);
EXPORT const char *cuwhy_rec_version(void)
{
	return CUWHY_VERSION;
}

/* Record number i, NULL: no memory for it. Several threads may need a new block at once: one of theirs is kept. */
static struct rec_thread *record_at(uint32_t i)
{
	struct rec_thread *block = atomic_load(&st.threads[i / THREAD_BLOCK]), *none = NULL;

	if (!block) {
		block = large_new(THREAD_BLOCK * sizeof(*block));
		if (block && !atomic_compare_exchange_strong(&st.threads[i / THREAD_BLOCK], &none, block)) {
			large_free(block, THREAD_BLOCK * sizeof(*block));
			block = none;
		}
	}
	return block ? &block[i % THREAD_BLOCK] : NULL;
}

/* The record of the oldest dead thread, or of some dead one if there are many. What that thread wrote keeps its own
 * thread id. */
static struct rec_thread *reuse(void)
{
	uint32_t n = atomic_load(&st.n_threads), tid, first, looks;

	n = n > MAX_THREADS ? MAX_THREADS : n;
	looks = n < REUSE_LOOKS ? n : REUSE_LOOKS;
	first = n > looks ? atomic_fetch_add(&st.next_look, looks) : 0;
	for (uint32_t i = 0; i < looks; i++) {	/* in order of age */
		struct rec_thread *t = record_at((first + i) % n);

		tid = t ? shared_get(&t->tid) : 0;
		if (!tid || t->generation != rec.generation || !thread_is_gone(tid))
			continue;
		/* two new threads may want it: the one that still finds the dead owner's tid gets it */
		if (__atomic_compare_exchange_n(&t->tid, &tid, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return t;
	}
	return NULL;
}

const struct rec_thread *rec_thread_of_nodes(const struct cw_ring *nodes)
{
	uint32_t n = atomic_load(&st.n_threads);

	for (uint32_t i = 0; nodes && i < n && i < MAX_THREADS; i++) {
		const struct rec_thread *t = record_at(i);

		if (t && t->generation == rec.generation && t->nodes == nodes)
			return t;
	}
	return NULL;
}

static void ring_own(struct cw_ring *r, uint32_t tid)
{
	if (!r)
		return;
	r->tid = tid;
	r->wait.since_ns = 0;		/* the old owner may have ended while it was polling */
	prctl(PR_GET_NAME, r->comm);
}

static struct rec_thread *record_new(void)
{
	uint32_t i = atomic_fetch_add(&st.n_threads, 1);
	struct rec_thread *t = i < MAX_THREADS ? record_at(i) : NULL;

	if (t)
		memset(t, 0, offsetof(struct rec_thread, chain));
	return t;
}

struct rec_thread *rec_thread_start(void)
{
	int saved = errno;
	uint32_t tid = (uint32_t)syscall(SYS_gettid);
	struct rec_thread *t = atomic_load(&st.n_threads) >= KEEP_RINGS ? reuse() : NULL;

	if (!t)
		t = record_new();
	if (!t) {
		shared_add(&rec.h->lost_threads, 1);
		rec_self = NULL;
		rec_nesting = REC_NEVER_HERE;
		errno = saved;
		return NULL;
	}
	t->error = &errno;
	t->node_depth = 0;
	t->device = DEVICE_ASK;
	t->log_len = 0;
	t->dump_check_ticks = 0;
	t->chain.n = t->chain.off = 0;
	t->chain.state = NULL;
	t->chain.first = 1;
	t->module.self = NULL;
	t->forward_nodes = NULL;
	t->forward_of = NULL;
	memset(&t->turns, 0, sizeof(t->turns));
	t->caller = t->runtime_caller = NULL;
	t->n_copies = 0;
	t->workspace = 0;
	t->generation = rec.generation;
	rec_self = t;
	shared_set(&t->tid, tid);
	if (!t->calls)
		t->calls = ring_new(CW_CHUNK_CALLS, sizeof(struct cw_call), CW_RING_CALLS);
	ring_own(t->calls, tid);
	ring_own(t->launches, tid);
	ring_own(t->nodes, tid);
	errno = saved;
	return t;
}

/* Launch and node rings are large, so a thread gets one when it first needs it. */
struct cw_ring *rec_launch_ring(struct rec_thread *t)
{
	if (!t->launches && !t->no_launch_ring) {
		t->launches = ring_new(CW_CHUNK_LAUNCHES, sizeof(struct cw_launch), CW_RING_LAUNCHES);
		ring_own(t->launches, t->tid);
		t->turns.links = 0;	/* look at the loops again: there is room for them now */
		if (t->launches) {
			chunk_warm(t->launches, sizeof(*t->launches) + CW_RING_LAUNCHES * sizeof(struct cw_launch));
		} else {
			t->no_launch_ring = true;
			shared_add(&rec.h->lost_threads, 1);
		}
	}
	return t->launches;
}

struct cw_ring *rec_node_ring(struct rec_thread *t)
{
	if (!t->nodes && !t->no_node_ring) {
		t->nodes = ring_new_with(CW_CHUNK_NODES, sizeof(struct cw_node), CW_RING_NODES,
					 CW_RING_NODES * sizeof(uint16_t));
		ring_own(t->nodes, t->tid);
		t->no_node_ring = !t->nodes;
	}
	return t->nodes;
}

__attribute__((constructor)) static void load(void)
{
	/* A set-uid program must not follow its caller's environment. (The loader already drops most
	 * preloads there, but not from trusted directories.) */
	if (getauxval(AT_SECURE))
		return;
	env_load();
	st.may_record = rec_getenv("CUWHY_SOCK") != NULL;
	if (!st.may_record)
		return;
	notice_load();
	sandbox_load();
	st.loaded.pid = (uint32_t)getpid();
	st.loaded.ticks = arch_ticks();
	st.loaded.mono_ns = rec_mono_ns();
	python_hook_early();
}
