/* SPDX-License-Identifier: Apache-2.0
 * For check_assert.py. "move ARCH LOW HIGH" on standard input: what the instruction moves, and where it may go.
 * "call ARCH PC": the arguments of the assertion that returns there, in the image that is the program's argument.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "find/fault/assert_args.h"
#include "find/fault/sass_move.h"
#include "decode.h"

#define PC	0x100000

static void move(unsigned arch, const uint64_t word[2])
{
	uint8_t code[SASS_BYTES];
	struct sass_move m;
	uint64_t target;

	memcpy(code, word, sizeof(code));
	sass_move(code, arch, &m);
	sass_step(code, arch, PC, &target);
	printf("%d %d %d %u %" PRIx32 " %d %d %u %x %" PRId64 "\n", m.from, m.uniform, m.dest, m.n, m.number, m.reg,
	       m.reg_uniform, m.bank, m.offset, target ? (int64_t)(target - PC) : 0);
}

static void call(struct bytes image, unsigned arch, uint64_t pc)
{
	struct assert_args a;
	int i;

	if (!assert_args_find(image, arch, pc, &a)) {
		puts("-");
		return;
	}
	for (i = 0; i < ASSERT_ARGS; i++) {
		if (a.known[i])
			printf("%" PRIx64 "%c", a.value[i], i + 1 < ASSERT_ARGS ? ' ' : '\n');
		else
			printf("?%c", i + 1 < ASSERT_ARGS ? ' ' : '\n');
	}
}

int main(int argc, char **argv)
{
	decode_orders(argc, argv, "call", call, move);
	return 0;
}
