/* SPDX-License-Identifier: Apache-2.0
 * What the driver reports about itself and its devices, read once, and its own messages about failing calls.
 */
#include <string.h>

#include "rec.h"

/* Called by the driver (R575 and newer) on the thread whose call failed, before the call returns. */
static void driver_says(void *data, int level, char *message, size_t length)
{
	struct rec_thread *t;
	uint32_t end;		/* read once: a signal handler's own failing call may come in between */
	size_t room;

	(void)data;
	if (level != 0 || rec_nesting != 1 || !message || rec_asleep())
		return;		/* not about one of the program's own calls */
	t = rec_thread();	/* it may be the thread's first call */
	if (!t)
		return;
	length = strnlen(message, length);
	if (length > 10 && memcmp(message, "Returning ", 10) == 0)
		return;		/* only repeats the error code */
	while (length && (message[length - 1] == '\n' || message[length - 1] == ' '))
		length--;
	if (!length)
		return;
	end = __atomic_load_n(&t->log_len, __ATOMIC_RELAXED);
	if (end && end + 1 < sizeof(t->log))
		t->log[end++] = '\n';
	room = sizeof(t->log) - end;
	length = length < room ? length : room;
	memcpy(t->log + end, message, length);
	__atomic_store_n(&t->log_len, end + (uint32_t)length, __ATOMIC_RELAXED);
}

/* Without a context, the driver would log our query as an error of the program. */
int current_device(void)
{
	CUresult (*get)(int *) = door(ENTRY_cuCtxGetDevice);
	void *context = NULL;
	int d = -1;

	if (drv.cuCtxGetCurrent && (drv.cuCtxGetCurrent(&context) || !context))
		return -1;
	return get && get(&d) == 0 ? d : -1;
}

#define MAX_CONTEXTS	64	/* a program usually has one per device */

static struct {
	_Atomic uint64_t context;
	_Atomic int device;
} contexts[MAX_CONTEXTS];

void context_made(uint64_t context, int device)
{
	for (int i = 0; context && i < MAX_CONTEXTS; i++) {
		uint64_t none = 0;

		if (atomic_load(&contexts[i].context) != context &&
		    !atomic_compare_exchange_strong(&contexts[i].context, &none, context))
			continue;
		atomic_store(&contexts[i].device, device);
		return;
	}
}

bool context_ever(void)
{
	return atomic_load(&contexts[0].context) != 0;
}

bool context_is_only(void)
{
	uint64_t only = atomic_load(&contexts[0].context);
	void *current = NULL;

	return only && !atomic_load(&contexts[1].context) && drv.cuCtxGetCurrent &&
	       drv.cuCtxGetCurrent(&current) == 0 && (uint64_t)current == only;
}

/* If we did not see a context's creation, its device may be any. */
void context_peer(uint64_t context)
{
	int mine = current_device();
	uint32_t bits = ~0u;

	for (int i = 0; i < MAX_CONTEXTS; i++)
		if (atomic_load(&contexts[i].context) == context)
			bits = 1u << (contexts[i].device % CW_MAX_DEVICES);
	if (mine >= 0 && mine < CW_MAX_DEVICES)
		__atomic_fetch_or(&rec.h->peers[mine], bits, __ATOMIC_RELAXED);
}

static void one_device(struct cw_device *d, int ordinal)
{
	static const int number[CW_DEV_COUNT] = {
#define X(name, n) n,
		CW_DEVICE_ATTRS(X)
#undef X
	};
	CUresult (*attribute)(int *, int, int) = door(ENTRY_cuDeviceGetAttribute);
	size_t total;

	for (int i = 0; i < CW_DEV_COUNT; i++) {
		int v;

		d->attr[i] = attribute && attribute(&v, number[i], ordinal) == 0 ? v : -1;
	}
	if (drv.cuDeviceGetName)
		drv.cuDeviceGetName(d->name, sizeof(d->name) - 1, ordinal);
	if (drv.cuDeviceTotalMem_v2 && drv.cuDeviceTotalMem_v2(&total, ordinal) == 0)
		d->total_bytes = total;
	if (drv.cuDeviceGetUuid_v2)
		drv.cuDeviceGetUuid_v2(d->uuid, ordinal);
}

/* Device handles have been ordinals in every driver so far; call cuDeviceGet all the same. */
void device_facts(void)
{
	CUresult (*version)(int *) = door(ENTRY_cuDriverGetVersion);
	CUresult (*count)(int *) = door(ENTRY_cuDeviceGetCount);
	CUresult (*get)(int *, int) = door(ENTRY_cuDeviceGet);
	void *handle;
	int n, v, device;

	if (rec.h->device_count != CW_UNKNOWN)
		return;
	if (version && version(&v) == 0)
		rec.h->driver_version = (uint32_t)v;
	if (!count || count(&n) != 0 || n < 0)
		return;
	rec.h->device_count = (uint32_t)n;
	for (int i = 0; i < n && i < CW_MAX_DEVICES; i++)
		if (get && get(&device, i) == 0)
			one_device(&rec.h->device[i], device);
	if (drv.cuLogsRegisterCallback)
		drv.cuLogsRegisterCallback(driver_says, NULL, &handle);
}
