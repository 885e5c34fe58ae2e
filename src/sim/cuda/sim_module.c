/* SPDX-License-Identifier: Apache-2.0
 * Modules and libraries: loading images from memory and files, finding functions by name. */
#include "sim/cuda/sim_image.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IMAGE_MAX = 1 << 30, OPTION_PRESERVED = 1 };

/* The whole file, and a zero byte: it may be text. */
static int file_read(const char *path, char **image)
{
	FILE *file = fopen(path, "re");
	size_t length = 0;
	long size = -1;

	if (!file)
		return errno == ENOENT ? SIM_FILE_NOT_FOUND : SIM_OPERATING_SYSTEM;
	if (!fseek(file, 0, SEEK_END))
		size = ftell(file);
	if (size < 0 || size > IMAGE_MAX || fseek(file, 0, SEEK_SET)) {
		fclose(file);
		return SIM_OPERATING_SYSTEM;
	}
	*image = calloc(1, (size_t)size + 64);
	if (*image)
		length = fread(*image, 1, (size_t)size, file);
	fclose(file);
	if (!*image)
		return SIM_OUT_OF_MEMORY;
	(*image)[length] = '\0';
	return 0;
}

/* What the driver does before the code is loaded: compile it, and make room for it on a GPU that may be busy. */
static int load_begin(struct sim_ctx *ctx)
{
	nanosleep(&(struct timespec){sim.config.load_takes / 1000, sim.config.load_takes % 1000 * 1000000L}, NULL);
	if (!sim.config.load_waits || !ctx)
		return 0;
	sim_ctx_drain(ctx);
	return atomic_load(&ctx->sticky);
}

int sim_cuModuleLoadData(struct sim_module **module, const void *image)
{
	struct sim_ctx *ctx = sim_ctx_current();
	int code;

	if (!image)
		sim_log("image cannot be NULL");
	if (!module || !image)
		return SIM_INVALID_VALUE;
	code = load_begin(ctx);
	return code ? code : sim_module_new(module, ctx, ctx->device, image, false);
}

int sim_cuModuleLoadDataEx(struct sim_module **module, const void *image, unsigned int count,
			   int *options, void **values)
{
	if (count && (!options || !values))
		return SIM_INVALID_VALUE;
	return sim_cuModuleLoadData(module, image);
}

int sim_cuModuleLoadFatBinary(struct sim_module **module, const void *image)
{
	return sim_cuModuleLoadData(module, image);
}

int sim_cuModuleLoad(struct sim_module **module, const char *file)
{
	char *text = NULL;
	int code;

	if (!module || !file)
		return SIM_INVALID_VALUE;
	code = file_read(file, &text);
	if (!code)
		code = sim_cuModuleLoadData(module, text);
	free(text);
	return code;
}

static void module_end(struct sim_module *mod)
{
	sim_funcs_free(mod->funcs);
	mod->funcs = NULL;
	sim_real_free(mod);
	sim_pool_drop(&sim.modules, mod);
}

int sim_cuModuleUnload(struct sim_module *module)
{
	struct sim_module *mod = sim_pool_get(&sim.modules, module);

	if (!mod || !mod->ctx)
		return SIM_INVALID_HANDLE;
	sim_ctx_drain(mod->ctx);
	module_end(mod);
	return 0;
}

/* A kernel is found by its mangled name, and by its plain name unless the image renamed it. */
static struct sim_func *func_find(struct sim_func *list, const char *name)
{
	for (struct sim_func *f = list; f; f = f->next)
		if (!strcmp(f->name, name))
			return f;
	for (struct sim_func *f = list; f; f = f->next)
		if (!strcmp(f->row->name, name) && !strcmp(f->name, f->row->mangled))
			return f;
	return NULL;
}

int sim_cuModuleGetFunction(struct sim_func **function, struct sim_module *module, const char *name)
{
	struct sim_module *mod = sim_pool_get(&sim.modules, module);
	struct sim_func *f;
	int code = 0;

	if (name && !*name)
		sim_log("name cannot be empty");
	if (!function || !name || !*name)
		return SIM_INVALID_VALUE;
	if (!module)
		sim_log("CUmodule cannot be NULL");
	if (!mod)
		return SIM_INVALID_HANDLE;
	f = mod->real ? sim_real_find(mod, name, &code) : func_find(mod->funcs, name);
	*function = f;
	if (code)
		return code;
	return f ? sim_func_load(f, sim_ctx_current()->device) : SIM_NOT_FOUND;
}

