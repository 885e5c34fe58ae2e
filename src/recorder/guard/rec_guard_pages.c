/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: the memory behind the addresses.
 *
 * To let the GPU use a range takes the driver 35 us, to unmap it 23 (H200, R580), whatever its size. So memory that was unmapped is
 * kept, and mapped again at new addresses in advance; the next allocation of that size only takes it from its shelf.
 */
#include <string.h>
#include <time.h>

#include "recorder/guard/rec_guard_own.h"

#define KEPT_HANDLES	8192u	/* more than a training step has tensors at once */
/* Half of the card's memory, at most, is kept. With an eighth, a step of GPT-2 (12 GiB) gave back what the next one had to ask
 * for again: 105 ms instead of 77 (H200). When there is none left for the program, all of it is given back. */
#define KEPT_PART	2u
#define SHELVES		256u
#define PREPARE_MOST	100000u	/* waits of 20 us: what maps may wait for a dump that is being written */

static struct guard_device devices[CW_MAX_DEVICES];
static struct {
	struct { uint64_t handle, len; int device; } list[KEPT_HANDLES];
	uint32_t n;
	uint32_t n_all;			/* with those that are mapped in advance */
	uint64_t bytes[CW_MAX_DEVICES];
} kept;
/* Mapped in advance, by length: chains of records. The oldest goes first, so that none holds its addresses forever. */
static struct { uint32_t first, last; } shelves[SHELVES];
static _Atomic uint32_t preparing, releasing;	/* threads that map in advance, and those that need all that is kept */
static _Atomic uint32_t peers_turn;	/* changes when other devices get access */

void pages_start(void)
{
	memset(&devices, 0, sizeof(devices));
	memset(&kept, 0, sizeof(kept));
	memset(&shelves, 0, sizeof(shelves));
	atomic_store(&preparing, 0);
	atomic_store(&releasing, 0);
}

/* So that memory can be mapped while a stream is captured. Always: a capture may begin at any moment. */
static int capture_relax(void)
{
	int mode = 2;

	if (!drv.cuThreadExchangeStreamCaptureMode)
		return -1;
	return drv.cuThreadExchangeStreamCaptureMode(&mode) == 0 ? mode : -1;
}

static void capture_restore(int mode)
{
	if (mode >= 0)
		drv.cuThreadExchangeStreamCaptureMode(&mode);
}

struct visit device_enter(int device)
{
	CUresult (*push)(void *) = door(ENTRY_cuCtxPushCurrent_v2);
	struct visit v = {.mode = capture_relax()};
	void *now = NULL;

	if (!drv.cuCtxGetCurrent || drv.cuCtxGetCurrent(&now) != 0 || now != devices[device].context)
		v.pushed = push && push(devices[device].context) == 0;
	return v;
}

void device_leave(struct visit v)
{
	CUresult (*pop)(void **) = door(ENTRY_cuCtxPopCurrent_v2);
	void *was;

	if (v.pushed && pop)
		pop(&was);
	capture_restore(v.mode);
}

struct alloc_prop { int type, handles, location, device; void *meta; unsigned char flags[8]; };
struct access { int location, device, flags; };
enum { PINNED = 1, ON_DEVICE = 1, READ_WRITE = 3 };

static struct alloc_prop prop_of(int device)
{
	return (struct alloc_prop){.type = PINNED, .location = ON_DEVICE, .device = device};
}

struct guard_device *device_ready(int device)
{
	struct guard_device *d = &devices[device];
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
	    drv.cuMemGetAllocationGranularity(&granularity, &prop, 0) != 0 || GUARD_UNIT % granularity ||
	    !guard_check_start(device)) {
		d->failed = true;
		return NULL;
	}
	__atomic_store_n(&d->ready, true, __ATOMIC_RELEASE);
	hand_start();
	return d;
}

struct guard_device *device_known(int device)
{
	return __atomic_load_n(&devices[device].ready, __ATOMIC_ACQUIRE) ? &devices[device] : NULL;
}

void device_forget(int device)
{
	__atomic_store_n(&devices[device].ready, false, __ATOMIC_RELEASE);
	devices[device].context = NULL;
}

