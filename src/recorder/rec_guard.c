/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: address space, memory, and when what was freed is unmapped (see rec_guard.h).
 *
 * Unmapping must not overtake the work that uses the memory, and must not stop the program either. So frees are
 * collected in batches; a batch is closed with an event in each stream that used its members, and is unmapped once its
 * events have happened. Until then a kernel could still use what was freed and nobody would notice: so the parameters
 * of each launch are compared with what waits to be unmapped, and if there is a match the batch is waited for.
 */
#include "rec_guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rec_segment.h"
#include "rec_site.h"

#define UNIT		((uint64_t)2 << 20)	/* the driver's page; a multiple of its granularity */
#define SLAB		((uint64_t)64 << 30)	/* address space reserved at once */
#define SLAB_LEAST	((uint64_t)64 << 20)
#define BUDGET		((uint64_t)16 << 40)	/* then addresses are used again */
#define SLABS_MAX	2048u
#define BLOCK		4096u			/* records allocated at once */
#define BLOCKS_MAX	1024u
#define BATCH		32u
#define BATCHES		64u			/* closed ones, per device */
#define BATCH_STREAMS	8u
#define KEPT_HANDLES	512u
#define LEAST_SCARCE	((uint64_t)1 << 20)	/* when memory is scarce, smaller ones are no longer guarded */

struct guard guard;
HOT_DATA _Atomic bool guard_armed;	/* every launch asks */
static struct spin guard_lock;
LOCK_LISTED(guard, guard_lock);

struct slab {
	uint64_t base;
	uint32_t *unit;			/* record of each page, 0 = none */
	uint32_t n, used, live;		/* pages; pages handed out; allocations in them that are not unmapped */
	uint64_t turn;			/* when it was last begun */
};

struct batch {
	uint32_t first, n;		/* members, chained by `next` */
	uint64_t bytes;
	void *event[BATCH_STREAMS];
	uint32_t n_events;
	bool all;			/* too many streams: wait for the context */
};

static struct {
	struct slab slab[SLABS_MAX];	/* by address */
	uint32_t n_slabs;
	uint64_t reserved, budget, slab_size, turns;
	struct guarded *block[BLOCKS_MAX];
	uint32_t n_records, unused;	/* records ever used; chain of those that can be used again */
	struct { uint64_t handle, len; int device; } kept[KEPT_HANDLES];
	uint32_t n_kept;
	uint64_t kept_bytes;
	struct guard_device {
		void *context;
		bool ready, failed;
		uint64_t total, least;
		struct batch open, closed[BATCHES];
		uint32_t head, tail;	/* of closed */
		uint64_t allocated, reserved, count;	/* PyTorch's */
	} device[CW_MAX_DEVICES];
	_Atomic uint32_t pending;	/* freed and still mapped */
	_Atomic uint32_t asked;
	_Atomic uint64_t unseen;	/* ticks */
} g;

static struct guarded *record(uint32_t i)
{
	return &g.block[i / BLOCK][i % BLOCK];
}

/* Where this thread may have no record: a free must not fail for that. */
static bool guard_hold(void)
{
	return rec_self ? spin_try(&guard_lock) : spin_try_early(&guard_lock);
}

/* ---- what was asked for ------------------------------------------------------------------------------------ */

static uint64_t number_of(const char *text)
{
	uint64_t v = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		v = v * 10 + (uint64_t)(*text - '0');
	return *text == 'G' ? v << 30 : *text == 'T' ? v << 40 : *text == 'M' ? v << 20 : v;
}

static bool option_is(const char *word, size_t len, const char *name, const char **value)
{
	size_t n = strlen(name);

	*value = word + n;
	return len >= n && strncmp(word, name, n) == 0;
}

/* FILE:A-B, FILE:A or FILE */
static void only_parse(const char *text, size_t len)
{
	size_t end = len;

	guard.only_from = 0;
	guard.only_to = UINT32_MAX;
	for (size_t i = len; i > 0; i--)
		if (text[i - 1] == ':' && i < len) {
			const char *dash = memchr(text + i, '-', len - i);

			end = i - 1;
			guard.only_from = (uint32_t)number_of(text + i);
			guard.only_to = dash ? (uint32_t)number_of(dash + 1) : guard.only_from;
			break;
		}
	text_copy(guard.only, sizeof(guard.only), text, end);
}

