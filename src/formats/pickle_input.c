/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a pickle, a window at a time (see pickle_input.h).
 */
#include "formats/pickle_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/progress.h"

/* A snapshot compresses 10 to 50 times. A file that expands more than this is a decompression bomb. */
#define GROWS_MAX	256
#define GROWS_FREE	(16u << 20)

int input_open(struct pickle_input *in, const char *path, struct err *e)
{
	uint64_t size = 0;
	int fd = fs_open_foreign(path, INT64_MAX, &size);

	*in = (struct pickle_input){.err = e};
	if (fd < 0)
		in->failed = err_set(e, fd, "cannot open '%s': %s", path, fs_reason(fd));
	else if (!(in->file = gzdopen(fd, "rb")))
		in->failed = err_set(e, -ENOMEM, "cannot read '%s'", path);
	if (in->failed) {
		if (fd >= 0)
			close(fd);
		return in->failed;
	}
	gzbuffer(in->file, INPUT_WINDOW / 4);
	progress_total(size);
	in->limit = size * GROWS_MAX + GROWS_FREE;
	in->window = xmalloc(INPUT_WINDOW);
	in->at = in->end = in->window;
	return 0;
}

void input_of_memory(struct pickle_input *in, const void *bytes, size_t len, struct err *e)
{
	*in = (struct pickle_input){.at = bytes, .end = (const uint8_t *)bytes + len, .base = len, .err = e};
}

void input_close(struct pickle_input *in)
{
	if (in->file)
		gzclose_r(in->file);
	free(in->window);
	*in = (struct pickle_input){0};
}

static void input_fail(struct pickle_input *in)
{
	int code;
	const char *why = gzerror(in->file, &code);

	if (code == Z_BUF_ERROR)
		why = "the compressed data is cut short";
	else if (code == Z_ERRNO)
		why = strerror(errno);
	in->failed = err_set(in->err, -EIO, "cannot read the file: %s", why);
}

bool input_fill(struct pickle_input *in, size_t n)
{
	size_t have = (size_t)(in->end - in->at);
	int got;

	if (!in->file || in->failed || n > INPUT_WINDOW / 2)
		return have >= n;
	memmove(in->window, in->at, have);
	in->at = in->window;
	in->end = in->window + have;
	while (have < n) {
		got = gzread(in->file, in->window + have, (unsigned int)(INPUT_WINDOW - have));
		if (got < 0)
			input_fail(in);
		if (got <= 0)
			return false;
		have += (size_t)got;
		in->base += (uint64_t)got;
		progress_at((uint64_t)gzoffset(in->file));
		in->end = in->window + have;
		if (in->base > in->limit)
			in->failed = err_set(in->err, -EFBIG, "the file expands to more than %d times its size: this "
					     "is not a snapshot", GROWS_MAX);
		if (in->failed)
			return false;
	}
	return true;
}

bool input_skip(struct pickle_input *in, uint64_t n)
{
	while (n > 0) {
		uint64_t have = (uint64_t)(in->end - in->at);

		if (have == 0 && !input_fill(in, 1))
			return false;
		have = (uint64_t)(in->end - in->at);
		if (have > n)
			have = n;
		in->at += have;
		n -= have;
	}
	return true;
}
