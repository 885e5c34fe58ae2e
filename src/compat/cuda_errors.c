/* SPDX-License-Identifier: Apache-2.0
 * Lookup in the tables of CUDA error codes and of their sets.
 */
#include <strings.h>

#include "compat/cuda_errors.h"

struct row {
	const char *name;
	uint32_t code;
	const char *driver, *runtime;
	int sticky;
	const char *text;
};

static const struct row rows[] = {
#define CUDA_ERROR(name, code, driver, runtime, sticky, text) {#name, code, #driver, #runtime, sticky, text},
#include "kb/cuda_errors.def"
};

#define ERROR_SET(name, why, ...) static const uint16_t codes_of_##name[] = {__VA_ARGS__};
#include "kb/error_sets.def"
#undef ERROR_SET

static const struct {
	const char *name;
	const uint16_t *codes;
	size_t n;
} sets[] = {
#define ERROR_SET(name, why, ...) {#name, codes_of_##name, sizeof(codes_of_##name) / sizeof(codes_of_##name[0])},
#include "kb/error_sets.def"
#undef ERROR_SET
};

static const struct row *cuda_error_row(uint32_t code)
{
	static const struct row none = {"", 0, "", "", 0, ""};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].code == code)
			return &rows[i];
	return &none;
}

const char *cuda_error_name(uint32_t code)
{
	const struct row *r = cuda_error_row(code);

	return r->driver[0] ? r->driver : r->runtime;
}

const char *cuda_error_driver_name(uint32_t code)
{
	return cuda_error_row(code)->driver;
}

const char *cuda_error_runtime_name(uint32_t code)
{
	return cuda_error_row(code)->runtime;
}

const char *cuda_error_text(uint32_t code)
{
	return cuda_error_row(code)->text;
}

bool cuda_error_sticky(uint32_t code)
{
	return cuda_error_row(code)->sticky == 1;
}

size_t cuda_error_set_codes(enum cuda_error_set set, const uint16_t **codes)
{
	*codes = sets[set].codes;
	return sets[set].n;
}

bool cuda_errors_contradict(uint32_t a, uint32_t b)
{
	static const uint32_t vague[] = {0, CODE_LAUNCH_FAILED, CODE_UNKNOWN};

	for (size_t i = 0; i < sizeof(vague) / sizeof(vague[0]); i++)
		if (a == vague[i] || b == vague[i])
			return false;
	return a != b && (cuda_error_sticky(a) || cuda_error_sticky(b));
}

bool cuda_error_in(uint32_t code, enum cuda_error_set set)
{
	for (size_t i = 0; i < sets[set].n; i++)
		if (sets[set].codes[i] == code)
			return true;
	return false;
}

static bool code_is_named(const char *name, const char *word, size_t len)
{
	return !strncasecmp(name, word, len) && !name[len];
}

int cuda_code_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (code_is_named(rows[i].name, name, len))
			return (int)rows[i].code;
	return -1;
}

int cuda_error_set_find(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++)
		if (code_is_named(sets[i].name, name, len))
			return (int)i;
	return -1;
}
