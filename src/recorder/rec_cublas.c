/* SPDX-License-Identifier: Apache-2.0
 * Which of PyTorch's blocks are cuBLAS workspaces.
 *
 * PyTorch allocates one for each thread and stream that multiplies matrices, in the middle of some forward or backward,
 * and keeps it forever (32 MiB each on an H100): without this it would look like a gradient. It passes it to cuBLAS
 * before a matmul, and to cuBLASLt with the matmul.
 */
#include "recorder/guard/rec_guard.h"
#include "rec_linked.h"
#include "rec_site.h"

#define NOT_INITIALIZED 1	/* cublasStatus_t */

static const char *const set_name[] = {"cublasSetWorkspace_v2"};
static const char *const product_name[] = {"cublasLtMatmul"};
static struct linked cublas = LINKED("libcublas.so", set_name);
static struct linked cublas_lt = LINKED("libcublasLt.so", product_name);
LOCK_LISTED(cublas, cublas.adding);
LOCK_LISTED(cublas_lt, cublas_lt.adding);

/* The program calls it, so some library defines it: it must never fail because of us. */
static void *real_in(struct linked *l, const void *caller)
{
	void *real = linked_real(l, 0, caller);

	return likely(real) ? real : elf_symbol_anywhere(l->name[0]);
}

static void note_workspace(int status, const void *workspace, const void *real)
{
	bool known = torch_block_known_workspace((uintptr_t)workspace);

	if (status || !workspace || (known && likely(!atomic_load_explicit(&rec.captures, memory_order_relaxed))) ||
	    !rec_enter())
		return;
	if (!known)
		torch_block_is_workspace((uintptr_t)workspace, real);
	if (guard_on())
		guard_workspace((uintptr_t)workspace);
	rec_leave();
}

EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size);
EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size)
{
	int (*real)(void *, void *, size_t) = real_in(&cublas, __builtin_return_address(0));
	int status = real ? real(handle, workspace, size) : NOT_INITIALIZED;

	note_workspace(status, workspace, (const void *)real);
	return status;
}

/* handle, description, alpha; A, B, beta, C, D with their layouts; algorithm, workspace, stream. All are words. */
#define WORDS(X) X a, X b, X c, X d, X e, X f, X g, X h, X i, X j, X k, X l, X m, X workspace, X size, X stream

EXPORT int cublasLtMatmul(WORDS(uint64_t));
EXPORT int cublasLtMatmul(WORDS(uint64_t))
{
	int (*real)(WORDS(uint64_t)) = real_in(&cublas_lt, __builtin_return_address(0));
	int status = real ? real(a, b, c, d, e, f, g, h, i, j, k, l, m, workspace, size, stream) : NOT_INITIALIZED;

	note_workspace(status, (const void *)(uintptr_t)workspace, (const void *)real);
	return status;
}
