/* SPDX-License-Identifier: Apache-2.0
 * Reads which exceptions a GPU core dump is about, and nothing else: pread calls, once in the life of a
 * failing process. src/dump reads the rest, later and in another process. docs/develop/coredump.md has the layout.
 */
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "rec_dump.h"

#define SM_TABLE	0x8000000bu	/* its rows name an exception at offset 8 */
#define LANE_TABLE	0x8000000fu	/* at offset 32 */
#define SM_EXCEPTION	8
#define LANE_EXCEPTION	32
#define HEADERS		64		/* read at a time */
#define ROWS		4096		/* bytes read at a time: two tables of a warp's lanes */

enum {
#define FAULT(name, id, code, text) CODE_##name = code,
#include "kb/gpu_faults.def"
};

/* The CUDA error code for a GPU exception. */
static uint32_t code_of(uint32_t exception)
{
	switch (exception) {
#define EXC(number, name, fault, text) case number: return CODE_##fault;
#include "kb/gpu_exceptions.def"
	default:
		return 0;
	}
}

struct exceptions {
	uint32_t lane, sm;		/* the first of each kind */
	bool assertion;			/* any of them is one */
};

static void note(struct exceptions *found, uint32_t *first, uint32_t exception)
{
	if (exception && !*first)
		*first = exception;
	if (code_of(exception) == CODE_ASSERT)
		found->assertion = true;
}

static void note_rows(int fd, const Elf64_Shdr *s, uint64_t field, struct exceptions *found, uint32_t *first)
{
	char rows[ROWS];
	uint64_t bytes, done, at;
	uint32_t exception;

	if (s->sh_entsize < field + sizeof(exception) || s->sh_entsize > sizeof(rows))
		return;
	for (done = 0; s->sh_size - done >= s->sh_entsize; done += bytes) {
		bytes = sizeof(rows) < s->sh_size - done ? sizeof(rows) : s->sh_size - done;
		bytes -= bytes % s->sh_entsize;
		if (pread(fd, rows, bytes, (off_t)(s->sh_offset + done)) != (ssize_t)bytes)
			return;
		for (at = field; at < bytes; at += s->sh_entsize) {
			memcpy(&exception, rows + at, sizeof(exception));
			note(found, first, exception);
		}
	}
}

static void look(int fd, const Elf64_Shdr *s, struct exceptions *found)
{
	if (s->sh_type == LANE_TABLE)
		note_rows(fd, s, LANE_EXCEPTION, found, &found->lane);
	else if (s->sh_type == SM_TABLE)
		note_rows(fd, s, SM_EXCEPTION, found, &found->sm);
}

/* The section table comes last in the file: once it is there, the dump is complete. */
static bool look_everywhere(int fd, uint64_t size, struct exceptions *found)
{
	Elf64_Shdr s[HEADERS];
	Elf64_Ehdr h;
	uint64_t n;

	if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.e_ident[0] != ELFMAG0 ||
	    h.e_shentsize != sizeof(s[0]) || !h.e_shoff ||
	    pread(fd, s, sizeof(s[0]), (off_t)h.e_shoff) != sizeof(s[0]))
		return false;
	n = h.e_shnum ? h.e_shnum : s[0].sh_size;
	if (n > size / sizeof(s[0]) || h.e_shoff + n * sizeof(s[0]) > size)
		return false;
	for (uint64_t i = 0; i < n; i += HEADERS) {
		uint64_t some = n - i < HEADERS ? n - i : HEADERS;

		if (pread(fd, s, some * sizeof(s[0]), (off_t)(h.e_shoff + i * sizeof(s[0]))) !=
		    (ssize_t)(some * sizeof(s[0])))
			return false;
		for (uint64_t k = 0; k < some; k++)
			look(fd, &s[k], found);
	}
	return true;
}

struct dump_said dump_read(const char *path)
{
	struct exceptions found = {0};
	struct dump_said said = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t end = fd >= 0 ? lseek(fd, 0, SEEK_END) : -1;	/* fstat would need a newer glibc than we promise */

	if (end >= 0) {
		said.size = (uint64_t)end;
		said.complete = look_everywhere(fd, said.size, &found);
	}
	if (fd >= 0)
		close(fd);
	said.code = code_of(found.lane ? found.lane : found.sm);
	said.assertion = found.assertion;
	return said;
}

bool dump_follows(uint32_t code)
{
	static const uint32_t codes[] = {
#define FAULT(name, id, number, text) number,
#include "kb/gpu_faults.def"
	};

	for (size_t i = 0; code && i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i] == code)
			return true;
	return false;
}
