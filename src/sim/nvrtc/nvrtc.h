/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for NVRTC. It compiles nothing: it finds the kernels in a source by their text and writes a module of the simulated
 * driver's own form (src/sim/README.md), whose kernels have these names and compute nothing.
 */
#ifndef CUWHY_SIM_NVRTC_H
#define CUWHY_SIM_NVRTC_H

#include "sim/common/standin.h"

enum rtc_code {
	RTC_OUT_OF_MEMORY = 1,
	RTC_PROGRAM_CREATION_FAILURE = 2,
	RTC_INVALID_INPUT = 3,
	RTC_INVALID_PROGRAM = 4,
	RTC_INVALID_OPTION = 5,
	RTC_COMPILATION = 6,
	RTC_BUILTIN_OPERATION_FAILURE = 7,
	RTC_NO_NAMES_AFTER_COMPILATION = 8,
	RTC_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
	RTC_NAME_NOT_VALID = 10,
	RTC_INTERNAL_ERROR = 11,
};

enum { RTC_NAME_MAX = 256 };	/* what the simulated driver keeps of a kernel's name */

struct rtc_kernel {
	char name[RTC_NAME_MAX];
	unsigned long bounds;	/* of __launch_bounds__, if it is a number; 0: none */
};

/* Finds the next __global__ function from *at on and moves *at behind it. False at the end. */
bool rtc_next_kernel(const char **at, struct rtc_kernel *kernel);

#endif