/* `cuwhy run` has checked the words. */
static void guard_parse(const char *list)
{
	guard.before = guard.values = false;
	guard.align = 16;
	guard.sample = 1;
	guard.only[0] = '\0';
	g.budget = BUDGET;
	while (*list) {
		size_t len = strcspn(list, ",");
		const char *value;

		if (option_is(list, len, "before", &value))
			guard.before = true;
		else if (option_is(list, len, "values", &value))
			guard.values = true;
		else if (option_is(list, len, "align=", &value))
			guard.align = number_of(value) == 256 ? 256 : 16;
		else if (option_is(list, len, "sample=1/", &value))
			guard.sample = number_of(value) ? (uint32_t)number_of(value) : 1;
		else if (option_is(list, len, "budget=", &value))
			g.budget = number_of(value) ? number_of(value) : BUDGET;
		else if (option_is(list, len, "only=", &value))
			only_parse(value, len - (size_t)(value - list));
		list += len + (list[len] == ',');
	}
	g.slab_size = g.budget / 4 < SLAB ? g.budget / 4 : SLAB;
	g.slab_size = g.slab_size < SLAB_LEAST ? SLAB_LEAST : g.slab_size & ~(UNIT - 1);
}

void guard_start(void)
{
	const char *list = rec_getenv("CUWHY_GUARD");

	atomic_store(&guard_armed, false);
	if (!list)
		return;
	memset(&g, 0, sizeof(g));
	g.n_records = 1;
	guard_parse(list);
	guard.told = chunk_new(CW_CHUNK_GUARD, sizeof(*guard.told), 0);
	if (!guard.told)
		return;
	guard.told->flags = (guard.before ? CW_GUARD_BEFORE : 0) | (guard.values ? CW_GUARD_VALUES : 0);
	guard.told->align = guard.align;
	guard.told->sample = guard.sample;
	text_copy(guard.told->only, sizeof(guard.told->only), guard.only, strlen(guard.only));
	atomic_store(&guard_armed, true);
}

void guard_refuse(const char *why)
{
	static const char before[] = "cuwhy: --guard: ", after[] = "\n";

	if (write(STDERR_FILENO, before, sizeof(before) - 1) < 0 || write(STDERR_FILENO, why, strlen(why)) < 0 ||
	    write(STDERR_FILENO, after, sizeof(after) - 1) < 0)
		_exit(2);
	_exit(2);
}

void guard_refuse_sharing(void)
{
	guard_refuse("the program shares GPU memory with another process (cuIpcGetMemHandle), which guarded memory cannot do; "
		     "run it without --guard, or guard other lines: --guard=only=FILE:A-B");
}

static void skipped(enum cw_guard_skip why)
{
	shared_add(&guard.told->skipped[why], 1);
}

/* ---- address space ------------------------------------------------------------------------------------------- */

/* The slab that contains the address; called with the lock held. */
static struct slab *slab_at(uint64_t address)
{
	uint32_t low = 0, high = g.n_slabs;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		struct slab *s = &g.slab[middle];

		if (address < s->base)
			high = middle;
		else if (address - s->base >= s->n * UNIT)
			low = middle + 1;
		else
			return s;
	}
	return NULL;
}

static uint32_t record_at(uint64_t address)
{
	struct slab *s = slab_at(address);

	return s ? s->unit[(address - s->base) / UNIT] : 0;
}

/* Reserves another slab. The driver may be slow, but this happens once in thousands of allocations. */
static struct slab *slab_new(uint64_t size)
{
	CUresult (*reserve)(uint64_t *, size_t, size_t, uint64_t, uint64_t) = door(ENTRY_cuMemAddressReserve);
	struct slab s = {.n = (uint32_t)(size / UNIT), .turn = ++g.turns};
	uint32_t at = g.n_slabs;

	if (!reserve || g.n_slabs == SLABS_MAX)
		return NULL;
	s.unit = large_new(s.n * sizeof(*s.unit));
	if (!s.unit || reserve(&s.base, size, 0, 0, 0) != 0) {
		if (s.unit)
			large_free(s.unit, s.n * sizeof(*s.unit));
		return NULL;
	}
	while (at > 0 && g.slab[at - 1].base > s.base) {
		g.slab[at] = g.slab[at - 1];
		at--;
	}
	g.slab[at] = s;
	g.n_slabs++;
	g.reserved += size;
	return &g.slab[at];
}

