/* SPDX-License-Identifier: Apache-2.0
 * The text of an assertion, and how the code and data of a core dump represent it. */
#ifndef CUWHY_SIM_DUMP_ASSERT_H
#define CUWHY_SIM_DUMP_ASSERT_H

#include "sim/cuda/sim_elf.h"
#include "sim/cuda/sim_fault.h"

struct sim_assert_words {
	char file[SIM_NAME_MAX], function[SIM_NAME_MAX], condition[SIM_NAME_MAX];
	unsigned int line;
};

struct sim_insn_word {
	uint64_t low, high;
};

enum { SIM_ASSERT_INSNS = 16 };

/* What the kernel prints when its assertion fails: the text in the image, else a built-in one. */
void sim_assert_words(const struct sim_func *f, struct sim_assert_words *w);

/* The code of the call, which is its last instruction; `index` is the kernel's position in its module. */
void sim_assert_code(struct sim_insn_word out[SIM_ASSERT_INSNS], unsigned int index, unsigned int line);

/* The sections with the addresses and texts of all kernels in the module, and their symbols. */
void sim_assert_data(struct sim_elf *elf, const struct sim_module *mod, bool relocated,
		     struct sim_buf *symbols, struct sim_buf *strings);

#endif
