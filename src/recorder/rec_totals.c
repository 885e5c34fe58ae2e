/* SPDX-License-Identifier: Apache-2.0
 * Memory totals for each device, as PyTorch's allocator and the driver report them, and which library calls the driver.
 */
#include <errno.h>
#include <string.h>

#include "rec_site.h"

#define relaxed_get(p)	  __atomic_load_n((p), __ATOMIC_RELAXED)
#define relaxed_set(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static struct cw_memory_now *totals_of(int device)
{
	return device >= 0 && device < CW_MAX_DEVICES ? &rec.h->memory[device] : NULL;
}

static void new_peak(struct cw_memory_now *m, uint64_t ticks)
{
	relaxed_set(&m->peak_ticks, ticks);
	shared_add(&m->peak_generation, 1);
	site_moment((int)(m - rec.h->memory));
}

static void set_reserved(struct cw_memory_now *m, uint64_t reserved)
{
	relaxed_set(&m->reserved, reserved);
	if (unlikely(reserved > relaxed_get(&m->peak_reserved)))
		relaxed_set(&m->peak_reserved, reserved);
}

/* The site already includes the event, so what each site holds now is what it holds at a new peak. */
HOT void totals_torch(int device, uint64_t allocated, uint64_t reserved, uint64_t ticks)
{
	struct cw_memory_now *m = totals_of(device);

	if (unlikely(!m))
		return;
	relaxed_set(&m->allocated, allocated);
	if (unlikely(allocated > relaxed_get(&m->peak_allocated))) {
		relaxed_set(&m->peak_allocated, allocated);
		new_peak(m, ticks);
	}
	set_reserved(m, reserved);
	timeline_note(device, ticks);
}

void totals_torch_gave_up(int device, uint64_t allocated, uint64_t reserved)
{
	struct cw_memory_now *m = totals_of(device);

	if (!m)
		return;
	shared_add(&m->n_oom, 1);
	relaxed_set(&m->allocated, allocated);
	set_reserved(m, reserved);
}

/* PyTorch reports what it has reserved when it allocates or frees a block. When it empties its cache it reports
 * nothing: then we count the segments that it returns to the driver one by one. */
static void torch_segment(struct cw_memory_now *m, const struct cw_allocation *a, bool came)
{
	uint64_t reserved = relaxed_get(&m->reserved);

	if ((a->kind != CW_MEM_DEVICE && a->kind != CW_MEM_VMM) || !library_is_torch(a->library) ||
	    !relaxed_get(&m->peak_allocated))
		return;
	if (came)
		set_reserved(m, reserved + a->size);
	else
		relaxed_set(&m->reserved, reserved > a->size ? reserved - a->size : 0);
}

/* Until PyTorch's allocator is seen, a device's peak is that of the driver's memory. */
static void on_device(struct cw_memory_now *m, const struct cw_allocation *a, bool came, uint64_t ticks)
{
	uint64_t now = relaxed_get(&m->driver) + (came ? a->size : -a->size);

	relaxed_set(&m->driver, now);
	if (came && now > relaxed_get(&m->driver_peak)) {
		relaxed_set(&m->driver_peak, now);
		if (!relaxed_get(&m->peak_allocated))
			new_peak(m, ticks);
	}
	torch_segment(m, a, came);
	timeline_note(a->device, ticks);
}

static void add_up(uint64_t *total, uint64_t *peak, uint64_t size, bool came)
{
	uint64_t now = *total + (came ? size : -size);

	shared_set(total, now);
	if (now > *peak)
		shared_set(peak, now);
}

/* Called with the lock of the driver's allocations held. */
void totals_driver(const struct cw_allocation *a, bool came, uint64_t ticks)
{
	struct cw_memory_now *m = totals_of(a->device);

	if (a->kind == CW_MEM_PINNED || a->kind == CW_MEM_REGISTERED)
		add_up(&rec.h->pinned_bytes, &rec.h->pinned_peak_bytes, a->size, came);
	if (a->kind != CW_MEM_DEVICE && a->kind != CW_MEM_ASYNC && a->kind != CW_MEM_VMM)
		return;
	add_up(&rec.h->live_device_bytes, &rec.h->peak_device_bytes, a->size, came);
	if (m)
		on_device(m, a, came, ticks);
}

#define MAX_LIBRARIES	64

/* A loaded file and its name in the recording. Entries are added, never changed. */
static struct {
	_Atomic uint32_t n, generation;
	struct { uintptr_t start, end; uint32_t name; bool torch; } of[MAX_LIBRARIES];
} libraries;
static struct spin library_lock;
LOCK_LISTED(library_lock, library_lock);

static bool is_torch(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash ? slash + 1 : path, "libc10_cuda", 11) == 0;
}

/* Queries the loader once for each file. The program itself has no name there. */
static uint32_t library_new(const void *address)
{
	int saved = errno;
	struct elf_object o;
	const char *name;
	uint32_t n, off;

	if (!elf_object_at(address, &o))
		return 0;
	name = o.name[0] ? o.name : rec.h->exe;
	off = intern_string(name, strlen(name));
	n = libraries.n;
	if (off && n < MAX_LIBRARIES) {
		libraries.of[n].start = o.start;
		libraries.of[n].end = o.end;
		libraries.of[n].name = off;
		libraries.of[n].torch = is_torch(name);
		atomic_store_explicit(&libraries.n, n + 1, memory_order_release);
	}
	errno = saved;
	return off;
}

static uint32_t library_known(uintptr_t address)
{
	uint32_t n = atomic_load_explicit(&libraries.n, memory_order_acquire);

	if (atomic_load_explicit(&libraries.generation, memory_order_acquire) != rec.generation)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		if (address >= libraries.of[i].start && address < libraries.of[i].end)
			return libraries.of[i].name;
	return 0;
}

uint32_t library_at(const void *address)
{
	uint32_t off = address ? library_known((uintptr_t)address) : 0;

	if (likely(off) || !address || !spin_try(&library_lock))
		return off;
	if (libraries.generation != rec.generation) {	/* these names are from another recording: the parent's, before fork */
		libraries.n = 0;
		libraries.generation = rec.generation;
	}
	off = library_known((uintptr_t)address);
	if (!off)
		off = library_new(address);
	spin_done(&library_lock);
	return off;
}

uint32_t library_asking(const struct rec_thread *t)
{
	return library_at(t->runtime_caller ? t->runtime_caller : t->caller);
}

bool library_is_torch(uint32_t library)
{
	uint32_t n = atomic_load_explicit(&libraries.n, memory_order_acquire);

	for (uint32_t i = 0; library && i < n; i++)
		if (libraries.of[i].name == library)
			return libraries.of[i].torch;
	return false;
}
