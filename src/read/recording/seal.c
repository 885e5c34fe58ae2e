/* SPDX-License-Identifier: Apache-2.0
 * The seal of a recording (see seal.h). No secret is in it: it is against bad disks and copies, not against people.
 */
#include "read/recording/seal.h"

#include <stdint.h>
#include <string.h>

#include "base/map.h"
#include "cuwhy/format.h"

#define SEAL_AT	 offsetof(struct cw_header, seal)
#define SEAL_END (SEAL_AT + sizeof(uint64_t))

static bool has_room(const uint8_t *bytes, size_t len)
{
	uint32_t size;

	if (len < SEAL_END)
		return false;
	memcpy(&size, bytes + offsetof(struct cw_header, header_size), sizeof(size));
	return size >= SEAL_END;
}

/* Of the bytes before and after it; never 0, which means that there is none. */
static uint64_t seal_of(const uint8_t *bytes, size_t len)
{
	return map_hash_bytes(map_hash_bytes(len, bytes, SEAL_AT), bytes + SEAL_END, len - SEAL_END) | 1;
}

void seal_put(void *bytes, size_t len)
{
	uint64_t seal;

	if (!has_room(bytes, len))
		return;
	seal = seal_of(bytes, len);
	memcpy((uint8_t *)bytes + SEAL_AT, &seal, sizeof(seal));
}

/* 0: none. */
static uint64_t seal_in(const uint8_t *bytes, size_t len)
{
	uint64_t seal = 0;

	if (has_room(bytes, len))
		memcpy(&seal, bytes + SEAL_AT, sizeof(seal));
	return seal;
}

bool seal_holds(const void *bytes, size_t len)
{
	uint64_t seal = seal_in(bytes, len);

	return seal && seal == seal_of(bytes, len);
}

bool seal_is_broken(const void *bytes, size_t len)
{
	uint64_t seal = seal_in(bytes, len);

	return seal && seal != seal_of(bytes, len);
}
