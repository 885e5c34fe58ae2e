/* SPDX-License-Identifier: Apache-2.0
 * A relocated module image inside a GPU core dump: an ELF file at run-time addresses. Checked like the dump.
 */
#ifndef CUWHY_IMAGE_H
#define CUWHY_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct image_function {
	const char *name;	/* borrowed from the image */
	uint64_t start, size;
};

/* The innermost function that contains this address. */
bool image_find(struct bytes image, uint64_t pc, struct image_function *f);
/* The function that starts at this address: the kernel itself, not a function nested in it. */
bool image_entry(struct bytes image, uint64_t entry, struct image_function *f);

/* The function at whose start the section of code begins that contains this address: a kernel, with the functions nested in it, or a
 * function that kernels call. */
bool image_kernel(struct bytes image, uint64_t pc, struct image_function *f);
/* The function with this name. */
bool image_named(struct bytes image, const char *name, struct image_function *f);
/* Where the kernel finds its parameters in constant bank 0. */
bool image_params_offset(struct bytes image, const char *kernel, uint32_t *offset);

/* The `len` bytes of code at this address, NULL when the image does not have them. */
const uint8_t *image_code(struct bytes image, uint64_t pc, uint64_t len);

/* The bytes of the section with this name. */
bool image_section(struct bytes image, const char *name, struct bytes *bytes);

struct image_object {
	const char *name;	/* borrowed from the image, perhaps not terminated; NULL = none */
	uint64_t name_max;	/* how many of its bytes may be read */
	uint64_t value, size;
};

/* Calls fn for the data objects in the section with this name, until it returns true. */
typedef bool image_object_fn(void *arg, const struct image_object *o);
void image_objects(struct bytes image, const char *section, image_object_fn *fn, void *arg);

#endif
