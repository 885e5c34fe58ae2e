/* SPDX-License-Identifier: Apache-2.0
 * The memory of a process with a Python in it, made by hand: one interpreter, threads, frames, code, texts.
 */
#ifndef CUWHY_LIVE_MAKE_H
#define CUWHY_LIVE_MAKE_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cuwhy/python.h"
#include "read/live/pyproc.h"
#include "read/live/remote.h"

#define IMAGE_AT	0x10000u
#define IMAGE_BYTES	(8u * REMOTE_PAGE)
#define IMAGE_CODE_TYPE	0x10f00u

struct image {
	uint8_t bytes[IMAGE_BYTES];
	uint32_t used;		/* from 0x1000 on; before that: the runtime */
};

static bool image_fetch(void *arg, uint64_t page, void *to)
{
	struct image *i = arg;

	if (page < IMAGE_AT || page - IMAGE_AT > IMAGE_BYTES - REMOTE_PAGE)
		return false;
	memcpy(to, i->bytes + (page - IMAGE_AT), REMOTE_PAGE);
	return true;
}

static inline void image_put(struct image *i, uint64_t at, uint64_t value, size_t n)
{
	memcpy(i->bytes + (at - IMAGE_AT), &value, n);
}

static inline uint64_t image_room(struct image *i, uint32_t n)
{
	uint64_t at;

	if (!i->used)
		i->used = REMOTE_PAGE;
	at = IMAGE_AT + i->used;
	i->used += (n + 15) & ~15u;
	return at;
}

static inline uint64_t image_text(struct image *i, const struct py_layout *l, const char *text)
{
	uint64_t at = image_room(i, 128);

	image_put(i, at + 16, strlen(text), 8);
	image_put(i, at + 32, 1 << 2 | 32 | 64, 4);	/* one byte each, compact, ASCII */
	memcpy(i->bytes + (at - IMAGE_AT) + l->ascii_data, text, strlen(text));
	return at;
}

/* A code object whose instruction at byte 2n is on line first + n. */
static inline uint64_t image_code(struct image *i, const struct py_layout *l, const char *file, const char *name,
				  int first)
{
	uint64_t at = image_room(i, 320), table = image_room(i, 64);
	uint8_t *t = i->bytes + (table - IMAGE_AT) + PY_BYTES_DATA;
	int n = 8;

	image_put(i, at + 8, IMAGE_CODE_TYPE, 8);
	image_put(i, at + l->first_line, (uint64_t)first, 4);
	image_put(i, at + l->filename, image_text(i, l, file), 8);
	image_put(i, at + l->name, image_text(i, l, name), 8);
	image_put(i, at + l->line_table, table, 8);
	for (int k = 0; k < n; k++) {
		if (l->minor >= 11) {
			t[2 * k] = (uint8_t)(0x80 | 13 << 3);	/* one unit, a signed number of lines */
			t[2 * k + 1] = k ? 2 : 0;
		} else {
			t[2 * k] = l->minor == 9 && !k ? 0 : 2;
			t[2 * k + 1] = k ? 1 : 0;
		}
	}
	image_put(i, table + PY_BYTES_SIZE, (uint64_t)n * 2, 8);
	return at;
}

static inline uint64_t image_frame(struct image *i, const struct py_layout *l, uint64_t code, unsigned unit,
				   uint64_t previous)
{
	uint64_t at = image_room(i, 480);

	image_put(i, at + l->code, code, 8);
	image_put(i, at + l->previous, previous, 8);
	if (l->instr_kind == INSTR_POINTER)
		image_put(i, at + l->instr, code + l->bytecode + 2 * unit, 8);
	else
		image_put(i, at + l->instr, l->instr_kind == INSTR_UNITS ? unit : 2 * unit, 4);
	return at;
}

/* A thread with this innermost frame, in front of `next`. */
static inline uint64_t image_thread(struct image *i, const struct py_layout *l, const struct py_states *s, uint32_t tid,
				    uint64_t frame, uint64_t next)
{
	uint64_t at = image_room(i, 256), cframe = image_room(i, 32);

	image_put(i, at + s->thread_next, next, 8);
	if (s->native)
		image_put(i, at + s->native, tid, 8);
	image_put(i, at + s->thread_id, 0x7000 + tid, 8);
	if (l->via_cframe)
		image_put(i, cframe + l->cframe_frame, frame, 8);
	image_put(i, at + l->first_frame, l->via_cframe ? cframe : frame, 8);
	return at;
}

/* The layouts of a version, as the reader has them. `runtime` is at IMAGE_AT. */
static inline uint32_t image_version(unsigned minor)
{
	return 0x03000000u | minor << 16 | 0x01f0;
}

#endif
