/* SPDX-License-Identifier: Apache-2.0
 * Does an error line contradict itself? Its number, the name of the code and CUDA's words for it are separate facts: where two of them
 * that belong together mean different codes, one was made up, edited or translated wrongly, and it is not known which.
 */
#ifndef CUWHY_TEXT_CONTRADICTION_H
#define CUWHY_TEXT_CONTRADICTION_H

#include <stdbool.h>
#include <stdint.h>

struct contradiction {
	uint32_t code[2];
	char said[2][64];	/* "805", "out of memory", "CUDA_ERROR_…" */
};

/* The first one in the message. */
bool text_contradiction(const char *message, struct contradiction *c);

#endif
