/* SPDX-License-Identifier: Apache-2.0
 * GPU core dumps: the driver saves what a faulting kernel was doing.
 *
 * Armed in this process alone, through the driver's own API, never through environment variables that
 * others would inherit. By default the driver ends the process after a dump. Told not to, it lets the
 * program continue for a while: calls that wait for the kernel return 0, and the error follows 50 ms to
 * seconds later; for a device-side assert it is the wrong one (719 instead of 710; R580, H200). So every
 * call that reports finished work as successful looks for the dump first. Once there is one, every call
 * that would have failed without us returns the error that the program would have seen, until the
 * process ends. Launches test a flag, not a file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "rec.h"
#include "rec_dump.h"

#define ATTR_ENABLE	1	/* bool */
#define ATTR_ABORT	2	/* bool */
#define ATTR_LIGHT	3	/* bool */
#define ATTR_TRIGGER	4	/* bool */
#define ATTR_FILE	5	/* string */
#define ATTR_PIPE	6	/* string */
#define ATTR_FLAGS	7	/* int */
/* without unrelocated images, global, shared, local and constant memory, and without abort() */
#define FLAGS		(1 | 2 | 4 | 8 | 16 | 32)
#define FLAG_GLOBAL	2		/* without global memory */
#define ASSERT		710
#define NOT_READY	600
#define LAUNCH_FAILED	719	/* "unspecified": true of every fault */
#define LATE_NS		300000000u	/* the driver may report a fault this long after the last call */
#define MS		1000000ull
/* What decides that there was no fault is counted in naps, as in rec_look.c: on a busy machine time passes without anything being done. */
#define NAP_NS		(5 * MS)
#define SETTLE_NAPS	8		/* 40 ms: once the GPU runs again after a fault, the error comes 20 to 25 ms later */
#define SOON_NS		(5000 * MS)	/* for a dump to appear: the library that writes it may come from a cold disk */
#define UNSURE_NS	(1500 * MS)	/* the same, if the driver may have abandoned it */
#define PATIENCE_NS	(10000 * MS)	/* for it to grow or be complete, or for the driver's error */
#define MEMORY_NS	(600000 * MS)	/* for it to be complete, be it with all of the GPU's memory */

#define OFTEN_NS	200000u		/* looking for a dump takes a system call, about 1 us */

HOT_DATA static _Atomic uint64_t dump_often;	/* OFTEN_NS in ticks */

static struct {
	_Atomic bool armed;
	_Atomic bool profiler;	/* a profiler has subscribed */
	_Atomic bool lost;	/* the driver abandoned a dump, and holds its locks forever */
	_Atomic bool late;	/* the fault was found after the program had finished its work */
	_Atomic uint32_t waiting;	/* threads that have the error and wait for the dump */
	_Atomic uint64_t grows_until;	/* that thread waits so long, and longer if the dump has grown by then */
	_Atomic uint64_t well_ticks;	/* no kernel launched before this has a fault that is not reported */
	char path[256], folder[256];
} dump;

static TLS bool waits_here;	/* this thread is one of those */

bool dump_armed(void)
{
	return atomic_load_explicit(&dump.armed, memory_order_relaxed) &&
	       !(shared_get(&rec.h->hang.flags) & CW_HANG_TRIGGERED);
}

bool dump_exists(void)
{
	return access(dump.path, F_OK) == 0;
}

static bool user_has_settings(void)
{
	static const char *const names[] = { "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_ENABLE_LIGHTWEIGHT_COREDUMP",
					    "CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION",
					    "CUDA_COREDUMP_FILE",
					    "CUDA_COREDUMP_GENERATION_FLAGS",
					    "CUDA_ENABLE_USER_TRIGGERED_COREDUMP",
					    "CUDA_COREDUMP_PIPE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (rec_getenv(names[i]))
			return true;
	return false;
}

/* If so, the traceback is already exact, and a launch that waits for a failed assertion while it is being dumped
 * may never return (R580). */
static bool launches_block(void)
{
	const char *v = rec_getenv("CUDA_LAUNCH_BLOCKING");

	return v && *v && strcmp(v, "0") != 0;
}

static bool is_traced(void)
{
	char text[2048], *line;

	rec_read_file("/proc/self/status", text, sizeof(text));
	line = strstr(text, "TracerPid:");
	return line && strtol(line + strlen("TracerPid:"), NULL, 10) != 0;
}

/* One that is loaded and has not subscribed yet would be refused once a context has dumps armed. */
static bool profiler_is_here(void)
{
	struct elf_object proton;

	return atomic_load(&dump.profiler) || elf_find_object("libproton.so", &proton);
}

static bool set(int attribute, const void *value, size_t size)
{
	return drv.cuCoredumpSetAttributeGlobal(attribute, (void *)value, &size) == 0;
}

/* The folder may be gone (the user has logged out), and another user may have created it anew. The system call itself:
 * stat() has another name in older versions of glibc. */
static bool folder_is_ours(void)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, dump.folder, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid();
}

