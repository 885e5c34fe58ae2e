/* SPDX-License-Identifier: Apache-2.0
 * Codes that messages name, by name or in words (see message.h).
 */
#include "case/message.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compat/cuda_errors.h"

bool message_is_cuda(const char *text)
{
	static const char *const marks[] = {
		"CUDA error", "CUDA out of memory", "[CUDA]", "CUDA_ERROR_", "cudaError", "CUDNN_STATUS",
		"CUBLAS_STATUS", "CUSOLVER_STATUS", "CUFFT_", "NCCL error", "CUDA driver", "No CUDA GPUs",
		"CUDA kernel", "cuda runtime error", "cublas runtime error", "cuDNN error", "cuda failure", NULL,
	};

	for (size_t i = 0; marks[i]; i++)
		if (strcasestr(text, marks[i]))
			return true;
	return false;
}

/* "Check failed: (e == cudaSuccess || e == cudaErrorCudartUnloading)": a condition of the program, not the error. */
static bool is_compared(const char *text, const char *at)
{
	return at - text >= 3 && (!strncmp(at - 3, "== ", 3) || !strncmp(at - 3, "!= ", 3));
}

/* Is `word` in the text, not as part of a longer name? */
static bool has_name(const char *text, const char *word)
{
	const char *s = text;
	size_t len = strlen(word);

	while (len && (s = strstr(s, word)) != NULL) {
		if (!isalnum((unsigned char)s[len]) && s[len] != '_' && !is_compared(text, s))
			return true;
		s += len;
	}
	return false;
}

bool message_has_code(const char *text, uint32_t code)
{
	const char *meaning = cuda_error_text(code);

	if (has_name(text, cuda_error_driver_name(code)) || has_name(text, cuda_error_runtime_name(code)))
		return true;
	if (code == CODE_OUT_OF_MEMORY)
		return strstr(text, "out of memory") || strstr(text, "Out of memory");
	return meaning[0] && strstr(text, meaning) && message_is_cuda(text);	/* the cheaper question first */
}

bool message_has_traceback(const char *text)
{
	return strstr(text, "Traceback (most recent call last)") != NULL;
}

/* File "train.py", line 28, in step */
bool message_has_line(const char *text, const char *file, uint32_t line)
{
	size_t len = strlen(file);

	for (const char *s = text; len && (s = strstr(s, "File \"")) != NULL;) {
		unsigned number = 0;

		s += strlen("File \"");
		if (!strncmp(s, file, len) && sscanf(s + len, "\", line %u", &number) == 1 && number == line)
			return true;
	}
	return false;
}

#define RENUMBERED 100	/* CUDA 10.1 gave its codes the driver's numbers; the old ones were smaller */

/* "CUDA error: 700 in solver.cu", "[700] Call to cuMemcpyDtoH results in UNKNOWN_CUDA_ERROR": the number is all that it says. */
static uint32_t numbered_code(const char *text)
{
	static const char *const before[] = {"CUDA error: ", "CUDA error ", "CUDA error code: ", "CUDA error code ",
					     "CUDA error = ", "CUDA failure ", "CUDA failure: ",
					     "cuda driver library init failure: "};
	const char *driver = strstr(text, "cuInit: UNKNOWN ERROR (");	/* the driver's numbers have never changed */
	unsigned number = 0;
	int end = 0;

	if (driver && sscanf(driver, "cuInit: UNKNOWN ERROR (%3u)", &number) == 1)
		return cuda_error_text(number)[0] ? number : 0;
	if (sscanf(text, "[%3u] Call to cu%n", &number, &end) != 1 || !end) {
		number = 0;
		for (size_t i = 0; !number && i < sizeof(before) / sizeof(before[0]); i++) {
			const char *at = strcasestr(text, before[i]);

			at = at ? at + strlen(before[i]) : "";
			if (sscanf(at, "%3u%n", &number, &end) != 1 || isalnum((unsigned char)at[end]) || at[end] == '.')
				number = 0;
		}
	}
	return number >= RENUMBERED && cuda_error_text(number)[0] ? number : 0;
}

uint32_t message_code(const char *text)
{
	static const uint32_t codes[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) code,
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
	};
	uint32_t best = 0;
	size_t longest = 0;

	/* the longest phrase wins: "invalid argument" is part of other descriptions */
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		size_t len = strlen(cuda_error_text(codes[i]));

		if (codes[i] && len > longest && message_has_code(text, codes[i])) {
			best = codes[i];
			longest = len;
		}
	}
	return best ? best : numbered_code(text);
}
