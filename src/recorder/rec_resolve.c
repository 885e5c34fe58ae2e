/* SPDX-License-Identifier: Apache-2.0
 * Third door: cuGetProcAddress returns our wrapper if we have one for exactly that function.
 */
#include "rec.h"

static void swap(void **function)
{
	int e = function && *function ? door_by_real(*function) : -1;

	if (e >= 0)
		*function = door_wrapper[e];
}

EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags);
EXPORT CUresult cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
	CUresult (*real)(const char *, void **, int, uint64_t) = door(ENTRY_cuGetProcAddress);
	CUresult r = real ? real(name, function, version, flags) : CU_NO_DRIVER;

	if (r == 0)
		swap(function);
	return r;
}

EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
				    int *status);
EXPORT CUresult cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags,
				    int *status)
{
	CUresult (*real)(const char *, void **, int, uint64_t, int *) = door(ENTRY_cuGetProcAddress_v2);
	CUresult r = real ? real(name, function, version, flags, status) : CU_NO_DRIVER;

	if (r == 0)
		swap(function);
	return r;
}

/* The handle is a structure by value, so this one has its own wrapper. */
struct ipc_handle { char bytes[64]; };

EXPORT CUresult cuIpcOpenMemHandle_v2(uint64_t *addr, struct ipc_handle handle, unsigned flags);
EXPORT CUresult cuIpcOpenMemHandle_v2(uint64_t *addr, struct ipc_handle handle, unsigned flags)
{
	CUresult (*real)(uint64_t *, struct ipc_handle, unsigned) = door(ENTRY_cuIpcOpenMemHandle_v2);
	const uint64_t arg[] = {(uintptr_t)addr, flags};
	bool record;
	CUresult r;

	if (!real)
		return CU_NO_DRIVER;
	record = rec_enter();
	r = real(addr, handle, flags);
	if (!record)
		return r;
	note_call(&(struct call_note){
		.api = API_cuIpcOpenMemHandle_v2, .result = r, .arg = arg, .n_args = 2, .out = r ? 0 : *addr});
	if (r == 0)
		driver_alloc_add(*addr, 0, CW_MEM_IPC, -1, 0);
	rec_leave();
	return r;
}