/* folder/core-PID, without stdio. */
static void make_path(const char *folder)
{
	size_t n = strnlen(folder, sizeof(dump.path) - 32);

	text_copy(dump.folder, sizeof(dump.folder), folder, n);
	memcpy(dump.path, folder, n);
	memcpy(dump.path + n, "/core-", 6);
	rec_put_number(dump.path + n + 6, 24, (long)rec.pid);
}

/* The user asked for it: cuwhy run --dump-memory. */
static bool with_memory(void)
{
	return rec_getenv("CUWHY_DUMP_MEMORY") != NULL;
}

static uint64_t patience_ns(void)
{
	return with_memory() ? MEMORY_NS : PATIENCE_NS;
}

/* No memory contents unless asked for, no abort(). Drivers before CUDA 12.5 have two switches for this, later ones have flags. */
static bool set_flags(void)
{
	const int flags = with_memory() ? FLAGS & ~FLAG_GLOBAL : FLAGS;
	const bool light = !with_memory(), no = false;

	return set(ATTR_FLAGS, &flags, sizeof(flags)) ||
	       (set(ATTR_LIGHT, &light, sizeof(light)) && set(ATTR_ABORT, &no, sizeof(no)));
}

/* What a dump of either kind needs, except enabling it. */
static enum cw_reason prepare(const char *folder)
{
	if (user_has_settings())
		return CW_REASON_DUMP_USER;
	if (is_traced())
		return CW_REASON_DUMP_TRACED;
	if (profiler_is_here())
		return CW_REASON_DUMP_PROFILER;
	if (!drv.cuCoredumpSetAttributeGlobal)
		return CW_REASON_DUMP_DRIVER;
	make_path(folder);
	if (!folder_is_ours())
		return CW_REASON_DUMP_FOLDER;
	/* if we could not see a dump, a fault would look like success; and an old one would look like a fault */
	if (dump_exists() || errno != ENOENT)
		return CW_REASON_DUMP_DRIVER;
	if (!set(ATTR_FILE, dump.path, strlen(dump.path) + 1) || !set_flags())
		return CW_REASON_DUMP_DRIVER;
	return CW_REASON_NONE;
}

/* Enabled last: it must never be on with a default file name or with abort(). */
static enum cw_reason arm(const char *folder)
{
	const bool on = true;
	enum cw_reason why = launches_block() ? CW_REASON_DUMP_BLOCKING : prepare(folder);

	if (!why && !set(ATTR_ENABLE, &on, sizeof(on)))
		why = CW_REASON_DUMP_DRIVER;
	return why;
}

/* A dump when something is written to the pipe: for kernels that do not end. */
enum cw_reason dump_arm_trigger(const char *folder, const char *pipe)
{
	const bool on = true;
	enum cw_reason why = prepare(folder);

	if (!why && (!set(ATTR_PIPE, pipe, strlen(pipe) + 1) || !set(ATTR_TRIGGER, &on, sizeof(on))))
		why = CW_REASON_DUMP_DRIVER;
	if (!why)
		text_copy(rec.h->dump_path, sizeof(rec.h->dump_path), dump.path, strlen(dump.path));
	return why;
}

void dump_start(void)
{
	const char *folder = rec_getenv("CUWHY_CORE_DUMP");

	if (atomic_load(&dump.armed) || rec.h->dump_reason)
		return;
	rec.h->dump_reason = folder ? arm(folder) : CW_REASON_ASKED;
	if (rec.h->dump_reason)
		return;
	text_copy(rec.h->dump_path, sizeof(rec.h->dump_path), dump.path, strlen(dump.path));
	atomic_store(&dump_often, rec_ticks_in(OFTEN_NS));
	atomic_store(&dump.armed, true);
}

/* Too late once a context has dumps armed. The recorder may not have started yet. */
void dump_step_aside(void)
{
	const bool off = false;

	if (atomic_load(&dump.armed) && context_ever())
		return;
	atomic_store(&dump.profiler, true);
	if (!atomic_exchange(&dump.armed, false))
		return;
	set(ATTR_ENABLE, &off, sizeof(off));
	rec.h->dump_path[0] = '\0';
	rec.h->dump_reason = CW_REASON_DUMP_PROFILER;
}