static uint64_t handle_take(int device, uint64_t len)
{
	for (uint32_t i = kept.n; i > 0; i--) {
		uint64_t handle = kept.list[i - 1].handle;

		if (kept.list[i - 1].device != device || kept.list[i - 1].len != len)
			continue;
		kept.list[i - 1] = kept.list[--kept.n];
		kept.bytes[device] -= len;
		kept.n_all--;
		return handle;
	}
	return 0;
}

static uint32_t shelf_of(int device, uint64_t len)
{
	return (uint32_t)(len / GUARD_UNIT + (uint64_t)device * 61) % SHELVES;
}

static void shelf_put(uint32_t i)
{
	uint32_t shelf = shelf_of(record(i)->device, record(i)->len);

	record(i)->state = GUARD_READY;
	record(i)->next = 0;
	if (shelves[shelf].last)
		record(shelves[shelf].last)->next = i;
	else
		shelves[shelf].first = i;
	shelves[shelf].last = i;
}

/* len 0: any. */
static uint32_t shelf_take(uint32_t shelf, int device, uint64_t len)
{
	uint32_t i = shelves[shelf].first, before = 0;

	while (i && len && (record(i)->len != len || record(i)->device != device)) {
		before = i;
		i = record(i)->next;
	}
	if (!i)
		return 0;
	if (before)
		record(before)->next = record(i)->next;
	else
		shelves[shelf].first = record(i)->next;
	if (shelves[shelf].last == i)
		shelves[shelf].last = before;
	record(i)->state = GUARD_MAKING;
	kept.bytes[record(i)->device] -= record(i)->len;
	kept.n_all--;
	return i;
}

uint32_t pages_take(int device, uint64_t len)
{
	uint32_t i = shelf_take(shelf_of(device, len), device, len);

	if (i)
		return i;
	i = range_take(len);
	if (i) {
		record(i)->device = (int16_t)device;
		record(i)->handle = handle_take(device, len);
	}
	return i;
}

static void handle_release(uint64_t handle, uint64_t len, int device)
{
	CUresult (*release)(uint64_t) = door(ENTRY_cuMemRelease);

	if (handle && release && release(handle) == 0)
		totals_taken(device, len, false);
}

static void handle_keep(uint64_t handle, uint64_t len, int device)
{
	bool held = false;

	if (guard_hold()) {
		if (kept.n_all < KEPT_HANDLES && kept.bytes[device] + len <= devices[device].total / KEPT_PART) {
			kept.list[kept.n].handle = handle;
			kept.list[kept.n].len = len;
			kept.list[kept.n++].device = device;
			kept.n_all++;
			kept.bytes[device] += len;
			held = true;
		}
		guard_let_go();
	}
	if (!held)
		handle_release(handle, len, device);
}

/* The last one that is kept, with addresses; 0 = none. It stays counted until it is taken from its shelf. */
static uint64_t handle_next(struct guarded *r, uint32_t *i)
{
	uint64_t handle = 0;

	*i = 0;
	if (!guard_hold())
		return 0;
	if (kept.n) {
		*i = range_take(kept.list[kept.n - 1].len);
		handle = *i ? kept.list[kept.n - 1].handle : 0;
	}
	if (handle) {
		kept.n--;
		record(*i)->handle = handle;
		record(*i)->device = (int16_t)kept.list[kept.n].device;
		*r = *record(*i);
	}
	guard_let_go();
	return handle;
}

CUresult pages_access(const struct guarded *r)
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

static CUresult pages_give(struct guarded *r)
{
	CUresult (*map)(uint64_t, size_t, size_t, uint64_t, uint64_t) = door(ENTRY_cuMemMap);
	CUresult (*unmap)(uint64_t, size_t) = door(ENTRY_cuMemUnmap);
	CUresult code = map && unmap ? map(r->map, r->len, 0, r->handle, 0) : CU_NO_DRIVER;

	if (code)
		return code;
	code = pages_access(r);
	if (code)
		unmap(r->map, r->len);
	r->mapped = !code;
	return code;
}

static CUresult handle_create(struct guarded *r)
{
	CUresult (*create)(uint64_t *, size_t, const void *, uint64_t) = door(ENTRY_cuMemCreate);
	struct alloc_prop prop = prop_of(r->device);
	CUresult code = create ? create(&r->handle, r->len, &prop, 0) : CU_NO_DRIVER;

	if (code)
		r->handle = 0;
	else
		totals_taken(r->device, r->len, true);
	return code;
}

