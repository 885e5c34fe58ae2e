/* SPDX-License-Identifier: Apache-2.0
 * Probes the GPU after a call that waited: with dumps armed, the driver reports a stray store late.
 *
 * Without dumps, a call that waits for a kernel with one stray store takes 100 to 185 ms and returns the error. With
 * dumps armed, it returns 0 at once; the GPU is stopped meanwhile, and the error comes 80 to 110 ms later (H200, R580;
 * 16 of 16 programs). Until then, waiting again, queries, events, copies and allocations return 0 at once: they show
 * nothing. But no kernel starts on a stopped GPU, and the driver's memset is a kernel: the first one took 49 to 97 ms, or
 * in one program 276 us because the call before it had already taken 63 ms. In a healthy program a memset and the wait
 * for it take 8 us (99 of 100: 9 us; the slowest 31 us). So after a call that waited, a memset of 4 bytes in a stream of
 * our own tells whether there is something to wait for. `tests/gpu/late.py --measure` measures it.
 *
 * That adds half to the cost of a launch that is waited for, so we look only if a kernel ran that is not
 * PyTorch's or NVIDIA's own (rec_stock.c). A slow look may also mean that other streams keep the GPU busy: what is lost
 * by that is limited (may_look). A process that ends looks whatever ran (look_last), instead of waiting until no error
 * can come anymore.
 */
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "rec.h"

#define NOT_READY	600
#define NON_BLOCKING	1
#define RELAXED		2

#define US		1000ull
#define MS		1000000ull
#define QUICK_NS	(200 * US)	/* a healthy GPU is faster: 99 us at most; the shortest stop took 276 us */
#define FIRST_NS	(25 * MS)	/* the first one in a context: the driver loads its memset, about 5 ms */
#define LATE_NS		(100 * MS)	/* after a slow look: the error came 20 to 25 ms after it */
#define STEP_NS		(1 * MS)
/* What decides that there was no fault is counted in naps, not read off the clock: while the whole machine or this process was
 * stopped, time passed in which neither the driver nor we could run. */
#define HELD_NAPS	200		/* a stop is shorter: 97 ms at most. A GPU that takes longer is busy */
#define LATE_NAPS	(LATE_NS / STEP_NS)

/* False alarms may take this share of the time, and this many at once. */
#define SHARE		100
#define AT_ONCE		3

#define MAX_CONTEXTS	16

HOT_DATA _Atomic uint8_t look_due[CW_MAX_DEVICES];
HOT_DATA _Atomic bool look_graphs;

/* What a look needs in one context. Ids are never reused, handles are. */
struct place {
	uint64_t context, id;		/* 0 = free */
	int device;
	void *stream;
	uint64_t memory;
	bool failed;			/* could not be made: no looks here */
};

static struct {
	struct spin lock;
	struct place place[MAX_CONTEXTS];
	_Atomic uint32_t alarms;	/* threads that wait for a fault */
	_Atomic uint64_t paid_ns;	/* when the false alarms so far will have become less than their share */
	_Atomic bool prepared;		/* a first place was made, or could not be made */
} look;
LOCK_LISTED(look, look.lock);

void look_forget(void)
{
	memset(&look, 0, sizeof(look));
	memset((void *)look_due, 0, sizeof(look_due));
	atomic_store(&look_graphs, false);
}

/* A high priority, so that a busy stream delays it as little as possible; non-blocking, so that it neither waits for
 * the program's default stream nor holds it up. */
static bool place_make(struct place *p)
{
	CUresult (*stream)(void **, unsigned, int) = door(ENTRY_cuStreamCreateWithPriority);
	CUresult (*alloc)(uint64_t *, size_t) = door(ENTRY_cuMemAlloc_v2);
	CUresult (*destroy)(void *) = door(ENTRY_cuStreamDestroy_v2);
	int least = 0, greatest = 0;

	if (drv.cuCtxGetStreamPriorityRange)
		drv.cuCtxGetStreamPriorityRange(&least, &greatest);
	if (!stream || !alloc || !destroy || stream(&p->stream, NON_BLOCKING, greatest))
		return false;
	if (alloc(&p->memory, sizeof(uint32_t)) == 0)
		return true;
	destroy(p->stream);
	return false;
}