/* When the program last used CUDA, or last launched something; 0 = never. */
static uint64_t last_used(bool only_launches)
{
	uint64_t newest = 0;

	for (uint32_t i = 0; i < rec.h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_chunk *c = &rec.h->chunk[i];
		uint32_t kind = shared_get(&c->kind);	/* before the rest, which is complete once it is set */
		const struct cw_ring *r = at(c->off);
		uint64_t ticks;

		if ((kind != CW_CHUNK_LAUNCHES && (kind != CW_CHUNK_CALLS || only_launches)) || !r->head)
			continue;
		/* launches and calls both begin with their sequence number and the time */
		memcpy(&ticks, (const char *)(r + 1) + ((r->head - 1) & (r->n_slots - 1)) * (uint64_t)r->slot_size +
			       sizeof(uint64_t),
		       sizeof(ticks));
		newest = ticks > newest ? ticks : newest;
	}
	return newest;
}

/* Time since the program last used CUDA. */
static uint64_t idle_ns(void)
{
	uint64_t newest = last_used(false), now = rec_ticks(), ns, span;

	rec_clock_mark();
	ns = rec.h->clock1.mono_ns - rec.h->clock0.mono_ns;
	span = rec.h->clock1.ticks - rec.h->clock0.ticks;
	if (!newest || !span || now < newest)
		return newest ? 0 : LATE_NS;
	return (uint64_t)((double)(now - newest) * ((double)ns / (double)span));
}

void dump_forget(void)
{
	atomic_store(&dump.armed, false);	/* a forked child has no CUDA to arm */
	atomic_store(&dump.waiting, 0);		/* nor does it have its parent's threads */
	atomic_store(&rec.dump_error, 0);
	atomic_store(&dump.well_ticks, 0);
	waits_here = false;
}

void dump_left(void)
{
	if (waits_here)
		atomic_fetch_sub(&dump.waiting, 1);
	waits_here = false;
}

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* The driver's own error, which comes late. Until then the driver is still resuming and tearing down in this process:
 * a program notified now that exits at once would collide with it. */
static CUresult driver_error(void)
{
	CUresult (*query)(uint64_t) = door(ENTRY_cuStreamQuery), r = 0;
	uint64_t until = rec_mono_ns() + PATIENCE_NS;

	while (query && (r == 0 || r == NOT_READY) && rec_mono_ns() < until) {
		nap();
		r = query(0);
	}
	return code_is_sticky(r) ? r : LAUNCH_FAILED;
}

/* A thread that waited for the kernel usually finds the dump complete. Another thread may be early, and at the first
 * fault after boot every thread is: then the error comes before the dump is started. One wait is enough: threads that
 * come later stop when the first one is done. */
static bool dump_comes(CUresult driver)
{
	uint64_t until = rec_mono_ns() + (driver == LAUNCH_FAILED ? UNSURE_NS : SOON_NS);

	while (!dump_exists()) {
		if (failed_before() || rec_mono_ns() >= until || !folder_is_ours())
			return false;
		nap();
	}
	return true;
}

/* A signal handler that jumped out in the middle would leave a descriptor open in the program. */
static struct dump_said read_dump(void)
{
	struct signals signals = signals_block();
	struct dump_said said = dump_read(dump.path);

	signals_unblock(&signals);
	return said;
}

/* A dump that still grows is not abandoned, however long it takes: the folder may be slow, the machine busy. */
static struct dump_said whole_dump(void)
{
	uint64_t now = rec_mono_ns(), end = now + MEMORY_NS, until = now + patience_ns(), size = 0;
	struct dump_said said;

	for (; !(said = read_dump()).complete && !failed_before() && now < until && now < end; now = rec_mono_ns()) {
		if (said.size > size)
			until = now + patience_ns();
		size = said.size;
		atomic_store(&dump.grows_until, until);
		nap();
	}
	return said;
}

/* The error that the program would have gotten for this fault without a dump. */
static CUresult plain_error(CUresult driver)
{
	struct dump_said said;

	/* While an assertion is dumped, GPU threads continue and fail the next one: sometimes the driver then abandons
	 * the dump and returns 719. In hundreds of runs it never did so after any other kind of fault. */
	if (!dump_comes(driver)) {
		if (!failed_before())
			atomic_store(&dump.lost, true);
		return driver == LAUNCH_FAILED ? ASSERT : driver;
	}
	said = whole_dump();
	if (!driver && !failed_before())
		driver = driver_error();
	/* an assertion that is dumped becomes 719, and what other threads did meanwhile may be listed before it */
	return said.code == ASSERT || (driver == LAUNCH_FAILED && said.assertion) ? ASSERT : driver;
}

/* The first thread to find it decides which error all threads get. */
static void find_error(CUresult result)
{
	uint32_t none = 0;

	atomic_fetch_add(&dump.waiting, 1);
	waits_here = true;
	if (atomic_compare_exchange_strong(&rec.dump_error, &none, plain_error(result))) {
		exit_at_once_after_fault();
		if (rec.dump_error != result)
			shared_add(&rec.h->dump_enforced, 1);
	}
	waits_here = false;
	atomic_fetch_sub(&dump.waiting, 1);
}

