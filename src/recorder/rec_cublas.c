/* SPDX-License-Identifier: Apache-2.0
 * Which of PyTorch's blocks are workspaces of cuBLAS.
 *
 * PyTorch allocates one for each thread and stream that multiplies matrices, in the middle of some forward or backward,
 * and keeps it for ever (32 MiB each on an H100): without this it would pass for a gradient. It tells cuBLAS of it before
 * every product.
 */
#include "rec.h"
#include "rec_site.h"

#define NOT_INITIALIZED 1	/* cublasStatus_t */

typedef int set_workspace(void *handle, void *workspace, size_t size);

/* The library that asked first, PyTorch's, and the cuBLAS it means. */
static struct {
	uintptr_t start, end;
	set_workspace *real;
	_Atomic bool known;
} torch;
static struct spin once = { ATOMIC_FLAG_INIT };

static set_workspace *real_for(const void *caller)
{
	static const char name[] = "cublasSetWorkspace_v2";
	struct elf_object who, cublas;
	set_workspace *real;

	if (atomic_load_explicit(&torch.known, memory_order_acquire) && (uintptr_t)caller >= torch.start &&
	    (uintptr_t)caller < torch.end)
		return torch.real;
	/* not libcublasLt, which comes first in the list of some */
	if (!elf_linked(caller, "libcublas.so", &who, &cublas))
		return (set_workspace *)elf_symbol_anywhere(name);
	real = (set_workspace *)elf_symbol(&cublas, name);
	if (real && !torch.known && spin_try(&once)) {
		if (!torch.known) {
			torch.start = who.start;
			torch.end = who.end;
			torch.real = real;
			atomic_store_explicit(&torch.known, true, memory_order_release);
		}
		spin_done(&once);
	}
	return real ? real : (set_workspace *)elf_symbol_anywhere(name);
}

EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size);
EXPORT int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size)
{
	set_workspace *real = real_for(__builtin_return_address(0));
	int status = real ? real(handle, workspace, size) : NOT_INITIALIZED;

	if (status == 0 && workspace && rec_enter()) {
		block_is_workspace((uintptr_t)workspace, (const void *)real);
		rec_leave();
	}
	return status;
}
