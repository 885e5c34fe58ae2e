/* SPDX-License-Identifier: Apache-2.0
 * Names of the recorded driver functions, from their one list.
 */
#include <stddef.h>

#include "input/recording/trace.h"

struct api_row {
	const char *name, *class, *args;
};

static const struct api_row rows[] = {
#define CU(number, name, n, class, args) [number] = {#name, #class, args},
#define CU_S CU
#define CU_D CU
#define CU_OWN CU
#include "kb/cuda_api.def"
#undef CU
#undef CU_S
#undef CU_D
#undef CU_OWN
};

static const struct api_row *api_find(uint32_t api)
{
	static const struct api_row none = {"", "", ""};

	if (api >= sizeof(rows) / sizeof(rows[0]) || !rows[api].name)
		return &none;
	return &rows[api];
}

const char *api_name(uint32_t api)
{
	return api_find(api)->name;
}

const char *api_class(uint32_t api)
{
	return api_find(api)->class;
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
