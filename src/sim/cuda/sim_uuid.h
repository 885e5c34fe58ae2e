/* SPDX-License-Identifier: Apache-2.0
 * The UUID of a simulated GPU: the simulated driver and the simulated NVML must agree on it.
 */
#ifndef CUWHY_SIM_UUID_H
#define CUWHY_SIM_UUID_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIM_UUID_TEXT 41	/* "GPU-8-4-4-4-12" and its NUL */

static inline void sim_uuid_make(unsigned char bytes[16], const char *model, size_t length, int physical)
{
	uint64_t hash = 1469598103934665603ull;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)model[i]) * 1099511628211ull;
	hash = (hash ^ (uint64_t)physical) * 1099511628211ull;
	for (int i = 0; i < 16; i++) {
		bytes[i] = (unsigned char)(hash >> (8 * (i % 8)));
		if (i % 8 == 7)
			hash = (hash ^ 0x5a) * 1099511628211ull;
	}
}

static inline void sim_uuid_print(const unsigned char bytes[16], char out[SIM_UUID_TEXT])
{
	static const char hex[] = "0123456789abcdef";

	memcpy(out, "GPU-", 4);
	out += 4;
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			*out++ = '-';
		*out++ = hex[bytes[i] >> 4];
		*out++ = hex[bytes[i] & 15];
	}
	*out = '\0';
}

#endif
