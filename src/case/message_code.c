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

/* Is `word` in the text, not as part of a longer name? */
static bool has_name(const char *text, const char *word)
{
	const char *s = text;
	size_t len = strlen(word);

	while (len && (s = strstr(s, word)) != NULL) {
		if (!isalnum((unsigned char)s[len]) && s[len] != '_')
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
	return meaning[0] && message_is_cuda(text) && strstr(text, meaning);
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
	return best;
}
