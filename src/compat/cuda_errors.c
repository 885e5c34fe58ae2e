/* SPDX-License-Identifier: Apache-2.0
 * Look-up in the one table of CUDA error codes.
 */
#include <stddef.h>

#include "compat/cuda_errors.h"

struct row {
	uint32_t code;
	const char *driver, *runtime;
	int sticky;
	const char *text;
};

static const struct row rows[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) {code, #driver, #runtime, sticky, text},
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
};

static const struct row *error_row(uint32_t code)
{
	static const struct row none = {0, "", "", 0, ""};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == code)
			return &rows[i];
	return &none;
}

const char *cuda_error_name(uint32_t code)
{
	const struct row *r = error_row(code);

	return r->driver[0] ? r->driver : r->runtime;
}

const char *cuda_error_driver_name(uint32_t code)
{
	return error_row(code)->driver;
}

const char *cuda_error_runtime_name(uint32_t code)
{
	return error_row(code)->runtime;
}

const char *cuda_error_text(uint32_t code)
{
	return error_row(code)->text;
}

bool cuda_error_sticky(uint32_t code)
{
	return error_row(code)->sticky == 1;
}
