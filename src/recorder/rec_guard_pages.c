/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: the memory behind the addresses.
 */
#include <string.h>

#include "rec_guard_own.h"

#define KEPT_HANDLES	512u

static struct guard_device devices[CW_MAX_DEVICES];
static struct {
	struct { uint64_t handle, len; int device; } list[KEPT_HANDLES];
	uint32_t n;
	uint64_t bytes;
} kept;

void pages_start(void)
{
	memset(&devices, 0, sizeof(devices));
	memset(&kept, 0, sizeof(kept));
}

/* ---- devices ------------------------------------------------------------------------------------------------- */

/* Another device's context may be current in the thread that frees. */
bool device_enter(int device)
{
	CUresult (*push)(void *) = door(ENTRY_cuCtxPushCurrent_v2);
	void *now = NULL;

	if (drv.cuCtxGetCurrent && drv.cuCtxGetCurrent(&now) == 0 && now == devices[device].context)
		return false;
	return push && push(devices[device].context) == 0;
}

void device_leave(bool entered)
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

struct guard_device *device_known(int device)
{
	return devices[device].ready ? &devices[device] : NULL;
}

/* ---- memory ---------------------------------------------------------------------------------------------------- */

/* Called with the lock held. */
uint64_t handle_take(int device, uint64_t len)
{
	for (uint32_t i = kept.n; i > 0; i--) {
		uint64_t handle = kept.list[i - 1].handle;

		if (kept.list[i - 1].device != device || kept.list[i - 1].len != len)
			continue;
		kept.bytes -= len;
		kept.list[i - 1] = kept.list[--kept.n];
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
	bool held = false;

	if (guard_hold()) {
		if (kept.n < KEPT_HANDLES && kept.bytes + len <= devices[device].total / 8) {
			kept.list[kept.n].handle = handle;
			kept.list[kept.n].len = len;
			kept.list[kept.n++].device = device;
			kept.bytes += len;
			held = true;
		}
		guard_let_go();
	}
	if (!held)
		handle_release(handle);
}

void handles_release(void)
{
	uint64_t handle;

	do {
		handle = 0;
		if (guard_hold()) {
			if (kept.n) {
				handle = kept.list[--kept.n].handle;
				kept.bytes -= kept.list[kept.n].len;
			}
			guard_let_go();
		}
		handle_release(handle);
	} while (handle);
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

static CUresult pages_try(struct guarded *r)
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

CUresult pages_map(struct guarded *r)
{
	int mode = capture_relax();
	CUresult code = pages_try(r);

	capture_restore(mode);
	return code;
}

void pages_unmap(const struct guarded *r)
{
	CUresult (*unmap)(uint64_t, size_t) = door(ENTRY_cuMemUnmap);

	if (unmap && unmap(r->map, r->len) == 0)
		handle_keep(r->handle, r->len, r->device);
}
