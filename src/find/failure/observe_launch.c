/* SPDX-License-Identifier: Apache-2.0
 * Facts about a refused launch: what was requested, what the device and the kernel allow.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "find/failure/observe.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "formats/demangle.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

/* The same on every GPU since compute capability 3.0 (CUDA programming guide, all editions up to 13):
 * used, and marked as assumed, when the device's own limits are not in the recording. */
static const struct { enum fact_id fact; enum cw_device_attr attr; double everywhere; } limits[] = {
	{FACT_limit_grid_x, CW_DEV_grid_x, 2147483647},
	{FACT_limit_grid_y, CW_DEV_grid_y, 65535},
	{FACT_limit_grid_z, CW_DEV_grid_z, 65535},
	{FACT_limit_block_x, CW_DEV_block_x, 1024},
	{FACT_limit_block_y, CW_DEV_block_y, 1024},
	{FACT_limit_block_z, CW_DEV_block_z, 64},
	{FACT_limit_threads, CW_DEV_threads_per_block, 1024},
	{FACT_limit_shared, CW_DEV_shared_per_block, 0},
	{FACT_limit_shared_optin, CW_DEV_shared_optin, 0},
	{FACT_limit_registers, CW_DEV_registers_per_block, 0},
	{FACT_limit_sm_count, CW_DEV_sm_count, 0},
};

/* The dimensions in the order in which the driver complains (580.159, H200: the block before the grid). */
static const struct { const char *name; enum fact_id value, limit; } dims[] = {
	{"block x", FACT_launch_block_x, FACT_limit_block_x},
	{"block y", FACT_launch_block_y, FACT_limit_block_y},
	{"block z", FACT_launch_block_z, FACT_limit_block_z},
	{"block threads", FACT_launch_threads, FACT_limit_threads},
	{"grid x", FACT_launch_grid_x, FACT_limit_grid_x},
	{"grid y", FACT_launch_grid_y, FACT_limit_grid_y},
	{"grid z", FACT_launch_grid_z, FACT_limit_grid_z},
};
#define N_DIMS (sizeof(dims) / sizeof(dims[0]))

static void fill_limits(struct casefile *f, const struct cw_device *d)
{
	bool assumed = false;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		int32_t v = d ? d->attr[limits[i].attr] : -1;

		if (v > 0) {
			fact_set_number(f, limits[i].fact, v);
		} else if (limits[i].everywhere > 0) {
			fact_set_number(f, limits[i].fact, limits[i].everywhere);
			assumed = true;
		}
	}
	fact_set_flag(f, FACT_limit_assumed, assumed);
	if (d && d->attr[CW_DEV_cooperative] >= 0)
		fact_set_flag(f, FACT_limit_cooperative, d->attr[CW_DEV_cooperative]);
	if (d && d->attr[CW_DEV_cluster_launch] >= 0)
		fact_set_flag(f, FACT_limit_cluster, d->attr[CW_DEV_cluster_launch]);
}

static void fill_dimensions(struct casefile *f, const struct cw_failure *l)
{
	static const enum fact_id cluster[] = {FACT_launch_cluster_x, FACT_launch_cluster_y,
					       FACT_launch_cluster_z};
	double blocks = 1, threads = 1;

	for (int i = 0; i < 3; i++) {
		fact_set_number(f, dims[i].value, l->block[i]);
		fact_set_number(f, dims[4 + i].value, l->grid[i]);
		blocks *= l->grid[i];
		threads *= l->block[i];
		if (l->cluster[0])
			fact_set_number(f, cluster[i], l->cluster[i] ? l->cluster[i] : 1);
	}
	fact_set_number(f, FACT_launch_blocks, blocks);
	fact_set_number(f, FACT_launch_threads, threads);
	fact_set_flag(f, FACT_launch_cooperative, l->cooperative);
	fact_set_flag(f, FACT_launch_captured, l->capturing);
	fact_set_number(f, FACT_shared_asked, l->shared);
	fact_set_text(f, FACT_shared_by, "launch");
}

/* The first dimension that is zero, over its limit, or a negative number in disguise: what the driver
 * complained about. */