int sim_cuModuleGetLoadingMode(int *mode)
{
	if (!mode)
		return SIM_INVALID_VALUE;
	*mode = 2;		/* lazy */
	return 0;
}

static unsigned int funcs_count(const struct sim_func *f)
{
	unsigned int count = 0;

	for (; f; f = f->next)
		count++;
	return count;
}

int sim_cuModuleGetFunctionCount(unsigned int *count, struct sim_module *module)
{
	struct sim_module *mod = sim_pool_get(&sim.modules, module);

	if (!count)
		return SIM_INVALID_VALUE;
	if (!mod)
		return SIM_INVALID_HANDLE;
	if (mod->real)
		return sim_real_count(mod, count);
	*count = funcs_count(mod->funcs);
	return 0;
}

static void funcs_list(struct sim_func *f, struct sim_func **list, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++, f = f ? f->next : NULL)
		list[i] = f;
}

int sim_cuModuleEnumerateFunctions(struct sim_func **functions, unsigned int count, struct sim_module *module)
{
	struct sim_module *mod = sim_pool_get(&sim.modules, module);
	int code;

	if (!functions || !count)
		return SIM_INVALID_VALUE;
	if (!mod)
		return SIM_INVALID_HANDLE;
	code = mod->real ? sim_real_find_all(mod) : 0;
	if (!code)
		funcs_list(mod->funcs, functions, count);
	return code;
}

int sim_cuModuleGetGlobal_v2(sim_addr *address, size_t *bytes, struct sim_module *module, const char *name)
{
	struct sim_module *mod = sim_pool_get(&sim.modules, module);

	if (!name || (!address && !bytes))
		return SIM_INVALID_VALUE;
	if (!mod)
		return SIM_INVALID_HANDLE;
	return mod->real ? sim_real_variable(mod, sim_ctx_current()->device, name, false, address, bytes) : SIM_NOT_FOUND;
}

static pthread_mutex_t kernels_lock = PTHREAD_MUTEX_INITIALIZER;	/* for the kernels of libraries with real code */

/* A kernel is a separate handle for the function. */
static struct sim_func *kernel_make(struct sim_library *lib, struct sim_func *f)
{
	struct sim_func *k = sim_func_new(f->row);

	if (!k)
		return NULL;
	free(k->name);
	k->name = f->real ? f->name : strdup(f->name);
	k->real = f->real;
	k->func = f;
	k->module = f->module;
	k->library = lib;
	k->next = lib->kernels;
	if (!k->name) {
		sim_pool_drop(&sim.funcs, k);
		return NULL;
	}
	if (!f->real)
		sim_keep(k->name);
	f->kernel = k;
	lib->kernels = k;
	atomic_store(&k->head.alive, 1);
	return k;
}

static int kernels_make(struct sim_library *lib)
{
	for (struct sim_func *f = lib->module->funcs; f; f = f->next)
		if (!f->kernel && !kernel_make(lib, f))
			return SIM_OUT_OF_MEMORY;
	return 0;
}

/* Of real code, kernels are made when they are asked for. */
static struct sim_func *real_kernel(struct sim_library *lib, const char *name, int *code)
{
	struct sim_func *f = sim_real_find(lib->module, name, code), *k;

	if (!f)
		return NULL;
	pthread_mutex_lock(&kernels_lock);
	k = f->kernel ? f->kernel : kernel_make(lib, f);
	pthread_mutex_unlock(&kernels_lock);
	*code = k ? 0 : SIM_OUT_OF_MEMORY;
	return k;
}

static int library_load(struct sim_library **library, const void *image, bool kept)
{
	struct sim_ctx *ctx = sim_ctx_current();
	struct sim_library *lib;
	int code;

	if (!library || !image)
		return SIM_INVALID_VALUE;
	code = load_begin(ctx);
	if (code)
		return code;
	lib = sim_pool_new(&sim.libraries);
	if (!lib)
		return SIM_OUT_OF_MEMORY;
	lib->kernels = NULL;
	lib->module = NULL;
	/* Measured: an unusable image is not reported until a kernel is requested. */
	lib->code = sim_module_new(&lib->module, NULL, ctx ? ctx->device : 0, image, kept);
	code = lib->code ? 0 : kernels_make(lib);
	if (code) {
		sim_pool_drop(&sim.libraries, lib);
		return code;
	}
	atomic_store(&lib->head.alive, 1);
	*library = lib;
	return 0;
}

