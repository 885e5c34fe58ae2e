/* SPDX-License-Identifier: Apache-2.0
 * The CUDA code that an error line names, by number, name or words (see observe.h).
 */
#include "find/words/observe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "case/message.h"
#include "compat/cuda_errors.h"
#include "read/text/said.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* "cuda runtime error (7)", "error=101 :", "Error 804:", "CUDA error (3):", "error code 700". */
static uint32_t code_by_number(const char *s)
{
	const char *at;

	for (size_t row = 0; (at = says_before(s, SAID_code, &row)) != NULL;) {
		char *end;
		unsigned long n = isdigit((unsigned char)*at) ? strtoul(at, &end, 10) : 0;

		if (n > 0 && n < 1000 && (*end == ':' || *end == ')' || *end == ' ' || *end == '(' || !*end))
			return (uint32_t)n;
	}
	return 0;
}

/* The code whose description is in a line that only CUDA writes; short descriptions could be from anything. */
static uint32_t code_by_words(const char *s)
{
	static const uint32_t codes[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) code,
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
	};
	size_t longest = 17;
	uint32_t best = 0;

	for (size_t i = 0; i < COUNT(codes); i++) {
		const char *words = cuda_error_text(codes[i]);

		if (codes[i] && strlen(words) > longest && strcasestr(s, words)) {
			best = codes[i];
			longest = strlen(words);
		}
	}
	return best;
}

/* "Check failed: e == cudaSuccess (77 vs. 0)": glog's and dmlc's checks print what they compared. 0: it is none. */
static uint32_t code_by_check(const char *s)
{
	const char *at = strstr(s, "cudaSuccess (");
	unsigned long n;
	char *end;

	if (!at)
		return 0;
	n = strtoul(at + strlen("cudaSuccess ("), &end, 10);
	return n < 1000 && !strncmp(end, " vs. 0)", strlen(" vs. 0)")) ? (uint32_t)n : 0;
}

/* Before CUDA 10.1 the runtime had other numbers. Those of the profiler that took the place of some are no longer returned. */
uint32_t text_number_today(uint32_t number)
{
	static const struct { uint32_t before, today; } changed[] = {
		{6, CODE_LAUNCH_TIMEOUT},	     {7, CODE_LAUNCH_OUT_OF_RESOURCES},
		{8, CODE_INVALID_DEVICE_FUNCTION},   {10, CODE_INVALID_DEVICE},
		{11, CODE_INVALID_VALUE},	     {14, CODE_MAP_FAILED},
		{15, CODE_UNMAP_FAILED},	     {29, CODE_DEINITIALIZED},
		{30, CODE_UNKNOWN},		     {33, CODE_INVALID_HANDLE},
		{34, CODE_NOT_READY},		     {36, CODE_PRIMARY_CONTEXT_ACTIVE},
		{38, CODE_NO_DEVICE},		     {39, CODE_ECC_UNCORRECTABLE},
		{40, CODE_SHARED_OBJECT_SYMBOL_NOT_FOUND}, {41, CODE_SHARED_OBJECT_INIT_FAILED},
		{42, CODE_UNSUPPORTED_LIMIT},	     {47, CODE_INVALID_IMAGE},
		{48, CODE_NO_BINARY_FOR_GPU},	     {50, CODE_PEER_ACCESS_ALREADY_ENABLED},
		{51, CODE_PEER_ACCESS_NOT_ENABLED},  {54, CODE_CONTEXT_ALREADY_IN_USE},
		{59, CODE_ASSERT},		     {60, CODE_TOO_MANY_PEERS},
		{61, CODE_HOST_MEMORY_ALREADY_REGISTERED}, {62, CODE_HOST_MEMORY_NOT_REGISTERED},
		{63, CODE_OPERATING_SYSTEM},	     {64, CODE_PEER_ACCESS_UNSUPPORTED},
		{70, CODE_NOT_PERMITTED},	     {71, CODE_NOT_SUPPORTED},
		{72, CODE_HARDWARE_STACK_ERROR},     {73, CODE_ILLEGAL_INSTRUCTION},
		{74, CODE_MISALIGNED_ADDRESS},	     {75, CODE_INVALID_ADDRESS_SPACE},
		{76, CODE_INVALID_PC},		     {77, CODE_ILLEGAL_ADDRESS},
		{78, CODE_INVALID_PTX},		     {79, CODE_INVALID_GRAPHICS_CONTEXT},
		{80, CODE_NVLINK_UNCORRECTABLE},     {81, CODE_JIT_COMPILER_NOT_FOUND},
		{82, CODE_COOPERATIVE_LAUNCH_TOO_LARGE}, {83, CODE_SYSTEM_NOT_READY},
		{84, CODE_ILLEGAL_STATE},
	};

	for (size_t i = 0; i < COUNT(changed); i++)
		if (changed[i].before == number)
			return changed[i].today;
	return number;
}

uint32_t text_code(const char *message)
{
	uint32_t code = message_code(message), number;

	/* the host's memory runs out, too */
	if (code == CODE_OUT_OF_MEMORY && !strcasestr(message, "cuda") && !strcasestr(message, "gpu") &&
	    !strstr(message, "HIP"))
		code = 0;
	if (code)
		return code;
	if (strcasestr(message, "cuda") && strstr(message, "unknown error"))
		return CODE_UNKNOWN;
	number = code_by_words(message);
	if (!number)
		number = text_number_today(code_by_check(message));
	if (!number)
		number = says(message, SAID_of_cuda) ? code_by_number(message) : 0;
	return number && cuda_error_text(number)[0] ? number : 0;
}