CUresult dump_check(CUresult result)
{
	if (!atomic_load_explicit(&dump.armed, memory_order_relaxed) || (result && !code_is_sticky(result)))
		return result;
	if (failed_before())
		return failed_before();
	/* a requested dump is not a fault: the driver itself reports what it does to the kernel */
	if (shared_get(&rec.h->hang.flags) & CW_HANG_TRIGGERED)
		return result;
	if (!dump_follows(result) && !dump_exists())
		return result;
	find_error(result);
	return failed_before();
}

/* A dump appears 44 ms or more after its kernel has failed, and until then no other kernel runs: two calls in a row that
 * are so short hardly have it between them. If they do, the next call has the error. */
HOT CUresult dump_check_again(void)
{
	struct rec_thread *t = rec_self;
	uint64_t now = rec_ticks();

	if (likely(now - t->dump_check_ticks < atomic_load_explicit(&dump_often, memory_order_relaxed)))
		return failed_before();
	t->dump_check_ticks = now;
	return dump_check(0);
}

static void fault_at_exit(CUresult code)
{
	static const char who[] = "a last look at the GPU";
	struct cw_failure f;
	uint32_t nesting = rec_nesting;	/* in a wrapper or not */

	if (!nesting && !rec_enter())
		return;
	rec_nesting = 2;
	rec_self->caller = NULL;
	fail_init(&f, CW_SRC_DRIVER, code);
	text_copy(f.what, sizeof(f.what), who, sizeof(who) - 1);
	fail_note(&f);
	if (nesting)
		rec_nesting = nesting;
	else
		rec_leave();
}

/* Another thread already has the error, and exiting now would cut off the dump: wait for it. But not if a signal
 * handler on that very thread is what ends the process. */
static bool another_waits(void)
{
	uint64_t until = rec_mono_ns() + SOON_NS + 2 * patience_ns(), now;
	bool any = false;

	while (!waits_here && atomic_load(&dump.waiting) &&
	       ((now = rec_mono_ns()) < until || now < atomic_load(&dump.grows_until) + PATIENCE_NS)) {
		any = true;
		nap();
	}
	return any;
}

/* Two looks at the GPU. If it runs what the first one gives it, it is not stopped, or no longer: then the second one is
 * late enough to get the error. */
static bool is_well(CUresult *error)
{
	uint64_t ticks = rec_ticks();

	if (!look_last(error))
		return false;
	for (int i = 0; i < SETTLE_NAPS && !dump_exists(); i++)
		nap();
	if (dump_exists() || !look_last(error) || dump_exists())
		return false;
	atomic_store(&dump.well_ticks, ticks);
	return true;
}

/* The driver reports a fault some time after the kernel has ended: after a single bad store, a call that waits for the
 * kernel returns 0, and the dump appears 44 to 170 ms later (H200, R580). Without us, a program that exits in that time
 * would have seen the error. Where we may not look at the GPU, we wait for that long. */
static CUresult last_look(bool may_look)
{
	uint64_t idle, naps;
	CUresult code = 0;

	if (!atomic_load(&dump.armed) || failed_before() || (shared_get(&rec.h->hang.flags) & CW_HANG_TRIGGERED))
		return failed_before();
	if (another_waits() && (code = failed_before()) != 0) {
		fault_at_exit(code);	/* that thread may not get to record it anymore */
		return code;
	}
	if (!dump_exists() && (!context_ever() || last_used(true) < atomic_load(&dump.well_ticks) ||
			       (may_look && idle_ns() < LATE_NS && is_well(&code))))
		return 0;
	/* asked once: threads that go on launching must not hold up the end */
	idle = idle_ns();
	naps = idle < LATE_NS ? (LATE_NS - idle + NAP_NS - 1) / NAP_NS : 0;
	while (!code && !dump_exists()) {
		if (!naps--)
			return 0;
		nap();
	}
	code = dump_check(code);
	atomic_store(&dump.late, code != 0);
	if (code)
		fault_at_exit(code);
	return code;
}

/* Before a context is released: refuse the call if it would wait for a lock that is never released. */
CUresult dump_before_release(void)
{
	int saved = errno;
	CUresult code;

	rec_nesting = 2;
	code = last_look(true);
	rec_nesting = 1;
	errno = saved;
	return atomic_load(&dump.lost) ? code : 0;
}

bool dump_at_exit(bool in_order)
{
	bool entered = in_order && !rec_nesting && rec_enter();

	if (entered)
		rec_nesting = 2;
	last_look(entered);
	if (entered)
		rec_leave();
	return atomic_load(&dump.late);
}
