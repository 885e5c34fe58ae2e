/* SPDX-License-Identifier: Apache-2.0
 * The recorded driver functions: their names and what they do, from the one list of them.
 */
#include <stddef.h>

#include "read/recording/trace.h"

struct api_row {
	const char *name, *args;
	uint32_t n_args, does;
};

enum {
#define CLASS(name, before, writes, does, text) DOES_OF_##name = (does),
#include "kb/cuda_api.def"
};

static const struct api_row rows[] = {
#define CU(number, name, n, class, args) [number] = {#name, args, n, DOES_OF_##class},
#include "kb/cuda_api.def"
};

static const struct api_row *api_find(uint32_t api)
{
	static const struct api_row none = {.name = "", .args = ""};

	if (api >= sizeof(rows) / sizeof(rows[0]) || !rows[api].name)
		return &none;
	return &rows[api];
}

const char *api_name(uint32_t api)
{
	return api_find(api)->name;
}

bool api_does(uint32_t api, uint32_t what)
{
	return api_find(api)->does & what;
}

uint32_t api_n_args(uint32_t api)
{
	return api_find(api)->n_args;
}

const char *api_args(uint32_t api)
{
	return api_find(api)->args;
}

const char *reason_text(uint32_t reason)
{
	switch (reason) {
#define X(number, name, text) case number: return text;
	CW_REASONS(X)
#undef X
	default: return "the reason is not known";
	}
}
