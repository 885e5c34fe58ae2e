/* SPDX-License-Identifier: Apache-2.0
 * For the decoders in this folder: commands on standard input, about an image that is the program's argument.
 */
#ifndef CUWHY_TEST_DECODE_H
#define CUWHY_TEST_DECODE_H

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/image.h"

/* "WORD ARCH PC" goes to `at_pc` where WORD is `word`; "OTHER ARCH LOW HIGH" to `instruction`. */
static inline void decode_orders(int argc, char **argv, const char *word, void (*at_pc)(struct bytes, unsigned, uint64_t),
				 void (*instruction)(unsigned, const uint64_t[2]))
{
	static uint8_t bytes[64 << 20];
	struct bytes image = {bytes, 0};
	uint64_t number[2];
	unsigned arch;
	char what[16];
	FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;

	if (f) {
		image.len = fread(bytes, 1, sizeof(bytes), f);
		fclose(f);
	}
	while (scanf("%15s %u %" SCNx64, what, &arch, &number[0]) == 3) {
		if (strcmp(what, word) == 0)
			at_pc(image, arch, number[0]);
		else if (scanf("%" SCNx64, &number[1]) == 1)
			instruction(arch, number);
	}
}

#endif
