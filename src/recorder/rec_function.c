/* SPDX-License-Identifier: Apache-2.0
 * Kernels: a number for each function handle, its name, and the layout of its parameters.
 */
#include <string.h>

#include "rec.h"
#include "rec_segment.h"

#define MAX_FUNCTIONS	16384
#define MAX_PARAMS	64
#define NAME_MAX_LEN	4000

static _Atomic uint32_t n_functions;

bool function_start(void)
{
	rec.functions = chunk_new(CW_CHUNK_FUNCTIONS, MAX_FUNCTIONS * sizeof(*rec.functions), 0);
	rec.function_index = side_new(FUNCTION_SLOTS * sizeof(struct slot));
	atomic_store(&n_functions, 1);		/* 0 means "unknown" */
	return rec.functions && rec.function_index;
}

/* A handle that is new (`old` 0), or may mean another function because a module was unloaded. The old entry
 * stays for the launches that refer to it. */
uint32_t function_new(uint64_t handle, uint64_t key, uint32_t old)
{
	uint32_t number, generation = atomic_load(&rec.module_generation);
	struct cw_function *f;

	if (!spin_try(&intern_lock))
		return old;
	number = table_get(rec.function_index, FUNCTION_SLOTS, key);	/* another thread may have been faster */
	if (number && rec.functions[number].generation == generation)
		goto out;
	number = old;
	if (atomic_load(&n_functions) < MAX_FUNCTIONS) {
		number = atomic_fetch_add(&n_functions, 1);
		f = &rec.functions[number];
		f->handle = handle;
		f->n_params = CW_UNKNOWN;
		f->generation = generation;
		if (!table_put(rec.function_index, FUNCTION_SLOTS, key, number))
			number = 0;
	}
out:
	spin_done(&intern_lock);
	if (!number)
		shared_add(&rec.h->lost_functions, 1);
	return number;
}

void function_is_plain(uint64_t handle)
{
	uint32_t number = function_number(handle);

	if (number)
		rec.functions[number].plain = 1;
}

bool function_plain(uint32_t number)
{
	return number && rec.functions[number].plain;
}

static const char *name_of(const struct cw_function *f)
{
	const char *name = NULL;

	if (!f->plain && drv.cuKernelGetName && drv.cuKernelGetName(&name, (void *)f->handle) == 0 && name)
		return name;
	if (drv.cuFuncGetName && drv.cuFuncGetName(&name, (void *)f->handle) == 0 && name)
		return name;
	return NULL;
}

/* The number of parameters. Newer drivers report it; with older ones we must query one parameter after another until
 * the driver returns an error, which it logs. So not if the user wants to see that log. */
static size_t param_count(const struct cw_function *f)
{
	CUresult (*count)(void *, size_t *) = f->plain ? drv.cuFuncGetParamCount : drv.cuKernelGetParamCount;
	size_t n;

	if (count)
		return count((void *)f->handle, &n) == 0 ? n : 0;
	return rec_getenv("CUDA_LOG_FILE") ? 0 : MAX_PARAMS;
}

static void learn_layout(struct cw_function *f)
{
	CUresult (*info)(void *, size_t, size_t *, size_t *) =
		f->plain ? drv.cuFuncGetParamInfo : drv.cuKernelGetParamInfo;
	struct { uint16_t off, size; } param[MAX_PARAMS];
	struct cw_layout *layout;
	size_t off, size, most = param_count(f);
	uint32_t n = 0, end = 0, at_off;

	most = most < MAX_PARAMS ? most : MAX_PARAMS;
	while (info && n < most && info((void *)f->handle, n, &off, &size) == 0) {
		if (off + size > UINT16_MAX)
			return;
		param[n].off = (uint16_t)off;
		param[n++].size = (uint16_t)size;
		end = (uint32_t)(off + size);
	}
	if (!n || !spin_try(&intern_lock))
		return;
	at_off = heap_alloc_layout(sizeof(*layout) + n * sizeof(layout->param[0]));
	spin_done(&intern_lock);
	if (!at_off)
		return;
	layout = at(at_off);
	memcpy(layout->param, param, n * sizeof(layout->param[0]));
	layout->n = n;
	f->n_params = n;
	f->param_bytes = end;
	shared_set(&f->layout, at_off);
}

/* Queries the driver at a function's first failure, and after its first success, when the driver has certainly
 * loaded it. */
void function_learn(uint32_t number, bool launched)
{
	struct cw_function *f = &rec.functions[number];
	const char *name;

	if (!number || (launched && shared_add(&f->launches, 1)))
		return;
	/* prefer the driver's own name to the one the program looked up */
	if ((launched || !shared_get(&f->name)) && (name = name_of(f)))
		shared_set(&f->name, intern_string(name, strnlen(name, NAME_MAX_LEN)));
	if (launched && !shared_get(&f->layout))
		learn_layout(f);
	if (launched && stock_function(f)) {
		shared_set(&f->stock, 1);
		shared_set(&f->settled, 1);
	}
}

uint32_t function_named(uint64_t handle, const char *name)
{
	uint32_t number = function_number(handle);

	if (number && name && !shared_get(&rec.functions[number].name))
		shared_set(&rec.functions[number].name, intern_string(name, strnlen(name, NAME_MAX_LEN)));
	return number;
}

/* Kernels that are looked up but may never be launched fill at most half of the table. */
void function_looked_up(uint64_t handle, const char *name, bool stock)
{
	uint32_t number = atomic_load(&n_functions) < MAX_FUNCTIONS / 2 ? function_named(handle, name) : 0;

	if (number && stock)
		shared_set(&rec.functions[number].stock, 1);
}

void function_same_code(uint64_t handle, uint64_t other)
{
	uint32_t number = function_number(handle), from = function_number(other);

	if (number && function_stock(from))
		shared_set(&rec.functions[number].stock, 1);
}
