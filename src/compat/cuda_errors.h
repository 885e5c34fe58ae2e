/* SPDX-License-Identifier: Apache-2.0
 * Names and meanings of CUDA error codes, from kb/cuda_errors.def. Strings are static; "" = none.
 */
#ifndef CUWHY_CUDA_ERRORS_H
#define CUWHY_CUDA_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

const char *cuda_error_name(uint32_t code);		/* CUDA_ERROR_…, else cudaError… */
const char *cuda_error_driver_name(uint32_t code);	/* CUDA_ERROR_… */
const char *cuda_error_runtime_name(uint32_t code);	/* cudaError… */
const char *cuda_error_text(uint32_t code);		/* as cudaGetErrorString has it */

/* The context is lost: every later call returns the same code until the process ends. */
bool cuda_error_sticky(uint32_t code);

#endif
