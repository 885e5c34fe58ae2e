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

/* Only NVIDIA's own libraries request these tables, most often the CUDA runtime inside an extension (`nvcc` links it statically).
 * Their contents are not public, so a program that needs them cannot continue: an error message is better than a crash. */
int sim_cuGetExportTable(const void **table, const struct sim_uuid *id)
{
	char line[512];
	Dl_info who = {0};
	int n;

	(void)table;
	(void)id;
	dladdr(sim_tls.caller, &who);
	n = snprintf(line, sizeof(line),
		"cuwhy: '%s' contains NVIDIA's CUDA runtime, which the simulated GPU cannot run; link it with -cudart shared\n",
		     who.dli_fname ? who.dli_fname : "a library");
	if (write(STDERR_FILENO, line, n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1) < 0)
		_exit(125);
	_exit(125);
}
