/* SPDX-License-Identifier: Apache-2.0
 * Writes ELF files section by section: core dumps, and the code images inside them. */
#include "sim/cuda/sim_elf.h"

#include <stdlib.h>
#include <string.h>

enum { EM_GPU = 190 };

size_t sim_buf_add(struct sim_buf *buf, const void *data, size_t bytes)
{
	size_t at = buf->used;

	if (buf->failed)
		return 0;
	if (bytes > buf->size - buf->used) {
		size_t size = 2 * buf->size + bytes + 4096;
		unsigned char *grown = realloc(buf->data, size);

		if (!grown) {
			buf->failed = true;
			return 0;
		}
		buf->data = grown;
		buf->size = size;
	}
	if (data && bytes)
		memcpy(buf->data + at, data, bytes);
	else
		memset(buf->data + at, 0, bytes);
	buf->used += bytes;
	return at;
}

void sim_buf_free(struct sim_buf *buf)
{
	free(buf->data);
	memset(buf, 0, sizeof(*buf));
}

void sim_elf_start(struct sim_elf *elf)
{
	memset(elf, 0, sizeof(*elf));
	sim_buf_add(&elf->body, NULL, sizeof(Elf64_Ehdr));
	sim_buf_add(&elf->headers, NULL, sizeof(Elf64_Shdr));
	sim_buf_add(&elf->names, "", 1);
}

uint32_t sim_elf_add(struct sim_elf *elf, const struct sim_section *s)
{
	Elf64_Shdr header = {
		.sh_type = s->type, .sh_flags = s->flags, .sh_addr = s->address,
		.sh_size = s->bytes, .sh_link = s->link, .sh_info = s->info,
		.sh_addralign = s->align, .sh_entsize = s->stride,
	};
	size_t at;

	if (s->align > 1)
		sim_buf_add(&elf->body, NULL, -elf->body.used & (s->align - 1));
	header.sh_name = (uint32_t)sim_buf_add(&elf->names, s->name, strlen(s->name) + 1);
	header.sh_offset = sim_buf_add(&elf->body, s->data, s->bytes);
	at = sim_buf_add(&elf->headers, &header, sizeof(header));
	return (uint32_t)(at / sizeof(header));
}

/* Adds the names and the section headers, and fills in the file header. */
bool sim_elf_finish(struct sim_elf *elf, int type, int abi, int version, uint32_t flags)
{
	Elf64_Ehdr file = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, (unsigned char)abi,
			    (unsigned char)version},
		.e_type = (Elf64_Half)type, .e_machine = EM_GPU, .e_version = EV_CURRENT,
		.e_flags = flags, .e_ehsize = sizeof(file), .e_shentsize = sizeof(Elf64_Shdr),
	};
	Elf64_Shdr names = {.sh_type = SHT_STRTAB, .sh_flags = type == ET_CORE ? SHF_ALLOC : 0};

	names.sh_name = (uint32_t)sim_buf_add(&elf->names, ".shstrtab", sizeof(".shstrtab"));
	names.sh_size = elf->names.used;
	names.sh_offset = sim_buf_add(&elf->body, elf->names.data, elf->names.used);
	sim_buf_add(&elf->headers, &names, sizeof(names));
	file.e_shnum = (Elf64_Half)(elf->headers.used / sizeof(names));
	file.e_shstrndx = file.e_shnum - 1;
	if (type != ET_CORE)		/* measured: dumps align nothing, images do */
		sim_buf_add(&elf->body, NULL, -elf->body.used & 7);
	file.e_shoff = sim_buf_add(&elf->body, elf->headers.data, elf->headers.used);
	if (elf->body.failed || elf->headers.failed || elf->names.failed)
		return false;
	memcpy(elf->body.data, &file, sizeof(file));
	return true;
}

void sim_elf_free(struct sim_elf *elf)
{
	sim_buf_free(&elf->body);
	sim_buf_free(&elf->headers);
	sim_buf_free(&elf->names);
}
