/* SPDX-License-Identifier: Apache-2.0
 * Executes one thread of a kernel in a cubin to its end and prints what it has stored (tests/dump/check_run.py).
 *
 *   run_cubin ARCH CUBIN PARAMS_OFFSET PARAMS(hex) MEMORY_ADDRESS MEMORY(hex) TID CTAID NTID NCTAID
 *
 * The cubin has one kernel; its code is run as if it were loaded at CODE.
 */
#include "find/fault/sass_run.c"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>

#define CODE	0x7f0000000000ull

struct memory {
	uint64_t at;
	uint8_t *bytes;
	size_t n;
};

static bool read_memory(void *arg, uint64_t address, void *to, size_t n)
{
	const struct memory *m = arg;

	if (address < m->at || address - m->at > m->n || n > m->n - (address - m->at))
		return false;
	memcpy(to, m->bytes + (address - m->at), n);
	return true;
}

static uint8_t *from_hex(const char *text, size_t *n)
{
	uint8_t *out = xcalloc(strlen(text) / 2 + 8, 1);

	for (*n = 0; text[*n * 2] && text[*n * 2 + 1]; (*n)++) {
		unsigned v = 0;

		sscanf(text + *n * 2, "%2x", &v);
		out[*n] = (uint8_t)v;
	}
	return out;
}

static uint8_t *load(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	uint8_t *out = xcalloc(1 << 24, 1);

	if (!f)
		exit(2);
	*n = fread(out, 1, 1 << 24, f);
	fclose(f);
	return out;
}

/* Sections with code get an address. */
static void place(uint8_t *image)
{
	Elf64_Ehdr *h = (Elf64_Ehdr *)image;
	Elf64_Shdr *s = (Elf64_Shdr *)(image + h->e_shoff);
	const char *names = (const char *)image + s[h->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < h->e_shnum; i++)
		if (!strncmp(names + s[i].sh_name, ".text.", 6))
			s[i].sh_addr = CODE;
}

int main(int argc, char **argv)
{
	struct sass_thread t = {.memory = read_memory};
	struct sass_found found = {0};
	struct ways ways = {.found = &found, .steps = 100000, .pc = 1};
	struct cell_state *s = xcalloc(1, sizeof(*s));
	struct memory m;
	size_t n;
	enum sass_end end;

	if (argc != 11)
		return 2;
	t.arch = (unsigned)atoi(argv[1]);
	t.image.data = load(argv[2], &n);
	t.image.len = n;
	place((uint8_t *)t.image.data);
	t.entry = CODE;
	t.params_offset = strtoull(argv[3], NULL, 0);
	t.params.data = from_hex(argv[4], &n);
	t.params.len = n;
	m.at = strtoull(argv[5], NULL, 0);
	m.bytes = from_hex(argv[6], &m.n);
	t.arg = &m;
	t.thread[0] = (uint32_t)atoi(argv[7]);
	t.block[0] = (uint32_t)atoi(argv[8]);
	t.id = t.thread[0] % 32;
	t.block_dim[0] = (uint32_t)atoi(argv[9]);
	t.grid_dim[0] = (uint32_t)atoi(argv[10]);
	t.block_dim[1] = t.block_dim[2] = t.grid_dim[1] = t.grid_dim[2] = 1;
	ways.run.t = &t;
	image_section(t.image, ".nv.constant4", &ways.run.bank4);
	start(&ways, s);
	end = follow(&ways, s);
	printf("end %d %" PRIx64 " ways %zu steps %u\n", (int)end, found.lost_at ? found.lost_at - CODE : 0, ways.n_all,
	       100000 - ways.steps);
	for (size_t i = 0; i < s->n_stores; i++)
		if (s->store[i].space == SASS_GLOBAL)
			printf("%" PRIx64 " %u %s%x from %" PRIx64 "+%u\n", s->store[i].address, s->store[i].n,
			       s->store[i].value.known ? "" : "?", s->store[i].value.v, s->store[i].value.at,
			       s->store[i].value.n);
	return 0;
}
