/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a cubin, as PTX, and as packed code.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "formats/gpu_code.h"
#include "sim/cuda/sim_unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;	/* what was read must have been read */

static void use_code(struct gpu_code *c)
{
	for (size_t i = 0; i < c->kernels; i++) {
		const struct gpu_kernel *k = &c->kernel[i];

		if (!gpu_code_kernel(c, k->name) || (i && strcmp(c->kernel[i - 1].name, k->name) > 0))
			abort();	/* it cannot be found */
		for (unsigned p = 0; p < k->n_params; p++)
			sink += c->param[k->param + p].size;
		sink += k->regs + k->bounds + k->shared;
	}
	for (size_t i = 0; i < c->variables; i++) {
		if (!gpu_code_variable(c, c->variable[i].name))
			abort();
		for (size_t b = 0; b < c->variable[i].init.len; b++)
			sink += c->variable[i].init.data[b];
	}
	gpu_code_release(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = {data, size};
	struct gpu_target t;
	struct gpu_code c;
	uint8_t *to = malloc(65536);

	if (gpu_cubin_target(b, &t))
		sink += (uint64_t)t.arch;
	if (gpu_code_from_cubin(&c, b) == 0)
		use_code(&c);
	if (gpu_code_from_ptx(&c, b) == 0)
		use_code(&c);
	if (to && size && sim_unpack(FATBIN_LZ4, b, to, size > 65536 ? 65536 : size * 2 % 65536))
		sink += to[0];
	if (to && size && sim_unpack(FATBIN_ZSTD, b, to, 65536))
		sink += to[0];
	free(to);
	return 0;
}
