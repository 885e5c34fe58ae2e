/* SPDX-License-Identifier: Apache-2.0
 * Names and texts of errors.
 */
#include "sim/cudart/cudart.h"

STANDIN(const char *, cudaGetErrorName, (int code))
{
	switch (code) {
#define CUDA_ERROR_ROW(number, driver, runtime, sticky, text) \
	case number:                                          \
		return #runtime;
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
	}
	return "unrecognized error code";
}

STANDIN(const char *, cudaGetErrorString, (int code))
{
	switch (code) {
#define CUDA_ERROR_ROW(number, driver, runtime, sticky, text) \
	case number:                                          \
		return text;
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
	}
	return "unrecognized error code";
}