static CUresult place_fill(const struct place *p)
{
	CUresult (*fill)(uint64_t, unsigned, size_t, void *) = door(ENTRY_cuMemsetD32Async);

	return fill(p->memory, 0, 1, p->stream);
}

/* With the lock held. */
static struct place *place_find(uint64_t context, uint64_t id)
{
	for (int i = 0; i < MAX_CONTEXTS; i++)
		if (look.place[i].context == context && look.place[i].id == id)
			return &look.place[i];
	return NULL;
}

enum found { NOWHERE, READY, FRESH };

/* The current context's place; a copy, since another thread may end some other context. If there is none yet and `make`,
 * it is made. */
static enum found place_here(struct place *out, bool make)
{
	void *context = NULL;
	uint64_t id = 0;
	struct place *p;
	enum found found = NOWHERE;

	if (!drv.cuCtxGetCurrent || drv.cuCtxGetCurrent(&context) || !context || !drv.cuCtxGetId ||
	    drv.cuCtxGetId(context, &id) || !door(ENTRY_cuMemsetD32Async) || !door(ENTRY_cuStreamQuery) ||
	    !spin_try(&look.lock))
		return NOWHERE;
	p = place_find((uint64_t)context, id);
	if (p) {
		found = p->failed ? NOWHERE : READY;
	} else if (make && (p = place_find(0, 0)) != NULL) {
		*p = (struct place){.context = (uint64_t)context, .id = id, .device = current_device()};
		p->failed = !place_make(p);
		found = p->failed ? NOWHERE : FRESH;
		if (p->failed)
			shared_add(&rec.h->lost_looks, 1);
	}
	if (found)
		*out = *p;
	spin_done(&look.lock);
	return found;
}

/* Its stream and memory went with it. */
void look_context_gone(uint64_t context)
{
	if (!spin_try(&look.lock))
		return;
	for (int i = 0; i < MAX_CONTEXTS; i++)
		if (look.place[i].context == context)
			look.place[i] = (struct place){0};
	spin_done(&look.lock);
}

/* A primary context ends when it is no longer retained, or at a reset, after which the same handle is another context. */
void look_primary_gone(int device, bool certainly)
{
	unsigned flags;
	int active = 0;

	if (!certainly && drv.cuDevicePrimaryCtxGetState &&
	    drv.cuDevicePrimaryCtxGetState(device, &flags, &active) == 0 && active)
		return;
	if (!spin_try(&look.lock))
		return;
	for (int i = 0; i < MAX_CONTEXTS; i++)
		if (look.place[i].device == device)
			look.place[i] = (struct place){0};
	spin_done(&look.lock);
}

/* Other threads may be capturing a stream in a mode that forbids such calls in every thread of the process. */
static int relaxed_begin(void)
{
	int mode = RELAXED;

	if (drv.cuThreadExchangeStreamCaptureMode)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
	return mode;
}

static void relaxed_end(int mode)
{
	if (drv.cuThreadExchangeStreamCaptureMode)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
}

static bool capturing(void)
{
	return atomic_load_explicit(&rec.captures, memory_order_relaxed) != 0;
}

static void look_nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
}

/* Waits for the memset. A driver call that waits would not do: the program may have a kernel that fills the GPU until
 * this very thread tells it to end. */
static CUresult place_wait(const struct place *p, uint64_t began, uint64_t limit_ns)
{
	CUresult (*query)(void *) = door(ENTRY_cuStreamQuery), r;
	uint64_t ns;

	while ((r = query(p->stream)) == NOT_READY && (ns = rec_mono_ns() - began) < limit_ns)
		if (ns > QUICK_NS)
			look_nap();
	return r;
}

/* Loads the driver's memset while nothing is at stake. And waits for it: the program's own cuCtxSynchronize would wait
 * for it as well, on a GPU that is stopped by then, and the look would come too late. */
void look_prepare(void)
{
	struct place p;
	int mode;

	if (!dump_armed() || failed_before() || capturing())
		return;
	mode = relaxed_begin();
	if (place_here(&p, true) == FRESH && place_fill(&p) == 0)
		place_wait(&p, rec_mono_ns(), FIRST_NS);
	if (current_device() >= 0)
		atomic_store(&look.prepared, true);
	relaxed_end(mode);
}