/* The newest slab, if there is room; else another one; when the budget is spent, the oldest that holds nothing. */
static struct slab *slab_with(uint32_t units)
{
	struct slab *newest = NULL, *idle = NULL;
	uint64_t size = (units + 1) * UNIT > g.slab_size ? (units + 1) * UNIT : g.slab_size;

	for (uint32_t i = 0; i < g.n_slabs; i++) {
		struct slab *s = &g.slab[i];

		if (!newest || s->turn > newest->turn)
			newest = s;
		if (!s->live && s->used && s->n > units && (!idle || s->turn < idle->turn))
			idle = s;
	}
	if (newest && newest->n - newest->used >= units + 1)
		return newest;
	if (g.reserved + size <= g.budget || !idle)
		return slab_new(size);
	idle->used = 0;
	idle->turn = ++g.turns;
	shared_add(&guard.told->reused, 1);
	return idle;
}

static uint32_t record_new(void)
{
	uint32_t i = g.unused;

	if (i) {
		g.unused = record(i)->next;
		return i;
	}
	if (g.n_records == BLOCK * BLOCKS_MAX)
		return 0;
	i = g.n_records;
	if (!g.block[i / BLOCK])
		g.block[i / BLOCK] = large_new(BLOCK * sizeof(struct guarded));
	if (!g.block[i / BLOCK])
		return 0;
	g.n_records++;
	return i;
}

/* A range with a hole behind it. A slab begins with a hole, too: the first page is never mapped. */
static uint32_t range_take(uint64_t len)
{
	uint32_t units = (uint32_t)(len / UNIT), i;
	struct slab *s = slab_with(units);

	i = s ? record_new() : 0;
	if (!i)
		return 0;
	if (!s->used)
		s->used = 1;
	if (s->n - s->used < units + 1)	/* it was made for exactly this one */
		return 0;
	*record(i) = (struct guarded){.map = s->base + s->used * UNIT, .len = len, .state = GUARD_MAKING};
	for (uint32_t k = 0; k < units; k++)
		s->unit[s->used + k] = i;
	s->used += units + 1;
	s->live++;
	return i;
}

static void range_drop(uint32_t i)
{
	struct guarded *r = record(i);
	struct slab *s = slab_at(r->map);

	for (uint32_t k = 0; s && k < r->len / UNIT; k++)
		s->unit[(r->map - s->base) / UNIT + k] = 0;
	if (s)
		s->live--;
	r->state = GUARD_UNUSED;
	r->next = g.unused;
	g.unused = i;
}

/* ---- devices ------------------------------------------------------------------------------------------------- */

/* Another device's context may be current in the thread that frees. */
static bool device_enter(int device)
{
	CUresult (*push)(void *) = door(ENTRY_cuCtxPushCurrent_v2);
	void *now = NULL;

	if (drv.cuCtxGetCurrent && drv.cuCtxGetCurrent(&now) == 0 && now == g.device[device].context)
		return false;
	return push && push(g.device[device].context) == 0;
}

static void device_leave(bool entered)
{
	CUresult (*pop)(void **) = door(ENTRY_cuCtxPopCurrent_v2);
	void *was;

	if (entered && pop)
		pop(&was);
}

struct alloc_prop { int type, handles, location, device; void *meta; unsigned char flags[8]; };
struct access { int location, device, flags; };
enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3 };

static struct alloc_prop prop_of(int device)
{
	return (struct alloc_prop){.type = PINNED, .location = ON_DEVICE, .device = device};
}

static struct guard_device *device_ready(int device)
{
	struct guard_device *d = &g.device[device];
	struct alloc_prop prop = prop_of(device);
	size_t granularity = 0, total = 0;

	if (d->ready || d->failed)
		return d->ready ? d : NULL;
	if (drv.cuCtxGetCurrent)
		drv.cuCtxGetCurrent(&d->context);
	if (drv.cuDeviceTotalMem_v2)
		drv.cuDeviceTotalMem_v2(&total, device);
	d->total = total;
	if (!d->context || !drv.cuMemGetAllocationGranularity ||
	    drv.cuMemGetAllocationGranularity(&granularity, &prop, 0) != 0 || UNIT % granularity ||
	    !guard_check_start(device)) {
		d->failed = true;
		return NULL;
	}
	d->ready = true;
	return d;
}

