/* SPDX-License-Identifier: Apache-2.0
 * Whose code a kernel is: PyTorch's and NVIDIA's own ("stock"), or anything else, which is more likely to go astray.
 *
 * Decided when code is loaded, by where it lies in memory. Code that a library brings along lies in that library's
 * file. What was compiled at run time (Triton, CuPy, NVRTC) does not: it is stock only if one of NVIDIA's libraries
 * loads it for itself. Whatever cannot be decided is not stock.
 */
#include <string.h>

#include "rec.h"

#define MAX_CODE	8192		/* modules and libraries; power of two */
#define FATBIN_WRAPPER	0x466243b1u	/* first word of the structure that compilers put before a fat binary */

static const struct stock_library {
	const char *name;
	enum { BY_TORCH, BY_NVIDIA } owner;
} stock_libraries[] = {
#define STOCK(name, owner) {name, BY_##owner},
#include "kb/stock_libraries.def"
};

static struct slot code[MAX_CODE];	/* handle of a module or library -> 1: stock */
static bool code_used;

/* The last file that was identified: a library loads all its code in one go. */
static struct { struct spin lock; uintptr_t start, end; bool stock; } last;
LOCK_LISTED(stock, last.lock);

void stock_forget(void)
{
	if (code_used)
		memset(code, 0, sizeof(code));
	memset(&last, 0, sizeof(last));
}

static const struct stock_library *library_at(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	for (size_t i = 0; i < sizeof(stock_libraries) / sizeof(stock_libraries[0]); i++)
		if (strncmp(base, stock_libraries[i].name, strlen(stock_libraries[i].name)) == 0)
			return &stock_libraries[i];
	return NULL;
}

bool stock_library(const char *path)
{
	const struct stock_library *library = library_at(path);

	return library && library->owner == BY_NVIDIA;
}

static bool lies_in_stock(const void *image, bool *in_a_file)
{
	uintptr_t address = (uintptr_t)image;
	struct elf_object o;
	bool stock;

	*in_a_file = true;
	if (spin_try(&last.lock)) {
		bool hit = address >= last.start && address < last.end;

		stock = last.stock;
		spin_done(&last.lock);
		if (hit)
			return stock;
	}
	*in_a_file = elf_object_at(image, &o);
	if (!*in_a_file)
		return false;
	stock = library_at(o.name) != NULL;
	if (spin_try(&last.lock)) {
		last.start = o.start;
		last.end = o.end;
		last.stock = stock;
		spin_done(&last.lock);
	}
	return stock;
}

static bool comes_from_stock(const void *image, const void *caller)
{
	const struct stock_library *library;
	struct elf_object o;
	uint32_t first;
	bool in_a_file, stock;

	memcpy(&first, image, sizeof(first));
	if (first == FATBIN_WRAPPER)
		memcpy(&image, (const char *)image + sizeof(uint64_t), sizeof(image));
	stock = lies_in_stock(image, &in_a_file);
	if (in_a_file)
		return stock;
	library = elf_object_at(caller, &o) ? library_at(o.name) : NULL;
	return library && library->owner == BY_NVIDIA;
}

static void code_put(uint64_t handle, bool stock)
{
	uint64_t key = function_key(handle);

	/* an old handle may come back with other code */
	if (!stock && !table_get(code, MAX_CODE, key))
		return;
	if (!spin_try(&intern_lock))
		return;
	code_used = true;
	table_put(code, MAX_CODE, key, stock);
	spin_done(&intern_lock);
}

bool stock_loaded(uint64_t handle, const void *image, const void *caller)
{
	bool stock = image && comes_from_stock(image, caller);

	code_put(handle, stock);
	return stock;
}

bool stock_code(uint64_t handle)
{
	return table_get(code, MAX_CODE, function_key(handle)) == 1;
}

/* For a function that has been launched, so that the driver certainly has its code: whatever else comes out of that
 * code is stock, too, also when an unloaded module has made the handle doubtful. */
bool stock_function(const struct cw_function *f)
{
	void *from = NULL;

	bool stock = shared_get(&f->stock);

	/* a handle that is not known to be plain may still be */
	if (!drv.cuKernelGetLibrary || !drv.cuFuncGetModule ||
	    ((f->plain || drv.cuKernelGetLibrary(&from, (void *)f->handle)) &&
	     drv.cuFuncGetModule(&from, (void *)f->handle)))
		return stock;
	if (stock)
		code_put((uint64_t)from, true);
	return stock || stock_code((uint64_t)from);
}
