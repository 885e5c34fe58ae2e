/* SPDX-License-Identifier: Apache-2.0
 * For tests: builds a memory trace event by event, as described at struct cw_events in format.h.
 */
#ifndef CUWHY_EVENTS_MAKE_H
#define CUWHY_EVENTS_MAKE_H

#include <stdlib.h>
#include <string.h>

#include "cuwhy/format.h"

struct em {
	uint8_t *data;
	size_t len, cap;
	uint64_t time, addr;		/* of the event before */
	uint64_t size;			/* of the newest */
};

static inline void em_byte(struct em *m, uint8_t byte)
{
	if (m->len == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 4096;
		m->data = realloc(m->data, m->cap);
		if (!m->data)
			abort();
	}
	m->data[m->len++] = byte;
}

static inline void em_number(struct em *m, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		em_byte(m, (uint8_t)(v | 128));
	em_byte(m, (uint8_t)v);
}

static inline uint64_t em_folded(int64_t d)
{
	return (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
}

static inline void em_bytes(struct em *m, int64_t n)
{
	em_number(m, n % (int64_t)CW_EVENT_UNIT ? em_folded(n) << 1 | 1 : em_folded(n / (int64_t)CW_EVENT_UNIT) << 1);
}

static inline void em_init(struct em *m)
{
	struct cw_events_file h = {.major = CW_MAJOR, .minor = CW_MINOR, .pid = 100};

	*m = (struct em){.len = 0};
	memcpy(h.magic, CW_EVENTS_MAGIC, sizeof(h.magic));
	for (size_t i = 0; i < sizeof(h); i++)
		em_byte(m, ((const uint8_t *)&h)[i]);
}

static inline void em_event(struct em *m, enum cw_event kind, int device, uint64_t ticks, uint64_t addr, uint64_t size,
			    uint32_t site)
{
	uint64_t time = ticks / CW_EVENT_TICKS;

	em_byte(m, (uint8_t)(kind | (unsigned)(device >= 0 ? device : 31) << 3));
	em_number(m, em_folded((int64_t)(time - m->time)));
	m->time = time;
	if (kind != CW_EVENT_OOM) {
		em_bytes(m, (int64_t)(addr - m->addr));
		m->addr = addr;
	}
	if (kind == CW_EVENT_MADE || kind == CW_EVENT_GAVE || kind == CW_EVENT_OOM)
		em_bytes(m, (int64_t)size);
	if (kind == CW_EVENT_MADE || kind == CW_EVENT_GAVE)
		em_number(m, site);
	m->size = size;
}

static inline void em_lost(struct em *m, uint64_t n)
{
	em_byte(m, CW_EVENT_LOST);
	em_number(m, n);
}

static inline void em_asked(struct em *m, int device, uint64_t size)
{
	em_byte(m, (uint8_t)(CW_EVENT_ASKED | (unsigned)device << 3));
	em_bytes(m, (int64_t)size);
}

static inline void em_more(struct em *m, enum cw_event_more what, int device, uint64_t value)
{
	em_byte(m, (uint8_t)(CW_EVENT_MORE | (unsigned)device << 3));
	em_number(m, what);
	em_number(m, value);
}

static inline void em_release(struct em *m)
{
	free(m->data);
	*m = (struct em){.len = 0};
}

#endif
