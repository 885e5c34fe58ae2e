/* SPDX-License-Identifier: Apache-2.0
 * Bytes owned by someone else.
 */
#ifndef CUWHY_BYTES_H
#define CUWHY_BYTES_H

#include <stddef.h>
#include <stdint.h>

struct bytes {
	const uint8_t *data;	/* NULL when there is nothing */
	size_t len;
};

#endif
