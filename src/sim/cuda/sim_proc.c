/* SPDX-License-Identifier: Apache-2.0
 * Function lookup: cuGetProcAddress from the table, and the message for programs that use the
 * CUDA runtime. */
#include "sim/cuda/sim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_FOUND = 0, STATUS_NOT_FOUND = 1, STATUS_VERSION_NOT_SUFFICIENT = 2 };
enum { FLAG_PER_THREAD = 2 };

#define PLAIN_NONE(symbol, params)
#define PLAIN_S(symbol, params) int symbol##_ptsz params;
#define PLAIN_D(symbol, params) int symbol##_ptds params;
#define SIM_API(base, symbol, since, twin, need, params, args)                                     \
	SIM_EXPORT int symbol params;                                                              \
	PLAIN_##twin(symbol, params)
#include "sim/cuda/sim_api.def"
#undef SIM_API

struct row {
	const char *base;
	int since;
	void (*plain)(void), (*twin)(void);
};

#define TWIN_NONE(symbol) NULL
#define TWIN_S(symbol)	  (void (*)(void)) symbol##_ptsz
#define TWIN_D(symbol)	  (void (*)(void)) symbol##_ptds

static const struct row rows[] = {
#define SIM_API(base, symbol, since, twin, need, params, args)                                     \
	{#base, since, (void (*)(void))symbol, TWIN_##twin(symbol)},
#include "sim/cuda/sim_api.def"
#undef SIM_API
};

/* The newest variant that exists in both the caller's version and the driver. */
static const struct row *row_find(const char *name, int version, bool *known)
{
	const struct row *best = NULL;

	*known = false;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].base, name) || rows[i].since > sim.config.driver)
			continue;
		*known = true;
		if (rows[i].since <= version && (!best || rows[i].since > best->since))
			best = &rows[i];
	}
	return best;
}

/* Measured on R580: a function that is not found is not an error for the variant with a status,
 * while the older one returns an error and does not change *out. */
static int proc_find(const char *name, void **out, int version, uint64_t flags, int *status,
		     bool clear)
{
	void (*found)(void) = NULL;
	const struct row *row;
	bool known;

	if (sim_config_load())
		return SIM_UNKNOWN;
	if (!name || !out || version > sim.config.driver)
		return SIM_INVALID_VALUE;
	row = row_find(name, version, &known);
	if (row)
		found = (flags & FLAG_PER_THREAD) && row->twin ? row->twin : row->plain;
	*status = row ? STATUS_FOUND : known ? STATUS_VERSION_NOT_SUFFICIENT : STATUS_NOT_FOUND;
	if (row || clear)
		memcpy(out, &found, sizeof(found));
	return 0;
}

int sim_cuGetProcAddress(const char *name, void **out, int version, uint64_t flags)
{
	int status = STATUS_FOUND;
	int code = proc_find(name, out, version, flags, &status, false);

	return code || status == STATUS_FOUND ? code : SIM_NOT_FOUND;
}

int sim_cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status)
{
	int ignored;

	return proc_find(name, out, version, flags, status ? status : &ignored, true);
}

/* Libraries that bring a runtime of their own, and what makes programs do without them. */
static const struct {
	const char *library, *instead;
} avoided[] = {
	{"libcute_dsl_runtime", "in flashinfer, FLASHINFER_USE_CUDA_NORM=1 does without it"},
};

static const char *what_to_do(const char *library)
{
	for (size_t i = 0; i < sizeof(avoided) / sizeof(avoided[0]); i++)
		if (strstr(library, avoided[i].library))
			return avoided[i].instead;
	return "an extension of yours works with -cudart shared";
}

static bool is_new(const void *library)
{
	enum { LIBRARIES_MAX = 64 };
	static _Atomic(const void *) named[LIBRARIES_MAX];

	for (size_t i = 0; i < LIBRARIES_MAX; i++) {
		const void *none = NULL;

		if (atomic_compare_exchange_strong(&named[i], &none, library))
			return true;
		if (none == library)
			return false;
	}
	return false;
}

/* Only NVIDIA's own libraries request these tables, most often the CUDA runtime inside an extension (`nvcc` links it statically).
 * Their contents are not public: its calls fail, as they would with a driver that lacks the table, and programs that only try it go on. */
int sim_cuGetExportTable(const void **table, const struct sim_uuid *id)
{
	char line[512];
	Dl_info who = {.dli_fname = "a library"};
	int n;

	(void)id;
	if (table)
		*table = NULL;
	dladdr(sim_tls.caller, &who);
	if (!is_new(who.dli_fbase))
		return SIM_NOT_FOUND;
	n = snprintf(line, sizeof(line),
		     "cuwhy: '%s' contains NVIDIA's CUDA runtime, which the simulated GPU cannot run: its calls fail; %s\n",
		     who.dli_fname, what_to_do(who.dli_fname));
	if (write(STDERR_FILENO, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
		return SIM_NOT_FOUND;
	return SIM_NOT_FOUND;
}
