/* SPDX-License-Identifier: Apache-2.0
 * The parameters of a kernel, from its demangled name: where each one is in the bytes of the launch.
 */
#ifndef CUWHY_SIGNATURE_H
#define CUWHY_SIGNATURE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pool;

struct signature_param {
	size_t offset, size;
	bool is_signed, is_integer;
	const char *points_to_dtype;	/* "int64" for long*, as PyTorch spells it; NULL = none, or not a pointer */
	bool is_const;		/* it points to what the kernel only reads */
	unsigned points_to;	/* how large the elements are that it points to, 0 = not a pointer, or not known */
	unsigned info;		/* PyTorch's TensorInfo, which begins with a pointer: bytes of its sizes and strides; 0 = it is none */
};

/* In PyTorch's TensorInfo: a pointer, that many sizes and strides, and how many of them count (since 2019, and in 2.11). */
#define SIGNATURE_INFO_DIMS 25

/* Parameter `number`, from 0. False when it or one before it is neither a number nor a pointer nor a TensorInfo: then its
 * place is unknown. */
bool signature_param(const char *kernel, unsigned number, struct signature_param *p);

/* The parameter that begins at this byte, with a pointer. */
bool signature_pointer_at(const char *kernel, size_t offset, struct signature_param *p);

/* Can no pointer be there: is it a number, or a size or stride in a TensorInfo? */
bool signature_number_at(const char *kernel, size_t offset);

#define SIGNATURE_LAST	UINT_MAX	/* the last one, whatever is before it: it ends where the bytes end */

/* The value of an integer parameter. */
bool signature_integer(const char *kernel, unsigned number, const void *bytes, size_t len, int64_t *value);

/* Without return type, template arguments and parameters: C++ names go on for pages. */
const char *kernel_short_name(const char *name, struct pool *pool);

#endif
