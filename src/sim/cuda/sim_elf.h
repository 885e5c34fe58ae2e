/* SPDX-License-Identifier: Apache-2.0
 * Writes ELF files section by section: core dumps, and the code images inside them. */
#ifndef CUWHY_SIM_ELF_H
#define CUWHY_SIM_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_buf {
	unsigned char *data;
	size_t used, size;
	bool failed;			/* out of memory: everything after it is dropped */
};

struct sim_elf {
	struct sim_buf body;		/* the file, from its first byte */
	struct sim_buf headers;		/* Elf64_Shdr */
	struct sim_buf names;
};

struct sim_section {
	const char *name;
	uint32_t type, link, info;
	uint64_t flags, address, align, stride;
	const void *data;
	size_t bytes;
};

size_t sim_buf_add(struct sim_buf *buf, const void *data, size_t bytes);	/* its offset */
void sim_buf_free(struct sim_buf *buf);
void sim_elf_start(struct sim_elf *elf);
uint32_t sim_elf_add(struct sim_elf *elf, const struct sim_section *section);	/* its index */
bool sim_elf_finish(struct sim_elf *elf, int type, int abi, int version, uint32_t flags);
void sim_elf_free(struct sim_elf *elf);

#endif
