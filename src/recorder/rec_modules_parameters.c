/* SPDX-License-Identifier: Apache-2.0
 * Whose parameter is it? An optimizer makes its state while it has a parameter in hand, and knows nothing of modules.
 *
 * A module's parameters are noted when its name is read. Before one is taken for its, the dictionary that it was found in must be as it was.
 */
#include <string.h>

#include "rec_python.h"

#define SLOTS	16384u	/* a power of two */
#define PROBES	16u

static struct owned {
	const char *parameter, *dict;
	uint64_t version;		/* of the dictionary; 0 = Python has none */
	const char *self;		/* of the module */
	uint32_t module;
} owned[SLOTS];

void parameters_forget(void)
{
	for (uint32_t i = 0; i < SLOTS; i++)	/* after fork: do not touch pages that were never used */
		if (owned[i].parameter)
			owned[i] = (struct owned){0};
}

static struct owned *slot_of(const char *parameter, bool free_one)
{
	uint32_t at = (uint32_t)((uintptr_t)parameter * 0x9e3779b97f4a7c15ull >> 40) & (SLOTS - 1);

	for (uint32_t i = 0; i < PROBES; i++, at = (at + 1) & (SLOTS - 1))
		if (owned[at].parameter == parameter || (free_one && !owned[at].parameter))
			return &owned[at];
	return NULL;
}

static uint64_t version_of(const char *dict)
{
	uint64_t version;

	return py.l.minor <= 12 && rec_read_memory(&version, dict + PY_DICT_VERSION, sizeof(version)) ? version : 0;
}

static bool note(const char *parameter, const char *dict, void *with)
{
	const struct owned *whose = with;
	struct owned *o = slot_of(parameter, true);

	if (!o || (o->parameter && o->module < whose->module))	/* shared: the first module that has it */
		return o != NULL;
	shared_set(&o->module, 0);
	o->dict = dict;
	o->version = version_of(dict);
	o->self = whose->self;
	o->parameter = parameter;
	shared_set(&o->module, whose->module);
	return true;
}

void parameters_learn(uint32_t module, const char *self)
{
	module_parameters(self, note, &(struct owned){.self = self, .module = module});
}

static bool is_it(const char *parameter, const char *dict, void *with)
{
	struct owned *o = with;

	(void)dict;
	if (o->parameter == parameter)
		o->module = 1;
	return !o->module;
}

static bool still_has(const struct owned *o)
{
	struct owned found = {.parameter = o->parameter};

	if (o->version)
		return version_of(o->dict) == o->version;
	module_parameters(o->self, is_it, &found);
	return found.module;
}

uint32_t parameter_module(const char *parameter)
{
	struct owned *o = slot_of(parameter, false);
	uint32_t module = o ? shared_get(&o->module) : 0;

	if (!module || still_has(o))
		return module;
	shared_set(&o->module, 0);
	return 0;
}
