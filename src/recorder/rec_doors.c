/* SPDX-License-Identifier: Apache-2.0
 * The doors through which programs reach the driver, and what they find behind each.
 *
 * A program gets a driver function in one of three ways: an ordinary symbol (our exported wrapper is
 * found first), dlsym on a libcuda handle, or cuGetProcAddress. All three must lead to the same
 * wrapper. The address alone decides which wrapper belongs to a function that the driver returns, so
 * there is no table of versions to get wrong.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "rec.h"

#define CU(number, name, n, class, args)     EXPORT CUresult name(void);
#define CU_S(number, name, n, class, args)   EXPORT CUresult name(void); EXPORT CUresult name##_ptsz(void);
#define CU_D(number, name, n, class, args)   EXPORT CUresult name(void); EXPORT CUresult name##_ptds(void);
#include "kb/cuda_api.def"

void *const door_wrapper[ENTRY_COUNT] = {
#define CU(number, name, n, class, args)     (void *)name,
#define CU_S(number, name, n, class, args)   (void *)name, (void *)name##_ptsz,
#define CU_D(number, name, n, class, args)   (void *)name, (void *)name##_ptds,
#include "kb/cuda_api.def"
};

const char *const door_name[ENTRY_COUNT] = {
#define CU(number, name, n, class, args)     #name,
#define CU_S(number, name, n, class, args)   #name, #name "_ptsz",
#define CU_D(number, name, n, class, args)   #name, #name "_ptds",
#include "kb/cuda_api.def"
};

HOT_DATA _Atomic(void *) door_real[ENTRY_COUNT];
struct helpers drv;

#define NAME_SLOTS 1024
static int16_t by_name[NAME_SLOTS], by_real[NAME_SLOTS];	/* entry + 1, 0 = empty */

static struct {
	_Atomic bool open;
	struct elf_object libcuda;
} doors;

_Static_assert(ENTRY_COUNT * 2 < NAME_SLOTS, "the lookup tables must stay half empty");

static uint32_t name_hash(const char *s)
{
	uint32_t h = 2166136261u;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 16777619u;
	return h ^ h >> 15;
}

static uint32_t real_hash(const void *p)
{
	uint64_t h = (uintptr_t)p * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 40);
}

static void index_add(int16_t *table, uint32_t hash, int e)
{
	while (table[hash % NAME_SLOTS])
		hash++;
	table[hash % NAME_SLOTS] = (int16_t)(e + 1);
}

__attribute__((constructor)) static void index_names(void)
{
	for (int e = 0; e < ENTRY_COUNT; e++)
		index_add(by_name, name_hash(door_name[e]), e);
}

int door_by_name(const char *name)
{
	for (uint32_t h = name_hash(name); by_name[h % NAME_SLOTS]; h++)
		if (strcmp(door_name[by_name[h % NAME_SLOTS] - 1], name) == 0)
			return by_name[h % NAME_SLOTS] - 1;
	return -1;
}

int door_by_real(const void *function)
{
	for (uint32_t h = real_hash(function); by_real[h % NAME_SLOTS]; h++)
		if (door_real[by_real[h % NAME_SLOTS] - 1] == function)
			return by_real[h % NAME_SLOTS] - 1;
	return -1;
}

typedef void *dlsym_fn(void *, const char *);
__attribute__((visibility("hidden"))) dlsym_fn *rec_next_dlsym;

/* Not libc's but the next one after us: another preloaded library may have its own, and dlvsym would skip
 * it, because such a definition has no version. */
static dlsym_fn *next_dlsym(void)
{
	dlsym_fn *f = __atomic_load_n(&rec_next_dlsym, __ATOMIC_ACQUIRE);

	if (unlikely(!f)) {
		f = (dlsym_fn *)elf_symbol_after_us("dlsym");
		__atomic_store_n(&rec_next_dlsym, f, __ATOMIC_RELEASE);
	}
	return f;
}

/* dlopen is in libc since glibc 2.34, before that in libdl, which not every program loads. So we look it up when
 * it is needed, like dlsym, and the recorder loads everywhere. Where there is none, nothing can be closed, either. */
static bool stay_loaded(const char *name)
{
	void *(*open_it)(const char *, int) = (void *(*)(const char *, int))elf_symbol_after_us("dlopen");

	return !open_it || open_it(name, RTLD_LAZY | RTLD_NOLOAD);
}

