/* SPDX-License-Identifier: Apache-2.0
 * What is known about a code: CUDA errors, library statuses, Xid numbers. For `cuwhy explain 700` and the like.
 */
#ifndef CUWHY_CODE_H
#define CUWHY_CODE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct text_style;

struct code {
	const char *family;	/* "CUDA", "cuBLAS", "Xid", ... */
	int number;		/* -1 = it has none, or it differs between releases */
	char name[96];		/* "CUDA_ERROR_ILLEGAL_ADDRESS" */
	const char *other;	/* the runtime's name, if it differs from the driver's; "" = none */
	const char *says;	/* in the library's own words; "" = none */
	const char *note;	/* in ours; "" = none */
	const char *causes;	/* "cause, cause"; "" = none */
	bool sticky;
};

/* "700", "CUDA error 700", "cudaErrorIllegalAddress", "CUBLAS_STATUS_ALLOC_FAILED", "Xid 79", "NCCL error 2": false if it is not a code. */
bool code_find(struct code *c, const char *word);

void report_code(FILE *out, const struct code *c, const struct text_style *style);
void report_code_json(FILE *out, const struct code *c);

#endif
