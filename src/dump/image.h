/* SPDX-License-Identifier: Apache-2.0
 * A relocated module image inside a GPU core dump: an ELF file at run-time addresses. Checked like the dump.
 */
#ifndef CUWHY_IMAGE_H
#define CUWHY_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "dump/dump.h"

struct image_function {
	const char *name;	/* borrowed from the image */
	uint64_t start, size;
};

/* The innermost function that holds this address. */
bool image_find(struct dump_bytes image, uint64_t pc, struct image_function *f);
/* The function that starts at this address: the kernel itself, not what is nested in it. */
bool image_entry(struct dump_bytes image, uint64_t entry, struct image_function *f);

/* The `len` bytes of code at this address, NULL when the image does not hold them. */
const uint8_t *image_code(struct dump_bytes image, uint64_t pc, uint64_t len);

#endif
