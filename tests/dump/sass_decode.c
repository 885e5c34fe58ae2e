/* SPDX-License-Identifier: Apache-2.0
 * Decodes the instructions on standard input ("ARCH LOW HIGH", hexadecimal words) for check_sass.py.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "find/fault/sass.h"

int main(void)
{
	static const char *const kind[] = {"", "load", "store", "atomic", "reduction", "trap"};
	uint64_t word[2];
	unsigned arch;
	struct sass s;

	while (scanf("%u %" SCNx64 " %" SCNx64, &arch, &word[0], &word[1]) == 3) {
		uint8_t code[SASS_BYTES];

		memcpy(code, word, sizeof(code));
		if (!sass_decode(code, arch, &s)) {
			puts(s.kind == SASS_TRAP ? "trap" : "-");
			continue;
		}
		printf("%s %s %u %d %d %u %d %d %" PRId64 "\n", kind[s.kind], sass_space_name(s.space),
		       s.width, s.reg, s.reg >= 0 && s.reg_64, s.reg >= 0 ? s.shift : 0, s.ureg, s.descriptor,
		       s.offset);
	}
	return 0;
}
