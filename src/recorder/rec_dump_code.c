/* SPDX-License-Identifier: Apache-2.0
 * Reads which exception a GPU core dump is about, and nothing else: a few pread calls, once in the life of a
 * failing process. src/dump reads the rest, later and in another process. docs/coredump.md has the layout.
 */
#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <unistd.h>

#include "rec_dump.h"

#define SM_TABLE	0x8000000bu	/* its rows name an exception at offset 8 */
#define LANE_TABLE	0x8000000fu	/* at offset 32 */
#define SM_EXCEPTION	8
#define LANE_EXCEPTION	32
#define HEADERS		64		/* read at a time */

/* The CUDA error code for a GPU exception. */
static uint32_t code_of(uint32_t exception)
{
	enum {
#define FAULT(name, id, code, text) CODE_##name = code,
#include "kb/gpu_faults.def"
	};

	switch (exception) {
#define EXC(number, name, fault, text) case number: return CODE_##fault;
#include "kb/gpu_exceptions.def"
	default:
		return 0;
	}
}

/* The first exception in the rows of a table, 0 = none. */
static uint32_t exception_in(int fd, const Elf64_Shdr *s, uint64_t field)
{
	uint32_t exception = 0;

	if (s->sh_entsize < field + sizeof(exception))
		return 0;
	for (uint64_t row = 0; !exception && row < s->sh_size / s->sh_entsize; row++)
		if (pread(fd, &exception, sizeof(exception), (off_t)(s->sh_offset + row * s->sh_entsize + field)) !=
		    sizeof(exception))
			return 0;
	return exception;
}

struct exceptions {
	uint32_t lane, sm;
};

static void look(int fd, const Elf64_Shdr *s, struct exceptions *found)
{
	if (s->sh_type == LANE_TABLE && !found->lane)
		found->lane = exception_in(fd, s, LANE_EXCEPTION);
	else if (s->sh_type == SM_TABLE && !found->sm)
		found->sm = exception_in(fd, s, SM_EXCEPTION);
}

/* The section table comes last in the file: once it is there, the dump is complete. */
static bool look_everywhere(int fd, struct exceptions *found)
{
	Elf64_Shdr s[HEADERS];
	Elf64_Ehdr h;
	uint64_t size, n;
	off_t end = lseek(fd, 0, SEEK_END);	/* fstat would need a newer glibc than we promise */

	if (end < 0 || pread(fd, &h, sizeof(h), 0) != sizeof(h) || h.e_ident[0] != ELFMAG0 ||
	    h.e_shentsize != sizeof(s[0]) || !h.e_shoff ||
	    pread(fd, s, sizeof(s[0]), (off_t)h.e_shoff) != sizeof(s[0]))
		return false;
	n = h.e_shnum ? h.e_shnum : s[0].sh_size;
	size = (uint64_t)end;
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

bool dump_code(const char *path, uint32_t *code)
{
	struct exceptions found = {0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool complete = fd >= 0 && look_everywhere(fd, &found);

	if (fd >= 0)
		close(fd);
	*code = code_of(found.lane ? found.lane : found.sm);
	return complete;
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
