/* SPDX-License-Identifier: Apache-2.0
 * Finds out what a file is (see input.h).
 */
#include "find/input.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/fs.h"
#include "case/case.h"

#define HEAD_BYTES 256

static const struct input *const list[INPUT_COUNT] = {
#define INPUT(id) &input_##id,
#include "find/inputs.def"
};

/* Only the recording's judge knows several processes: joined to another input, it would report only the first one that failed.
 * And it claims every folder. Nothing is joined to a machine: the rows below it could not be tied to anything then. */
_Static_assert(INPUT_recording == 0, "inputs.def: 'recording' must stay the first row; put the new one below it");
_Static_assert(INPUT_machine == INPUT_COUNT - 1,
	       "inputs.def: 'machine' must stay the last row; put the new one above it");

const struct input *input_get(enum input_id id)
{
	return list[id];
}

static size_t read_head(const char *path, unsigned char *head, size_t size, bool *packed)
{
	int fd = fs_open_foreign(path, UINT64_MAX, NULL), n = 0;
	unsigned char magic[2] = "";
	gzFile f;

	if (fd < 0)
		return 0;
	if (pread(fd, magic, sizeof(magic), 0) < 0 || !(f = gzdopen(fd, "rb"))) {
		close(fd);
		return 0;
	}
	*packed = magic[0] == 0x1f && magic[1] == 0x8b;	/* even if it is damaged and nothing can be read */
	n = gzread(f, head, (unsigned)size);		/* an uncompressed file is read as it is */
	gzclose_r(f);
	return n > 0 ? (size_t)n : 0;
}

const struct input *input_sniff(const char *path)
{
	unsigned char head[HEAD_BYTES];
	struct sniffed s = {.path = path, .head = head};
	struct stat st;

	s.folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	if (!s.folder)
		s.n = read_head(path, head, sizeof(head), &s.packed);
	for (size_t i = 0; i < INPUT_COUNT; i++)
		if (list[i]->sniff(&s))
			return list[i];
	return list[INPUT_text];
}

void inputs_observe(struct casefile *c, const struct inputs_beside *beside)
{
	for (size_t i = 0; i < beside->n; i++) {
		const struct input_beside *b = &beside->list[i];

		if (b->input->observe)
			b->input->observe(b->it, c);
		case_evidence(c, "input", pool_strdup(c->pool, b->why));
	}
}