/* Memory for it. What was freed may still hold it: then that is waited for; then what is kept in other sizes is given back. */
static CUresult pages_create(struct guarded *r)
{
	CUresult code = handle_create(r);

	if (code != CU_OUT_OF_MEMORY)
		return code;
	guard_flush(false);
	if (guard_hold()) {
		r->handle = handle_take(r->device, r->len);
		guard_let_go();
	}
	if (r->handle)
		return 0;
	pages_release();
	return handle_create(r);
}

/* The program's own call found no memory. */
bool guard_make_room(void)
{
	uint32_t nesting = rec_nesting;
	bool any = guard_pending();

	rec_nesting = 2;
	guard_flush(false);
	any |= pages_release();
	rec_nesting = nesting;
	return any;
}

static CUresult pages_try(struct guarded *r)
{
	CUresult code = r->handle ? 0 : pages_create(r);

	if (code) {
		r->handle = 0;
		return code;
	}
	code = pages_give(r);
	if (code) {
		handle_release(r->handle, r->len, r->device);
		r->handle = 0;
	}
	return code;
}

CUresult pages_map(struct guarded *r)
{
	CUresult code;
	int mode;

	if (r->mapped)
		return 0;
	mode = capture_relax();
	code = pages_try(r);
	capture_restore(mode);
	return code;
}

void pages_unmap(const struct guarded *r)
{
	CUresult (*unmap)(uint64_t, size_t) = door(ENTRY_cuMemUnmap);

	if (unmap && unmap(r->map, r->len) == 0)
		handle_keep(r->handle, r->len, r->device);
}

/* Maps one, unless an allocation needs all memory that is kept: what is being mapped is on no list. */
static bool prepare_one(void)
{
	uint32_t turn = atomic_load(&peers_turn), i;
	struct guarded r;
	struct visit entered;

	if (!handle_next(&r, &i))
		return false;
	entered = device_enter(r.device);
	if (pages_give(&r) == 0 && turn != atomic_load(&peers_turn))
		pages_access(&r);
	device_leave(entered);
	if (!r.mapped)
		handle_release(r.handle, r.len, r.device);
	if (!guard_hold())
		return false;
	if (r.mapped) {
		record(i)->mapped = true;
		shelf_put(i);
	} else {
		kept.bytes[r.device] -= r.len;
		kept.n_all--;
		range_drop(i);
	}
	guard_let_go();
	return r.mapped;
}

bool pages_prepare(void)
{
	bool did;

	atomic_fetch_add(&preparing, 1);
	did = !atomic_load(&releasing) && prepare_one();
	atomic_fetch_sub(&preparing, 1);
	return did;
}

/* One that is kept, without or with addresses. */
static bool release_one(void)
{
	CUresult (*unmap)(uint64_t, size_t) = door(ENTRY_cuMemUnmap);
	struct guarded r = {0};
	struct visit entered;
	uint32_t i = 0;

	if (!unmap || !guard_hold())
		return false;
	if (kept.n) {
		r.device = (int16_t)kept.list[kept.n - 1].device;
		r.len = kept.list[kept.n - 1].len;
		r.handle = handle_take(r.device, r.len);
	}
	for (uint32_t shelf = 0; !r.handle && !i && shelf < SHELVES; shelf++)
		i = shelf_take(shelf, 0, 0);
	if (i)
		r = *record(i);
	guard_let_go();
	if (i) {
		entered = device_enter(r.device);
		unmap(r.map, r.len);
		device_leave(entered);
		if (guard_hold()) {
			range_drop(i);
			guard_let_go();
		}
	}
	handle_release(r.handle, r.len, r.device);
	return r.handle != 0;
}

bool pages_release(void)
{
	struct timespec moment = {.tv_nsec = 20000};
	int mode = capture_relax();
	bool any = false;

	atomic_fetch_add(&releasing, 1);
	for (uint32_t i = 0; i < PREPARE_MOST && atomic_load(&preparing); i++)
		nanosleep(&moment, NULL);
	while (release_one())
		any = true;
	atomic_fetch_sub(&releasing, 1);
	capture_restore(mode);
	return any;
}

uint32_t pages_peers(void)
{
	return atomic_load(&peers_turn);
}

void pages_peer(void)
{
	atomic_fetch_add(&peers_turn, 1);
	pages_release();
}