void look_prepare_first(void)
{
	if (!atomic_load_explicit(&look.prepared, memory_order_relaxed))
		look_prepare();
}

/* The memset was slow. Either the error or the dump follows, or the GPU was busy. */
static CUresult wait_for_fault(const struct place *p)
{
	CUresult (*query)(void *) = door(ENTRY_cuStreamQuery), r;
	unsigned naps;

	atomic_fetch_add(&look.alarms, 1);
	for (naps = 0; (r = query(p->stream)) == NOT_READY && naps < HELD_NAPS; naps++)
		look_nap();
	naps = r == 0 ? LATE_NAPS : 0;
	/* not ready: another thread looks, too */
	while ((r == 0 || r == NOT_READY) && !dump_exists() && !failed_before() && naps-- > 0) {
		look_nap();
		r = query(p->stream);
	}
	atomic_fetch_sub(&look.alarms, 1);
	return r;
}

/* Is there still time that may be lost? Each false alarm is paid for by SHARE times as long a rest, but AT_ONCE of them
 * may be owed. */
static bool may_look(uint64_t now)
{
	uint64_t paid = atomic_load(&look.paid_ns);

	return paid < now + AT_ONCE * SHARE * LATE_NS;
}

static void false_alarm(uint64_t began)
{
	uint64_t now = rec_mono_ns(), paid = atomic_load(&look.paid_ns);

	atomic_store(&look.paid_ns, (paid > now ? paid : now) + SHARE * (now - began));
	shared_add(&rec.h->n_false_looks, 1);
}

/* `healthy`: the GPU ran it at once. */
static CUresult look_once(const struct place *p, uint64_t limit_ns, bool *healthy)
{
	uint64_t began = rec_mono_ns();
	CUresult r = place_fill(p);

	if (r == 0)
		r = place_wait(p, began, limit_ns);
	/* the GPU runs again before the error comes: then only a thread that has waited longer knows */
	*healthy = r == 0 && rec_mono_ns() - began < limit_ns && !atomic_load(&look.alarms);
	if (*healthy)
		return 0;
	if (r == 0 || r == NOT_READY)
		r = wait_for_fault(p);
	return r == NOT_READY ? 0 : r;
}

/* In the current context; NOWHERE if there is no look. */
static enum found look_here(bool make, uint64_t limit_ns, CUresult *r, bool *healthy)
{
	int mode = relaxed_begin();
	struct place p;
	enum found found = place_here(&p, make);
	bool first = true, second = false;

	*r = found == FRESH ? look_once(&p, FIRST_NS, &first) : 0;
	if (found && !*r)
		*r = look_once(&p, limit_ns, &second);
	*healthy = first && second;
	relaxed_end(mode);
	return found;
}

CUresult look_now(int device)
{
	_Atomic uint8_t *due = &look_due[device];
	uint8_t was = LOOK_DUE;
	uint64_t began = rec_mono_ns();
	enum found found;
	bool healthy;
	CUresult r;

	if (!dump_armed() || failed_before() || capturing() || !may_look(began))
		return 0;
	/* a thread that waits at the same time looks for itself */
	atomic_compare_exchange_strong(due, &was, LOOK_BUSY);
	found = look_here(true, QUICK_NS, &r, &healthy);
	if (found)
		shared_add(&rec.h->n_looks, 1);
	if (found && !healthy && !r && !dump_exists() && !failed_before())
		false_alarm(began);
	was = LOOK_BUSY;
	atomic_compare_exchange_strong(due, &was, found ? 0 : LOOK_DUE);	/* unless another kernel came meanwhile */
	return code_is_sticky(r) ? r : 0;
}

/* Less strict than the others: the caller waits for an error that may still be on its way, and asks again. */
bool look_last(CUresult *error)
{
	bool healthy = false;

	/* making a place loads code, for which the driver waits until running kernels end: maybe forever */
	if (!capturing() && context_is_only())
		look_here(false, FIRST_NS, error, &healthy);
	*error = code_is_sticky(*error) ? *error : 0;
	return healthy;
}