/* Relaxed, so that memory can be mapped while a stream is captured. */
static int capture_relax(void)
{
	int mode = 2;

	if (!atomic_load_explicit(&rec.captures, memory_order_relaxed) || !drv.cuThreadExchangeStreamCaptureMode)
		return -1;
	return drv.cuThreadExchangeStreamCaptureMode(&mode) == 0 ? mode : -1;
}

static void capture_restore(int mode)
{
	if (mode >= 0)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Called with the lock held. */
static uint64_t handle_take(int device, uint64_t len)
{
	for (uint32_t i = g.n_kept; i > 0; i--) {
		uint64_t handle = g.kept[i - 1].handle;

		if (g.kept[i - 1].device != device || g.kept[i - 1].len != len)
			continue;
		g.kept_bytes -= len;
		g.kept[i - 1] = g.kept[--g.n_kept];
		return handle;
	}
	return 0;
}

static void handle_release(uint64_t handle)
{
	CUresult (*release)(uint64_t) = door(ENTRY_cuMemRelease);

	if (handle && release)
		release(handle);
}

static void handle_keep(uint64_t handle, uint64_t len, int device)
{
	bool kept = false;

	if (guard_hold()) {
		if (g.n_kept < KEPT_HANDLES && g.kept_bytes + len <= g.device[device].total / 8) {
			g.kept[g.n_kept].handle = handle;
			g.kept[g.n_kept].len = len;
			g.kept[g.n_kept++].device = device;
			g.kept_bytes += len;
			kept = true;
		}
		spin_done(&guard_lock);
	}
	if (!kept)
		handle_release(handle);
}

static void handles_release(void)
{
	uint64_t handle;

	do {
		handle = 0;
		if (guard_hold()) {
			if (g.n_kept) {
				handle = g.kept[--g.n_kept].handle;
				g.kept_bytes -= g.kept[g.n_kept].len;
			}
			spin_done(&guard_lock);
		}
		handle_release(handle);
	} while (handle);
}

static CUresult pages_access(const struct guarded *r)
{
	CUresult (*set)(uint64_t, size_t, const struct access *, size_t) = door(ENTRY_cuMemSetAccess);
	struct access who[CW_MAX_DEVICES];
	size_t n = 0;

	who[n++] = (struct access){ON_DEVICE, r->device, READ_WRITE};
	for (int i = 0; i < CW_MAX_DEVICES && i < (int)rec.h->device_count; i++)
		if (i != r->device && (shared_get(&rec.h->peers[i]) >> r->device & 1))
			who[n++] = (struct access){ON_DEVICE, i, READ_WRITE};
	return set ? set(r->map, r->len, who, n) : CU_NO_DRIVER;
}

static CUresult pages_map(struct guarded *r)
{
	CUresult (*create)(uint64_t *, size_t, const void *, uint64_t) = door(ENTRY_cuMemCreate);
	CUresult (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t) = door(ENTRY_cuMemMap);
	CUresult (*unmap)(uint64_t, size_t) = door(ENTRY_cuMemUnmap);
	struct alloc_prop prop = prop_of(r->device);
	CUresult code;

	if (!create || !map || !unmap)
		return CU_NO_DRIVER;
	code = r->handle ? 0 : create(&r->handle, r->len, &prop, 0);
	if (code == CU_OUT_OF_MEMORY) {		/* what was freed may still hold it */
		guard_flush(true);
		code = create(&r->handle, r->len, &prop, 0);
	}
	if (code) {
		r->handle = 0;
		return code;
	}
	code = map(r->map, r->len, 0, r->handle, 0);
	if (!code) {
		code = pages_access(r);
		if (code)
			unmap(r->map, r->len);
	}
	if (code) {
		handle_release(r->handle);
		r->handle = 0;
	}
	return code;
}

static void pages_unmap(const struct guarded *r)
{
	CUresult (*unmap)(uint64_t, size_t) = door(ENTRY_cuMemUnmap);

	if (unmap && unmap(r->map, r->len) == 0)
		handle_keep(r->handle, r->len, r->device);
}

/* ---- batches of what was freed --------------------------------------------------------------------------------- */

static void batch_add_stream(uint64_t *streams, uint32_t *n, uint64_t stream)
{
	for (uint32_t i = 0; i < *n; i++)
		if (streams[i] == stream)
			return;
	if (*n <= BATCH_STREAMS)
		streams[(*n)++] = stream;
}

/* The streams of a batch; more than BATCH_STREAMS: too many. */
static uint32_t batch_streams(const struct batch *b, uint64_t *streams)
{
	uint32_t n = 0;

	for (uint32_t i = b->first; i; i = record(i)->next) {
		const struct guarded *r = record(i);

		if (r->n_streams > GUARD_STREAMS)
			return BATCH_STREAMS + 1;
		for (uint32_t k = 0; k < r->n_streams; k++)
			batch_add_stream(streams, &n, r->stream[k]);
	}
	return n;
}

static void batch_close(struct batch *b)
{
	CUresult (*create)(void **, unsigned) = door(ENTRY_cuEventCreate);
	CUresult (*mark)(void *, uint64_t) = door(ENTRY_cuEventRecord);
	uint64_t streams[BATCH_STREAMS + 1];
	uint32_t n = batch_streams(b, streams);

	b->all = n > BATCH_STREAMS || !create || !mark;
	for (uint32_t i = 0; i < n && !b->all; i++) {
		if (create(&b->event[b->n_events], 2) != 0) {	/* no timing */
			b->all = true;
			break;
		}
		b->n_events++;
		/* a stream that is gone has no work left */
		mark(b->event[b->n_events - 1], streams[i]);
	}
}

static bool batch_done(const struct batch *b, bool wait)
{
	CUresult (*ask)(void *) = door(ENTRY_cuEventQuery), (*sync)(void *) = door(ENTRY_cuEventSynchronize);
	CUresult (*all)(void) = door(ENTRY_cuCtxSynchronize);

	if (b->all)
		return wait ? all && all() == 0 : false;
	for (uint32_t i = 0; i < b->n_events; i++)
		if ((wait ? sync(b->event[i]) : ask(b->event[i])) != 0)
			return false;
	return true;
}

/* All work on its members has ended: check what is behind them, unmap them. */
static void batch_finish(struct batch *b)
{
	CUresult (*destroy)(void *) = door(ENTRY_cuEventDestroy_v2);
	struct guarded copy[BATCH];
	uint32_t n = 0, next;

	for (uint32_t i = 0; i < b->n_events; i++)
		destroy(b->event[i]);
	for (uint32_t i = b->first; i; i = next) {
		next = record(i)->next;
		copy[n++] = *record(i);
		if (n < BATCH && next)
			continue;
		guard_check(copy, n);
		for (uint32_t k = 0; k < n; k++)
			pages_unmap(&copy[k]);
		n = 0;
	}
	if (!guard_hold())
		return;
	for (uint32_t i = b->first; i; i = next) {
		next = record(i)->next;
		range_drop(i);
		atomic_fetch_sub(&g.pending, 1);
	}
	spin_done(&guard_lock);
}

/* The oldest closed batch, if it is done. `wait`: when it is done. False: there is none. */
static bool batch_step(int device, bool wait)
{
	struct guard_device *d = &g.device[device];
	struct batch b;
	bool entered, done;

	if (!guard_hold())
		return false;
	if (d->head == d->tail) {
		spin_done(&guard_lock);
		return false;
	}
	b = d->closed[d->head % BATCHES];
	d->head++;
	spin_done(&guard_lock);
	entered = device_enter(device);
	done = batch_done(&b, wait);
	if (done)
		batch_finish(&b);
	device_leave(entered);
	if (done)
		return true;
	if (!guard_hold())
		return false;
	d->head--;		/* back to its place: nobody else takes one while the head is ours to move */
	d->closed[d->head % BATCHES] = b;
	spin_done(&guard_lock);
	return false;
}

/* One thread at a time empties the queue: batch_step() puts back what is not done. */
static struct spin step_lock;
LOCK_LISTED(guard_step, step_lock);

static bool step_hold(void)
{
	uint32_t me = rec_self ? rec_self->tid : SPIN_STRANGER;

	return spin_once(&step_lock, me);
}

static void batches_step(int device, bool wait)
{
	if (!(wait ? spin_wait(&step_lock, rec_self ? rec_self->tid : SPIN_STRANGER) : step_hold()))
		return;
	while (batch_step(device, wait))
		;
	spin_done(&step_lock);
}

/* Closes the open batch if it is large enough, or has anything in it at all. */
static void open_batch_close(int device, bool any)
{
	struct guard_device *d = &g.device[device];
	struct batch b = {0};
	bool entered;

	if (atomic_load_explicit(&rec.captures, memory_order_relaxed) || !guard_hold())
		return;
	if (d->open.n && (any || d->open.n >= BATCH || d->open.bytes > d->total / 32) &&
	    d->tail - d->head < BATCHES - 1) {
		b = d->open;
		d->open = (struct batch){0};
	}
	spin_done(&guard_lock);
	if (!b.n)
		return;
	entered = device_enter(device);
	batch_close(&b);
	device_leave(entered);
	if (!guard_hold())
		return;
	d->closed[d->tail++ % BATCHES] = b;
	spin_done(&guard_lock);
}

static void guard_step(int device)
{
	if (atomic_load_explicit(&rec.captures, memory_order_relaxed) || failed_before())
		return;
	open_batch_close(device, false);
	batches_step(device, g.device[device].tail - g.device[device].head > BATCHES / 2);
}

void guard_flush(bool give_back)
{
	if (failed_before() || atomic_load_explicit(&rec.captures, memory_order_relaxed))
		return;
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		if (g.device[i].ready) {
			open_batch_close(i, true);
			batches_step(i, true);
		}
	if (give_back)
		handles_release();
}

/* ---- allocating ------------------------------------------------------------------------------------------------ */

static bool path_ends(const struct cw_string *path, const char *end)
{
	size_t n = strlen(end);

	return path && path->len >= n && strcmp(path->text + path->len - n, end) == 0 &&
	       (path->len == n || path->text[path->len - n - 1] == '/');
}

/* Is one of these lines among those that `only` names? */
static bool only_has(uint32_t stack)
{
	const struct cw_stack *s = at(stack);

	for (uint32_t i = 0; s && i < s->n; i++)
		if (s->frame[i].line >= guard.only_from && s->frame[i].line <= guard.only_to &&
		    path_ends(at(s->frame[i].file), guard.only))
			return true;
	return false;
}

/* NCCL shares its buffers with other processes, which guarded memory cannot do. */
static bool library_shares(void)
{
	const struct cw_string *path = at(library_asking(rec_self));
	const char *slash = path ? strrchr(path->text, '/') : NULL;

	return slash && (strncmp(slash, "/libnccl", 8) == 0 || strncmp(slash, "/libnvshmem", 11) == 0);
}

/* PyTorch's allocator cuts tensors that are not guarded out of its segments; NVIDIA's libraries have workspaces. */
static bool library_own(void)
{
	uint32_t library = library_asking(rec_self);
	const struct cw_string *path = at(library);

	return library_is_torch(library) ? !guard_torch_through() : path && stock_library(path->text);
}

static bool is_wanted(const struct guard_request *q, const struct guard_device *d, uint32_t stack, uint32_t forward)
{
	enum cw_guard_skip why;

	if (guard.only[0] && !only_has(stack) && !only_has(forward))
		why = CW_GUARD_SKIP_ONLY;
	else if (guard.sample > 1 && atomic_fetch_add(&g.asked, 1) % guard.sample)
		why = CW_GUARD_SKIP_SAMPLE;
	else if (q->size < d->least)
		why = CW_GUARD_SKIP_MEMORY;
	else if (!q->torch && library_shares())
		why = CW_GUARD_SKIP_SHARED;
	else
		return true;
	skipped(why);
	return false;
}

static void record_fill(struct guarded *r, const struct guard_request *q, uint64_t room)
{
	r->size = q->size;
	r->addr = guard.before ? r->map : r->map + r->len - room;
	r->ticks = rec_ticks();
	r->torch = q->torch;
	r->pool = q->pool;
	r->n_streams = q->stream == GUARD_AT_ONCE ? 0 : 1;
	r->stream[0] = q->stream;
	/* behind: up to the aligned end, or with `before` a little of what is left of the page */
	r->slack = (uint32_t)(guard.before ? (r->len - q->size < 256 ? r->len - q->size : 256) : room - q->size);
}

static void count_in(struct guard_device *d, const struct guarded *r)
{
	shared_add(&guard.told->made, 1);
	if (!r->torch)
		return;
	__atomic_fetch_add(&d->allocated, r->size, __ATOMIC_RELAXED);
	__atomic_fetch_add(&d->reserved, r->len, __ATOMIC_RELAXED);
	__atomic_fetch_add(&d->count, 1, __ATOMIC_RELAXED);
}

static uint64_t record_make(uint32_t i, struct guarded *r, const struct guard_request *q)
{
	struct guard_device *d = &g.device[r->device];
	int mode = capture_relax();
	CUresult code = pages_map(r);

	capture_restore(mode);
	if (!code && !q->pool)
		guard_fill(r, q->stream);
	else
		r->slack = 0;
	if (!guard_hold())
		return 0;
	if (code) {
		range_drop(i);
	} else {
		r->state = GUARD_LIVE;
		*record(i) = *r;
	}
	spin_done(&guard_lock);
	if (!code)
		count_in(d, r);
	else if (code == CU_OUT_OF_MEMORY)
		d->least = LEAST_SCARCE;	/* the largest first: they waste the least */
	return code ? 0 : r->addr;
}

/* A thread of backward may allocate before it has called CUDA at all; the runtime would do the same for it. */
static int device_of(const struct guard_request *q)
{
	CUresult (*set)(void *) = door(ENTRY_cuCtxSetCurrent);
	int device = current_device();

	if (device >= 0 || !q->torch || !g.device[q->device].ready || !set || set(g.device[q->device].context) != 0)
		return device;
	rec_self->device = DEVICE_ASK;
	return current_device();
}

uint64_t guard_alloc(const struct guard_request *q)
{
	int device = device_of(q);
	struct guard_device *d = device >= 0 && device < CW_MAX_DEVICES && !failed_before() ? device_ready(device) : NULL;
	uint64_t room = (q->size + guard.align - 1) & ~(uint64_t)(guard.align - 1), made;
	uint32_t stack, forward = 0, name, i;
	struct guarded r;

	if (!d || !q->size || q->size > d->total) {
		skipped(CW_GUARD_SKIP_OTHER);
		return 0;
	}
	guard_step(device);
	stack = stack_here();
	if (rec_self->node_depth)
		torch_backward(rec_self, &forward, &name);
	if (!is_wanted(q, d, stack, forward))
		return 0;
	if (!guard_hold()) {
		skipped(CW_GUARD_SKIP_OTHER);
		return 0;
	}
	i = range_take((room + UNIT - 1) & ~(UNIT - 1));
	if (i) {
		record(i)->handle = handle_take(device, record(i)->len);
		r = *record(i);
	}
	spin_done(&guard_lock);
	if (!i) {
		skipped(CW_GUARD_SKIP_OTHER);
		return 0;
	}
	r.device = (int16_t)device;
	r.stack = stack;
	r.forward = forward;
	r.own = !q->torch && library_own();
	record_fill(&r, q, room);
	made = record_make(i, &r, q);
	if (!made)
		skipped(CW_GUARD_SKIP_MEMORY);
	return made;
}

/* ---- freeing --------------------------------------------------------------------------------------------------- */

static void stream_add(struct guarded *r, uint64_t stream)
{
	for (uint32_t i = 0; i < r->n_streams && i < GUARD_STREAMS; i++)
		if (r->stream[i] == stream)
			return;
	if (r->n_streams < GUARD_STREAMS)
		r->stream[r->n_streams] = stream;
	if (r->n_streams <= GUARD_STREAMS)
		r->n_streams++;
}

void guard_used_by(uint64_t addr, uint64_t stream)
{
	uint32_t i;

	if (!guard_hold())
		return;
	i = record_at(addr);
	if (i && record(i)->state == GUARD_LIVE)
		stream_add(record(i), stream);
	spin_done(&guard_lock);
}

/* Called with the lock held. */
static void batch_add(uint32_t i)
{
	struct guarded *r = record(i);
	struct batch *b = &g.device[r->device].open;

	r->state = GUARD_FREED;
	r->next = b->first;
	b->first = i;
	b->n++;
	b->bytes += r->len;
	atomic_fetch_add(&g.pending, 1);
}

static void count_out(const struct guarded *r)
{
	struct guard_device *d = &g.device[r->device];

	shared_add(&guard.told->freed, 1);
	if (!r->torch)
		return;
	__atomic_fetch_sub(&d->allocated, r->size, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&d->reserved, r->len, __ATOMIC_RELAXED);
	__atomic_fetch_sub(&d->count, 1, __ATOMIC_RELAXED);
}

bool guard_free(uint64_t addr, uint64_t stream)
{
	uint32_t i, stack = rec_self && rec_nesting ? stack_here() : 0;
	struct guarded r;

	if (!guard_hold())
		return false;
	i = addr ? record_at(addr) : 0;
	if (!i || record(i)->addr != addr || record(i)->state != GUARD_LIVE) {
		spin_done(&guard_lock);
		return false;
	}
	record(i)->free_stack = stack;
	if (stream == GUARD_AT_ONCE)
		record(i)->n_streams = GUARD_STREAMS + 1;
	else
		stream_add(record(i), stream);
	r = *record(i);
	if (r.pool)
		record(i)->state = GUARD_KEPT;
	else
		batch_add(i);
	spin_done(&guard_lock);
	count_out(&r);
	if (stream == GUARD_AT_ONCE)	/* as cuMemFree does */
		guard_flush(false);
	else
		guard_step(r.device);
	return true;
}

void guard_pool_gone(uint32_t pool)
{
	if (!guard_hold())
		return;
	for (uint32_t i = 1; i < g.n_records; i++) {
		struct guarded *r = record(i);

		if (r->pool != pool)
			continue;
		if (r->state == GUARD_KEPT) {
			r->n_streams = GUARD_STREAMS + 1;
			r->pool = 0;
			batch_add(i);
		} else if (r->state == GUARD_LIVE) {
			r->pool = 0;
		}
	}
	spin_done(&guard_lock);
}

bool guard_find(uint64_t address, struct guarded *out)
{
	bool found = false;
	uint32_t i;

	if (!guard_hold())
		return false;
	i = record_at(address);
	if (i && record(i)->state == GUARD_LIVE && address >= record(i)->addr &&
	    address - record(i)->addr < record(i)->size) {
		*out = *record(i);
		found = true;
	}
	spin_done(&guard_lock);
	return found;
}

uint32_t guard_list(struct guarded *out, uint32_t max, uint32_t *cursor, bool (*wanted)(const struct guarded *g))
{
	uint32_t n = 0;

	if (!guard_hold())
		return 0;
	for (; *cursor < g.n_records && n < max; (*cursor)++)
		if (*cursor && record(*cursor)->state == GUARD_LIVE && wanted(record(*cursor)))
			out[n++] = *record(*cursor);
	spin_done(&guard_lock);
	return n;
}

void guard_totals(int device, uint64_t *allocated, uint64_t *reserved, uint64_t *count)
{
	const struct guard_device *d = &g.device[(unsigned)device % CW_MAX_DEVICES];

	*allocated = __atomic_load_n(&d->allocated, __ATOMIC_RELAXED);
	*reserved = __atomic_load_n(&d->reserved, __ATOMIC_RELAXED);
	*count = __atomic_load_n(&d->count, __ATOMIC_RELAXED);
}

static bool any_one(const struct guarded *r)
{
	(void)r;
	return true;
}

void guard_peer(void)
{
	struct guarded list[64];
	uint32_t cursor = 1, n;

	do {
		n = guard_list(list, 64, &cursor, any_one);
		for (uint32_t i = 0; i < n; i++)
			pages_access(&list[i]);
	} while (n == 64);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

bool guard_pending(void)
{
	return atomic_load_explicit(&g.pending, memory_order_relaxed) != 0;
}

bool guard_points_to_freed(const void *bytes, size_t n)
{
	bool found = false;
	uint64_t word;
	uint32_t i;

	if (!guard_hold())
		return false;
	for (size_t at_byte = 0; at_byte + 8 <= n && !found; at_byte += 8) {
		memcpy(&word, (const char *)bytes + at_byte, 8);
		i = record_at(word);
		found = i && record(i)->state == GUARD_FREED;
	}
	spin_done(&guard_lock);
	return found;
}

/* A pointer to any of its pages counts: a view may begin before the bytes that a kernel uses. */
bool guard_give(const void *words, size_t n, enum guard_given how)
{
	uint64_t word;
	uint32_t i;

	if (!guard_hold()) {
		guard_unseen();
		return false;
	}
	for (size_t at_byte = 0; at_byte + 8 <= n; at_byte += 8) {
		memcpy(&word, (const char *)words + at_byte, 8);
		i = record_at(word);
		if (i && record(i)->state == GUARD_LIVE && record(i)->given < how)
			record(i)->given = (uint8_t)how;
	}
	spin_done(&guard_lock);
	return false;
}

void guard_unseen(void)
{
	atomic_store_explicit(&g.unseen, rec_ticks(), memory_order_relaxed);
}

uint64_t guard_unseen_last(void)
{
	return atomic_load_explicit(&g.unseen, memory_order_relaxed);
}
