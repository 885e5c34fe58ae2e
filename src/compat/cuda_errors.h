/* SPDX-License-Identifier: Apache-2.0
 * Names and meanings of CUDA error codes, from kb/cuda_errors.def, and sets of them, from kb/error_sets.def. Strings are
 * static; "" = none.
 */
#ifndef CUWHY_CUDA_ERRORS_H
#define CUWHY_CUDA_ERRORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cuda_code {
#define CUDA_ERROR(name, code, driver, runtime, sticky, text) CODE_##name = code,
#include "kb/cuda_errors.def"
};

enum cuda_error_set {
#define ERROR_SET(name, why, ...) SET_##name,
#include "kb/error_sets.def"
#undef ERROR_SET
	N_CUDA_ERROR_SETS
};

const char *cuda_error_name(uint32_t code);		/* CUDA_ERROR_…, else cudaError… */
const char *cuda_error_driver_name(uint32_t code);	/* CUDA_ERROR_… */
const char *cuda_error_runtime_name(uint32_t code);	/* cudaError… */
const char *cuda_error_text(uint32_t code);		/* as cudaGetErrorString has it */

/* The context is lost: every later call returns the same code until the process ends. */
bool cuda_error_sticky(uint32_t code);

/* Two errors that cannot be of one failure: one of them is sticky, so that every later call returns it, and both say what happened. */
bool cuda_errors_contradict(uint32_t a, uint32_t b);

bool cuda_error_in(uint32_t code, enum cuda_error_set set);
size_t cuda_error_set_codes(enum cuda_error_set set, const uint16_t **codes);

/* By our own names, in any case: "illegal_address". -1 = there is none. */
int cuda_code_find(const char *name, size_t len);
int cuda_error_set_find(const char *name, size_t len);

#endif
