/* SPDX-License-Identifier: Apache-2.0
 * A libcuda.so.1 that makes a real GPU smaller for one process: every function is the driver's own, but no allocation may
 * bring what the card has in use above CUWHY_TEST_CARD bytes, and that is what the card is said to have.
 *
 * What is in use is what the driver says itself, so the context, the code of kernels and what libraries take count with
 * exactly the bytes that they really take. Nothing else may use the card meanwhile. CUWHY_TEST_CARD=TOTAL[:LESS]: count LESS bytes less.
 * Memory that the driver takes later for itself (local memory of a kernel, cudaMallocAsync) is not refused, but counts.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OUT_OF_MEMORY = 2, NOT_FOUND = 500 };

static const char *const name[] = {
#define NAME(i, n) #n,
#include "names.h"
#undef NAME
};
enum { COUNT = sizeof(name) / sizeof(name[0]) };

static void *real[COUNT];
__attribute__((visibility("hidden"))) void *smaller_card_slot[COUNT];
static int64_t total, less;

/* Each exported function jumps to what its slot says. */
#define NAME(i, n) \
	extern char n[]; \
	__asm__(".text\n.globl " #n "\n.type " #n ", @function\n" #n ":\n\tendbr64\n" \
		"\tjmp *smaller_card_slot+8*" #i "(%rip)\n.size " #n ", .-" #n "\n");
#include "names.h"
#undef NAME

static void *const exported[] = {
#define NAME(i, n) n,
#include "names.h"
#undef NAME
};

static void *driver(const char *wanted)
{
	for (int i = 0; i < COUNT; i++)
		if (!strcmp(name[i], wanted))
			return real[i];
	return NULL;
}

static int ask(size_t *free_bytes, size_t *all)
{
	int (*f)(size_t *, size_t *) = driver("cuMemGetInfo_v2");

	return f(free_bytes, all);
}

/* What may still be allocated; below 0: more is in use than the card has. */
static int64_t left(void)
{
	size_t free_bytes, all;

	return ask(&free_bytes, &all) ? 0 : total - ((int64_t)(all - free_bytes) - less);
}

static int limited_cuMemGetInfo_v2(size_t *free_bytes, size_t *all)
{
	int r = ask(free_bytes, all);

	if (r == 0) {
		*free_bytes = left() > 0 ? (size_t)left() : 0;
		*all = (size_t)total;
	}
	return r;
}

static int limited_cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	int (*f)(size_t *, int) = driver("cuDeviceTotalMem_v2"), r = f(bytes, device);

	if (r == 0)
		*bytes = (size_t)total;
	return r;
}

/* Allocates, looks, and takes it back if it was too much: how the driver rounds need not be known. */
static int limited_cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	int (*f)(uint64_t *, size_t) = driver("cuMemAlloc_v2"), (*undo)(uint64_t) = driver("cuMemFree_v2");
	int r = f(address, bytes);

	if (r == 0 && left() < 0) {
		undo(*address);
		*address = 0;
		r = OUT_OF_MEMORY;
	}
	return r;
}

static int limited_cuMemAllocPitch_v2(uint64_t *address, size_t *pitch, size_t width, size_t height, unsigned element)
{
	int (*f)(uint64_t *, size_t *, size_t, size_t, unsigned) = driver("cuMemAllocPitch_v2");
	int (*undo)(uint64_t) = driver("cuMemFree_v2"), r = f(address, pitch, width, height, element);

	if (r == 0 && left() < 0) {
		undo(*address);
		*address = 0;
		r = OUT_OF_MEMORY;
	}
	return r;
}

static int limited_cuMemCreate(uint64_t *handle, size_t bytes, const void *what, uint64_t flags)
{
	int (*f)(uint64_t *, size_t, const void *, uint64_t) = driver("cuMemCreate");
	int (*undo)(uint64_t) = driver("cuMemRelease"), r = f(handle, bytes, what, flags);

	if (r == 0 && left() < 0) {
		undo(*handle);
		*handle = 0;
		r = OUT_OF_MEMORY;
	}
	return r;
}

/* Whoever asks for a function of the driver gets ours. */
static void swap(void **function)
{
	for (int i = 0; function && *function && i < COUNT; i++)
		if (real[i] == *function) {
			*function = exported[i];
			return;
		}
}

static int limited_cuGetProcAddress(const char *wanted, void **function, int version, uint64_t flags)
{
	int (*f)(const char *, void **, int, uint64_t) = driver("cuGetProcAddress");
	int r = f(wanted, function, version, flags);

	if (r == 0)
		swap(function);
	return r;
}

static int limited_cuGetProcAddress_v2(const char *wanted, void **function, int version, uint64_t flags, int *status)
{
	int (*f)(const char *, void **, int, uint64_t, int *) = driver("cuGetProcAddress_v2");
	int r = f(wanted, function, version, flags, status);

	if (r == 0)
		swap(function);
	return r;
}

static int not_found(void)
{
	return NOT_FOUND;
}

static const struct {
	const char *name;
	void *function;
} limited[] = {
	{"cuMemGetInfo_v2", limited_cuMemGetInfo_v2},
	{"cuDeviceTotalMem_v2", limited_cuDeviceTotalMem_v2},
	{"cuMemAlloc_v2", limited_cuMemAlloc_v2},
	{"cuMemAllocPitch_v2", limited_cuMemAllocPitch_v2},
	{"cuMemCreate", limited_cuMemCreate},
	{"cuGetProcAddress", limited_cuGetProcAddress},
	{"cuGetProcAddress_v2", limited_cuGetProcAddress_v2},
};

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CUWHY_TEST_DRIVER"), *card = getenv("CUWHY_TEST_CARD");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	char *end;

	if (!library || !card) {
		fprintf(stderr, "smaller_card: %s\n",
			path && card ? dlerror() : "CUWHY_TEST_DRIVER and CUWHY_TEST_CARD are not set");
		_exit(97);
	}
	total = strtoll(card, &end, 10);
	less = *end == ':' ? strtoll(end + 1, NULL, 10) : 0;
	for (int i = 0; i < COUNT; i++) {
		real[i] = dlsym(library, name[i]);
		smaller_card_slot[i] = real[i] ? real[i] : (void *)not_found;
		for (size_t k = 0; real[i] && k < sizeof(limited) / sizeof(limited[0]); k++)
			if (!strcmp(limited[k].name, name[i]))
				smaller_card_slot[i] = limited[k].function;
	}
}