/* Several threads may do this at once: all compute the same tables and store the same values. */
bool doors_open(void)
{
	int16_t table[NAME_SLOTS] = {0};
	struct elf_object o;
	void *f;

	if (likely(atomic_load_explicit(&doors.open, memory_order_acquire)))
		return true;
	if (!elf_find_object("libcuda.so", &o) || !elf_symbol(&o, "cuInit"))
		return false;
	/* keep it loaded: the addresses below must stay valid even if the program closes it */
	if (!stay_loaded(o.name))
		return false;
	for (int e = 0; e < ENTRY_COUNT; e++) {
		f = elf_symbol(&o, door_name[e]);
		atomic_store_explicit(&door_real[e], f, memory_order_relaxed);
		if (f)
			index_add(table, real_hash(f), e);
	}
	for (int i = 0; i < NAME_SLOTS; i++)
		__atomic_store_n(&by_real[i], table[i], __ATOMIC_RELAXED);
#define X(name, args) drv.name = (CUresult(*) args)elf_symbol(&o, #name);
	HELPERS(X)
#undef X
	doors.libcuda = o;
	atomic_store_explicit(&doors.open, true, memory_order_release);
	return true;
}

/* We do not know how to record a libcuda without these. */
bool doors_complete(void)
{
	static const enum entry needed[] = {
		ENTRY_cuInit,	    ENTRY_cuDeviceGet,	  ENTRY_cuCtxGetDevice,	    ENTRY_cuMemAlloc_v2,
		ENTRY_cuMemFree_v2, ENTRY_cuLaunchKernel, ENTRY_cuStreamSynchronize};

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!door(needed[i]))
			return false;
	return true;
}

const char *doors_library(void)
{
	return doors.libcuda.name;
}

void *door_find(enum entry e)
{
	return doors_open() ? atomic_load_explicit(&door_real[e], memory_order_relaxed) : NULL;
}

struct pick {
	void *value;
	uint64_t decided;		/* 0: let the next dlsym answer */
};
struct pick rec_dlsym_pick(void *handle, const char *name, const void *caller);

static bool asked_by_driver(const void *caller)
{
	struct elf_object o;
	const char *slash;

	if ((uintptr_t)caller >= doors.libcuda.start && (uintptr_t)caller < doors.libcuda.end)
		return true;
	if (!elf_object_at(caller, &o))
		return false;
	slash = strrchr(o.name, '/');
	return strncmp(slash ? slash + 1 : o.name, "libnvidia-", 10) == 0;
}

/* Runtime functions are wrapped for callers linked to the runtime; dlsym returns the real one. */
static void *not_ours(dlsym_fn *next, void *handle, const char *name)
{
	struct elf_object us;
	void *f = next(handle == RTLD_DEFAULT ? RTLD_NEXT : handle, name);

	if (f && elf_object_at((void *)not_ours, &us) && (uintptr_t)f >= us.start && (uintptr_t)f < us.end)
		f = next(RTLD_NEXT, name);
	return f;
}

struct pick rec_dlsym_pick(void *handle, const char *name, const void *caller)
{
	const struct pick pass = {NULL, 0};
	dlsym_fn *next = next_dlsym();
	void *f;
	int e;

	if (!name || !next || (strncmp(name, "cu", 2) != 0 && strncmp(name, "__cuda", 6) != 0))
		return pass;
	if (cupti_subscribes(name)) {
		dump_step_aside();
		return handle == RTLD_NEXT ? pass : (struct pick){not_ours(next, handle, name), 1};
	}
	e = door_by_name(name);
	if (e < 0)
		return handle != RTLD_NEXT && cudart_has(name) ? (struct pick){not_ours(next, handle, name), 1} : pass;
	/* From here, RTLD_NEXT means the next definition after ours: there is none if libcuda is not
	 * loaded. A program that looks for a driver this way must not find our wrapper instead. */
	if (handle == RTLD_DEFAULT || handle == RTLD_NEXT) {
		f = next(RTLD_NEXT, name);
		if (f && handle == RTLD_NEXT)
			return pass;
		return (struct pick){f ? door_wrapper[e] : NULL, 1};
	}
	f = next(handle, name);
	if (f == door_wrapper[e])	/* found through the global scope: as with RTLD_DEFAULT */
		return (struct pick){next(RTLD_NEXT, name) ? f : NULL, 1};
	if (f && doors_open() && f == door_real[e] && !asked_by_driver(caller))
		f = door_wrapper[e];
	return (struct pick){f, 1};
}