int sim_cuLibraryLoadData(struct sim_library **library, const void *image, int *options,
			  void **values, unsigned int count, int *lib_options, void **lib_values,
			  unsigned int lib_count)
{
	bool kept = false;

	(void)options, (void)values, (void)count;
	if (lib_count && !lib_options)
		return SIM_INVALID_VALUE;
	for (unsigned int i = 0; i < lib_count; i++)
		kept |= lib_options[i] == OPTION_PRESERVED && (!lib_values || lib_values[i]);
	return library_load(library, image, kept);
}

int sim_cuLibraryLoadFromFile(struct sim_library **library, const char *file, int *options,
			      void **values, unsigned int count, int *lib_options,
			      void **lib_values, unsigned int lib_count)
{
	char *text = NULL;
	int code;

	(void)options, (void)values, (void)count;
	(void)lib_options, (void)lib_values, (void)lib_count;
	if (!library || !file)
		return SIM_INVALID_VALUE;
	code = file_read(file, &text);
	if (!code)
		code = library_load(library, text, false);
	free(text);
	return code;
}

int sim_cuLibraryUnload(struct sim_library *library)
{
	struct sim_library *lib = sim_pool_get(&sim.libraries, library);

	if (!lib)
		return SIM_INVALID_HANDLE;
	sim_funcs_free(lib->kernels);
	if (lib->module)
		module_end(lib->module);
	sim_pool_drop(&sim.libraries, lib);
	return 0;
}

int sim_cuLibraryGetKernel(struct sim_func **kernel, struct sim_library *library, const char *name)
{
	struct sim_library *lib = sim_pool_get(&sim.libraries, library);
	struct sim_func *k;
	int code = 0;

	if (!kernel || !name || !*name)
		return SIM_INVALID_VALUE;
	if (!lib)
		return SIM_INVALID_HANDLE;
	if (lib->code) {
		sim_log("Kernel (%s) cannot be found in library due to compilation error, to get "
			"more information when using CUDA Driver APIs use the "
			"CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES "
			"parameters", name);
		return lib->code;
	}
	k = lib->module->real ? real_kernel(lib, name, &code) : func_find(lib->kernels, name);
	*kernel = k;
	return code ? code : k ? 0 : SIM_NOT_FOUND;
}

int sim_cuLibraryGetKernelCount(unsigned int *count, struct sim_library *library)
{
	struct sim_library *lib = sim_pool_get(&sim.libraries, library);

	if (!count)
		return SIM_INVALID_VALUE;
	if (!lib)
		return SIM_INVALID_HANDLE;
	if (lib->module && lib->module->real)
		return sim_real_count(lib->module, count);
	*count = funcs_count(lib->kernels);
	return 0;
}

int sim_cuLibraryEnumerateKernels(struct sim_func **kernels, unsigned int count, struct sim_library *library)
{
	struct sim_library *lib = sim_pool_get(&sim.libraries, library);
	int code;

	if (!kernels || !count)
		return SIM_INVALID_VALUE;
	if (!lib)
		return SIM_INVALID_HANDLE;
	code = lib->code;
	if (!code && lib->module->real)
		code = sim_real_find_all(lib->module);
	pthread_mutex_lock(&kernels_lock);
	if (!code && lib->module->real)
		code = kernels_make(lib);
	if (!code)
		funcs_list(lib->kernels, kernels, count);
	pthread_mutex_unlock(&kernels_lock);
	return code;
}

static int library_variable(struct sim_library *library, const char *name, bool managed, sim_addr *address, size_t *bytes)
{
	struct sim_library *lib = sim_pool_get(&sim.libraries, library);

	if (!name || (!address && !bytes))
		return SIM_INVALID_VALUE;
	if (!lib)
		return SIM_INVALID_HANDLE;
	if (lib->code)
		return lib->code;
	if (!lib->module->real)
		return SIM_NOT_FOUND;
	return sim_real_variable(lib->module, sim_ctx_current()->device, name, managed, address, bytes);
}

int sim_cuLibraryGetGlobal(sim_addr *address, size_t *bytes, struct sim_library *library, const char *name)
{
	return library_variable(library, name, false, address, bytes);
}

int sim_cuLibraryGetManaged(sim_addr *address, size_t *bytes, struct sim_library *library, const char *name)
{
	return library_variable(library, name, true, address, bytes);
}

int sim_cuLibraryGetModule(struct sim_module **module, struct sim_library *library)
{
	struct sim_library *lib = sim_pool_get(&sim.libraries, library);

	if (!module)
		return SIM_INVALID_VALUE;
	if (!lib)
		return SIM_INVALID_HANDLE;
	*module = lib->module;
	return lib->code;
}
