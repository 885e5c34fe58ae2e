/* SPDX-License-Identifier: Apache-2.0
 * Writes small pickles for tests, opcode by opcode.
 */
#ifndef SNAP_MAKE_H
#define SNAP_MAKE_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

struct snap_make {
	uint8_t data[1 << 18];
	size_t len;
};

static inline void make_byte(struct snap_make *m, uint8_t b)
{
	assert(m->len < sizeof(m->data));
	m->data[m->len++] = b;
}

static inline void make_begin(struct snap_make *m)
{
	m->len = 0;
	make_byte(m, 0x80);
	make_byte(m, 4);
}

static inline void make_text(struct snap_make *m, const char *s)
{
	make_byte(m, 0x8c);
	make_byte(m, (uint8_t)strlen(s));
	for (; *s; s++)
		make_byte(m, (uint8_t)*s);
}

static inline void make_number(struct snap_make *m, uint64_t n)
{
	make_byte(m, 0x8a);
	make_byte(m, 9);
	for (int i = 0; i < 8; i++)
		make_byte(m, (uint8_t)(n >> (8 * i)));
	make_byte(m, 0);
}

static inline void make_item(struct snap_make *m, const char *key, uint64_t n)
{
	make_text(m, key);
	make_number(m, n);
}

static inline void make_word(struct snap_make *m, const char *key, const char *value)
{
	make_text(m, key);
	make_text(m, value);
}

/* A stack of one frame. */
static inline void make_frames(struct snap_make *m, const char *file, uint64_t line)
{
	make_text(m, "frames");
	make_byte(m, ']');
	make_byte(m, '}');
	make_byte(m, '(');
	make_word(m, "filename", file);
	make_word(m, "name", "f");
	make_item(m, "line", line);
	make_byte(m, 'u');
	make_byte(m, 'a');
}

static inline void make_event(struct snap_make *m, const char *action, uint64_t addr, uint64_t size, uint64_t line)
{
	make_byte(m, '}');
	make_byte(m, '(');
	make_word(m, "action", action);
	make_item(m, strcmp(action, "oom") ? "addr" : "device_free", addr);
	make_item(m, "size", size);
	make_item(m, "stream", 0);
	if (line)
		make_frames(m, "/home/user/a.py", line);
	make_byte(m, 'u');
}

static inline void make_block(struct snap_make *m, uint64_t addr, uint64_t size, const char *state, uint64_t line)
{
	make_byte(m, '}');
	make_byte(m, '(');
	make_item(m, "address", addr);
	make_item(m, "size", size);
	make_item(m, "requested_size", size);
	make_word(m, "state", state);
	if (line)
		make_frames(m, "/home/user/a.py", line);
	make_byte(m, 'u');
}

/* The top, up to the first segment. */
static inline void make_top(struct snap_make *m)
{
	make_begin(m);
	make_byte(m, '}');
	make_byte(m, '(');
	make_text(m, "segments");
	make_byte(m, ']');
	make_byte(m, '(');
}

static inline void make_segment(struct snap_make *m, uint64_t addr, uint64_t size)
{
	make_byte(m, '}');
	make_byte(m, '(');
	make_item(m, "device", 0);
	make_item(m, "address", addr);
	make_item(m, "total_size", size);
	make_item(m, "stream", 0);
	make_text(m, "blocks");
	make_byte(m, ']');
	make_byte(m, '(');
}

static inline void make_segment_end(struct snap_make *m)
{
	make_byte(m, 'e');
	make_byte(m, 'u');
}

/* From the segments to the events of device 0. */
static inline void make_events(struct snap_make *m)
{
	make_byte(m, 'e');
	make_text(m, "device_traces");
	make_byte(m, ']');
	make_byte(m, ']');
	make_byte(m, '(');
}

static inline void make_end(struct snap_make *m)
{
	make_byte(m, 'e');
	make_byte(m, 'a');
	make_byte(m, 'u');
	make_byte(m, '.');
}

#endif
