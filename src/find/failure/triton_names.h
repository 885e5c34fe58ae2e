/* SPDX-License-Identifier: Apache-2.0
 * Names of a Triton kernel's parameters, from what Triton keeps of each kernel that it compiled.
 */
#ifndef CUWHY_TRITON_NAMES_H
#define CUWHY_TRITON_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

/* The parameters of the function `kernel` in a file of Triton's own language (NAME.ttir): how many, their names and sizes in bytes. Compile-time constants
 * are not among them. 0: it is not there, or one of them has no name or is not of one size. */
#define TRITON_PARAMS 64
struct triton_param {
	char name[64];	    /* "": what Triton keeps does not agree about it */
	unsigned size;
	unsigned points_to; /* bytes of what it points to; 0: no pointer, or not known */
	bool is_integer;
};
size_t triton_params(const char *text, const char *kernel, struct triton_param out[TRITON_PARAMS]);

struct trace;

/* The parameters of a kernel that ran, as in every file that fits it; 0 when there is none. */
size_t triton_find(const struct trace *t, const char *kernel, struct triton_param out[TRITON_PARAMS]);

/* The name of parameter `index`; NULL when it is not known, or when what Triton keeps does not agree about it. */
const char *triton_param_name(const struct trace *t, const char *kernel, unsigned index, struct pool *pool);

#endif
