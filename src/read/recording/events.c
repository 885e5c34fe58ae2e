/* SPDX-License-Identifier: Apache-2.0
 * Unpacks the events of the allocators (struct cw_events in format.h), checking every byte.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "read/recording/events.h"

#define MINOR_WITH_ASKED 6

int events_begin(struct events *r, const void *bytes, size_t len, struct err *e)
{
	struct cw_events_file h;

	*r = (struct events){0};
	if (len < sizeof(h) || memcmp(bytes, CW_EVENTS_MAGIC, sizeof(h.magic)) != 0)
		return err_set(e, -EINVAL, "not a cuwhy memory trace");
	memcpy(&h, bytes, sizeof(h));
	if (h.major != CW_MAJOR) {
		err_set(e, -EPROTO, "the memory trace has format %u, this cuwhy reads format %u", h.major, CW_MAJOR);
		return err_hint(e, "read it with the version of cuwhy that recorded it");
	}
	r->at = (const uint8_t *)bytes + sizeof(h);
	r->end = (const uint8_t *)bytes + len;
	r->knows_asked = h.minor >= MINOR_WITH_ASKED;
	return 0;
}

static bool get(struct events *r, uint64_t *v)
{
	unsigned int shift;
	uint8_t byte;

	*v = 0;
	for (shift = 0; r->at < r->end && shift < 64; shift += 7) {
		byte = *r->at++;
		*v |= (uint64_t)(byte & 127) << shift;
		if (!(byte & 128))
			return true;
	}
	return false;
}

static uint64_t unfolded(uint64_t v)
{
	return v >> 1 ^ (0 - (v & 1));
}

static bool get_difference(struct events *r, uint64_t *sum)
{
	uint64_t v;

	if (!get(r, &v))
		return false;
	*sum += unfolded(v);
	return true;
}

static bool get_bytes(struct events *r, uint64_t *sum)
{
	uint64_t v;

	if (!get(r, &v))
		return false;
	*sum += v & 1 ? unfolded(v >> 1) : unfolded(v >> 1) * CW_EVENT_UNIT;
	return true;
}

static bool get_memory(struct events *r, struct event *out)
{
	uint64_t site = 0;

	if (!get_bytes(r, &r->addr))
		return false;
	out->addr = r->addr;
	if (out->kind == CW_EVENT_FREED || out->kind == CW_EVENT_TOOK)
		return true;
	if (!get_bytes(r, &out->size) || !get(r, &site))
		return false;
	out->site = site <= UINT32_MAX ? (uint32_t)site : 0;
	return true;
}

/* Of the next block, or an event of its own. */
static bool get_more(struct events *r, struct event *out)
{
	uint64_t what, value;

	if (!get(r, &what) || !get(r, &value))
		return false;
	out->more = what <= CW_MORE_START ? (enum cw_event_more)what : CW_MORE_LATER;
	out->size = value;
	out->ticks = r->time * CW_EVENT_TICKS;
	if (what == CW_MORE_STREAM)
		r->stream = value;
	else if (what == CW_MORE_POOL)
		r->pool = value;
	else if (what == CW_MORE_LATER)
		r->later = value != 0;
	return true;
}

static bool get_event(struct events *r, struct event *out)
{
	if (out->kind == CW_EVENT_LOST) {
		r->asked = 0;
		r->later = false;
		return get(r, &out->lost);
	}
	if (out->kind == CW_EVENT_ASKED)
		return get_bytes(r, &r->asked);
	if (out->kind == CW_EVENT_MORE)
		return get_more(r, out);
	if (!get_difference(r, &r->time))
		return false;
	out->ticks = r->time * CW_EVENT_TICKS;
	if (out->kind == CW_EVENT_OOM)
		return get_bytes(r, &out->size);
	if (!get_memory(r, out))
		return false;
	out->stream = r->stream;
	out->pool = r->pool;
	if (out->kind == CW_EVENT_MADE || out->kind == CW_EVENT_FREED) {
		if (out->kind == CW_EVENT_MADE)
			out->asked = r->asked ? r->asked : r->knows_asked ? out->size : 0;
		out->later = out->kind == CW_EVENT_FREED && r->later;
		r->asked = 0;
		r->later = false;
	}
	return true;
}

static bool is_detail(const struct event *v)
{
	return v->kind == CW_EVENT_ASKED ||
	       (v->kind == CW_EVENT_MORE && (v->more == CW_MORE_STREAM || v->more == CW_MORE_LATER));
}

bool events_next(struct events *r, struct event *out)
{
	do {
		*out = (struct event){.device = -1};
		if (r->at >= r->end)
			return false;
		out->kind = *r->at & 7;
		if (*r->at >> 3 != 31)
			out->device = *r->at >> 3;
		r->at++;
		if (!get_event(r, out)) {
			r->at = r->end;
			return false;
		}
	} while (is_detail(out));
	return true;
}
