/* SPDX-License-Identifier: Apache-2.0
 * Unpacks the events of the allocators (struct cw_events in format.h), checking every byte.
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "input/recording/events.h"

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

static bool get_event(struct events *r, struct event *out)
{
	if (out->kind == CW_EVENT_LOST)
		return get(r, &out->lost);
	if (out->kind > CW_EVENT_LOST || !get_difference(r, &r->time))
		return false;
	out->ticks = r->time * CW_EVENT_TICKS;
	return out->kind == CW_EVENT_OOM ? get_bytes(r, &out->size) : get_memory(r, out);
}

bool events_next(struct events *r, struct event *out)
{
	*out = (struct event){.device = -1};
	if (r->at >= r->end)
		return false;
	out->kind = *r->at & 7;
	if (*r->at >> 3 != 31)
		out->device = *r->at >> 3;
	r->at++;
	if (get_event(r, out))
		return true;
	r->at = r->end;
	return false;
}
