/* SPDX-License-Identifier: Apache-2.0
 * The CUDA code that an error line names, by number, name or words (see observe.h).
 */
#include "input/text/observe.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "case/message.h"
#include "compat/cuda_errors.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* "cuda runtime error (7)", "error=101 :", "Error 804:", "CUDA error (3):", "error code 700". */
static uint32_t code_by_number(const char *s)
{
	static const char *const before[] = {"cuda runtime error (", "error=",	      "CUDA error (", "Error code ",
					     "error code ",	     "CUDA error ",   "Error ",	      "code=",
					     "CUDA failure ",	     "Cuda failure ", "CUDA error = ",
					     "driver error ",	     "runtime error ", "CUDA error: ",
					     "cuda error ",	     "Cuda error ",   "err=",	      "error code: ",
					     "returned error ",	     "err: ",	      "failure: "};

	for (size_t i = 0; i < COUNT(before); i++) {
		const char *at = strstr(s, before[i]);
		char *end;
		unsigned long n;

		if (!at || !isdigit((unsigned char)at[strlen(before[i])]))
			continue;
		n = strtoul(at + strlen(before[i]), &end, 10);
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

/* Before CUDA 10.1 the runtime had other numbers, with the same descriptions. */
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
		number = strcasestr(message, "cuda") || strstr(message, "cuInit") ? code_by_number(message) : 0;
	return number && cuda_error_text(number)[0] ? number : 0;
}
