/* SPDX-License-Identifier: Apache-2.0
 * Which of PyTorch's blocks are workspaces of cuBLAS.
 *
 * PyTorch allocates one for each thread and stream that multiplies matrices, in the middle of some forward or backward,
 * and keeps it for ever (32 MiB each on an H100): without this it would pass for a gradient. It tells cuBLAS of it before
 * a product, and cuBLASLt with the product.
 */
#include "rec.h"
#include "rec_site.h"

#define NOT_INITIALIZED 1	/* cublasStatus_t */

#define CALLERS 16

/* Libraries that asked, and the function of the cuBLAS that each of them means. Entries are added, never changed. */
struct door {
	const char *library, *name;
	struct { uintptr_t start, end; void *real; } caller[CALLERS];
	_Atomic uint32_t n;
	struct spin adding;
};

static struct door set_door = { .library = "libcublas.so", .name = "cublasSetWorkspace_v2", .adding = { ATOMIC_FLAG_INIT } };
static struct door product_door = { .library = "libcublasLt.so", .name = "cublasLtMatmul", .adding = { ATOMIC_FLAG_INIT } };

static __attribute__((noinline)) void *find(struct door *d, const void *caller)
{
	struct elf_object who, cublas;
	void *real;
	uint32_t n;

	if (!elf_linked(caller, d->library, &who, &cublas))
		return elf_symbol_anywhere(d->name);
	real = elf_symbol(&cublas, d->name);
	real = real ? real : elf_symbol_anywhere(d->name);
	if (!real || !spin_try(&d->adding))
		return real;
	n = atomic_load(&d->n);
	if (n < CALLERS) {
		d->caller[n].start = who.start;
		d->caller[n].end = who.end;
		d->caller[n].real = real;
		atomic_store_explicit(&d->n, n + 1, memory_order_release);
	}
	spin_done(&d->adding);
	return real;
}

static inline void *real_for(struct door *d, const void *caller)
{
	uint32_t n = atomic_load_explicit(&d->n, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++)
		if ((uintptr_t)caller >= d->caller[i].start && (uintptr_t)caller < d->caller[i].end)
			return d->caller[i].real;
	return find(d, caller);
}

static void note(int status, const void *workspace, const void *real)
{
	if (status == 0 && workspace && rec_enter()) {
		block_is_workspace((uintptr_t)workspace, real);
		rec_leave();
	}
}

EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size);
EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size)
{
	int (*real)(void *, void *, size_t) = real_for(&set_door, __builtin_return_address(0));
	int status = real ? real(handle, workspace, size) : NOT_INITIALIZED;

	note(status, workspace, (const void *)real);
	return status;
}

/* handle, description, alpha; A, B, beta, C, D with their layouts; algorithm, workspace, stream. All are words. */
#define WORDS(X) X a, X b, X c, X d, X e, X f, X g, X h, X i, X j, X k, X l, X m, X workspace, X size, X stream

EXPORT int cublasLtMatmul(WORDS(uint64_t));
EXPORT int cublasLtMatmul(WORDS(uint64_t))
{
	int (*real)(WORDS(uint64_t)) = real_for(&product_door, __builtin_return_address(0));
	int status = real ? real(a, b, c, d, e, f, g, h, i, j, k, l, m, workspace, size, stream) : NOT_INITIALIZED;

	note(status, (const void *)(uintptr_t)workspace, (const void *)real);
	return status;
}