static void judge_dimensions(struct casefile *f)
{
	const char *broken = "", *zero = "", *negative = "";

	for (size_t i = 0; i < N_DIMS && !broken[0] && !zero[0]; i++) {
		double v = fact_number(f, dims[i].value, 1), limit = fact_number(f, dims[i].limit, INFINITY);

		if (v == 0)
			zero = dims[i].name;
		if (v <= limit)
			continue;
		broken = dims[i].name;
		fact_set_number(f, FACT_launch_broken_value, v);
		fact_set_number(f, FACT_launch_broken_limit, limit);
		if (v >= 2147483648.0 && dims[i].value != FACT_launch_threads) {
			negative = dims[i].name;
			fact_set_number(f, FACT_launch_negative, v - 4294967296.0);
		}
	}
	fact_set_text(f, FACT_launch_broken, broken);
	fact_set_text(f, FACT_launch_zero, zero);
	fact_set_text(f, FACT_launch_negative_dim, negative);
}

static void fill_function(struct casefile *f, const struct cw_failure *l)
{
	static const struct { enum fact_id fact; enum cw_func_attr attr; } rows[] = {
		{FACT_func_max_threads, CW_FUNC_max_threads},
		{FACT_func_registers, CW_FUNC_registers},
		{FACT_func_static_shared, CW_FUNC_static_shared},
		{FACT_func_max_dynamic_shared, CW_FUNC_max_dynamic_shared},
		{FACT_func_local_bytes, CW_FUNC_local_bytes},
		{FACT_func_binary_version, CW_FUNC_binary_version},
		{FACT_func_ptx_version, CW_FUNC_ptx_version},
	};
	bool any = false;

	/* a recorder that could not ask leaves everything at one value */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		any |= l->func_attr[rows[i].attr] > 0;
	for (size_t i = 0; any && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (l->func_attr[rows[i].attr] >= 0)
			fact_set_number(f, rows[i].fact, l->func_attr[rows[i].attr]);
	if (fact_known(f, FACT_shared_asked) && fact_known(f, FACT_func_static_shared))
		fact_set_number(f, FACT_shared_total,
				fact_number(f, FACT_shared_asked, 0) + fact_number(f, FACT_func_static_shared, 0));
}

/* Registers are allocated per warp in units of 256, and a block's warps are spread over the
 * multiprocessor's sub-partitions: four, two on compute capability 6.0. */
static void fill_registers(struct casefile *f)
{
	double parts = !strcmp(fact_text(f, FACT_device_cc), "6.0") ? 2 : 4;
	double limit = fact_number(f, FACT_limit_registers, 0);
	double per_warp = ceil(fact_number(f, FACT_func_registers, 0) * 32 / 256) * 256;
	double warps = ceil(fact_number(f, FACT_launch_threads, 0) / 32);

	if (!limit || !per_warp)
		return;
	fact_set_number(
		f, FACT_func_register_threads,
		fmin(floor(limit / per_warp / parts) * parts * 32, fact_number(f, FACT_limit_threads, 1024)));
	if (warps > 0)
		fact_set_number(f, FACT_func_register_need, ceil(warps / parts) * parts * per_warp);
}

static const char *owner_by_name(const char *name)
{
	static const struct { const char *part, *owner;
	} rows[] = {
		{"at::", "torch"}, {"_ZN2at", "torch"},	  {"c10::", "torch"}, {"pytorch_flash::", "torch"},
		{"cupy_", "cupy"}, {"triton_", "triton"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *s = strstr(name, rows[i].part);

		if (s && (s == name || !(s[-1] == '_' || (s[-1] >= 'a' && s[-1] <= 'z'))))
			return rows[i].owner;
	}
	return NULL;
}

/* The source file that PyTorch's check names: its own are under these folders. */
static const char *owner_by_file(const struct incident *i)
{
	const struct cw_failure *c = incident_from(i, CW_SRC_TORCH_CUDA);

	if (!c || !c->file[0])
		return NULL;
	return strstr(c->file, "aten/src/") || strstr(c->file, "c10/") || strstr(c->file, "torch/csrc/") ? "torch"
													 : "extension";
}

static const char *file_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file that contains the code or made the call: the recorder's best evidence. Files that calls only
 * pass through say nothing about whose they are. */
static const char *owner_by_library(struct casefile *f, const struct incident *i)
{
	static const struct { const char *part, *owner;
	} rows[] = {
		{"/torch/lib/lib", "torch"}, {"cupy", "cupy"}, {"triton", "triton"},
		{"libcudart", ""},	     {"libcuda.so", ""}, {"libpython", ""},
		{"/bin/python", ""},	     {"_ctypes", ""},	 {"libffi", ""},
	};
	const char *path = "";

	for (size_t k = 0; k < i->n && !path[0]; k++)
		path = i->failure[k]->library;
	if (!path[0])
		return NULL;
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		if (strstr(path, rows[k].part)) {
			if (rows[k].owner[0])
				fact_set_text(f, FACT_call_library, file_part(path));
			return rows[k].owner[0] ? rows[k].owner : NULL;
		}
	fact_set_text(f, FACT_call_library, file_part(path));
	return strstr(path, ".so") ? "extension" : NULL;
}

static void fill_owner(struct casefile *f, const struct incident *i, const struct trace *t)
{
	const char *name = fact_text(f, FACT_func_short);
	enum owner top = stack_top_owner(t, i->lead->stack);
	const char *owner = name[0] ? owner_by_name(name) : NULL;

	if (!owner)
		owner = owner_by_library(f, i);
	if (!owner)
		owner = top == OWNER_TRITON ? "triton" : top == OWNER_CUPY ? "cupy" : NULL;
	if (!owner)
		owner = owner_by_file(i);
	if (!owner && !trace_header(t)->py_version)
		owner = "program";
	/* PyTorch's own kernels come through the runtime (cuLibraryLoadData), not through other calls that load code */
	if (!owner && (name[0] || api_does(i->lead->api, DOES_FOREIGN) || !trace_header(t)->torch_path[0]))
		owner = "extension";
	if (!owner)
		return;
	fact_set_text(f, FACT_kernel_owner, owner);
	fact_set_flag(f, FACT_kernel_is_torch, !strcmp(owner, "torch"));
	fact_set_flag(f, FACT_kernel_is_triton, !strcmp(owner, "triton"));
}

/* cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE_BYTES, value), or its twin for kernels. */
static void fill_optin(struct casefile *f, const struct cw_failure *l)
{
	if (api_does(l->api, DOES_SET_FUNCTION) && l->n_args >= 3 && (int32_t)l->arg[1] == 8)
		fact_set_number(f, FACT_shared_asked, (int32_t)l->arg[2]);
	else if (api_does(l->api, DOES_SET_KERNEL) && l->n_args >= 2 && (int32_t)l->arg[0] == 8)
		fact_set_number(f, FACT_shared_asked, (int32_t)l->arg[1]);
	else
		return;
	fact_set_text(f, FACT_shared_by, "opt-in");
}

/* "Kernel (_Z5touchv) cannot be found in library due to compilation error" */
static const char *logged_name(const struct casefile *f)
{
	const char *s = strstr(fact_text(f, FACT_error_log), "Kernel ("), *end = s ? strchr(s, ')') : NULL;
	char *mangled, *plain;
	const char *name;

	if (!end)
		return "";
	s += strlen("Kernel (");
	mangled = pool_copy(f->pool, s, (size_t)(end - s));
	plain = demangle(mangled);
	name = plain ? pool_strdup(f->pool, plain) : mangled;
	free(plain);
	return name;
}

static const struct cw_failure *find_launch(const struct incident *i)
{
	for (size_t k = 0; k < i->n; k++)
		if (i->failure[k]->is_launch)
			return i->failure[k];
	return NULL;
}

void fill_launch(struct casefile *f, const struct incident *i, struct trace *t, const struct cw_device *d)
{
	const struct cw_failure *l = find_launch(i);
	uint32_t func = l ? l->func : i->lead->func;
	const char *name = func ? trace_function_name(t, func) : "";
	bool capture = i->code >= 900 && i->code <= 908;

	fact_set_text(f, FACT_shared_by, "");
	fact_set_flag(f, FACT_launch_is, (l || i->code == CODE_INVALID_CONFIGURATION) && !i->sticky && !capture);
	fill_limits(f, d);
	if (!name[0])
		name = logged_name(f);
	if (name[0]) {
		fact_set_text(f, FACT_func_name, name);
		fact_set_text(f, FACT_func_short, kernel_short_name(name, f->pool));
	}
	if (l) {
		fill_dimensions(f, l);
		judge_dimensions(f);
	} else {
		fill_optin(f, i->lead);
	}
	fill_function(f, l ? l : i->lead);
	fill_registers(f);
	fill_owner(f, i, t);
}
