/* SPDX-License-Identifier: Apache-2.0
 * Would a request have fit with another setting? (room_played.h)
 */
#include "find/memory/room_played.h"

#include "base/buf.h"
#include "read/recording/event_log.h"
#include "find/memory/replay.h"

#define BYTES_MAX ((size_t)64 << 20)

/* What the program would have done next is not the question. */
#define HARMLESS (1u << REPLAY_BEYOND)

static int64_t spare_of(const struct replay_answer *a)
{
	uint64_t missing = a->failure.request > a->failure.free ? a->failure.request - a->failure.free : 1;

	return a->fits ? (int64_t)a->beside : -(int64_t)missing;
}

bool room_played(const struct replay *r, const char *words, int64_t *spare)
{
	struct replay_question q = replay_same(r);
	struct replay_answer a;

	if (!replay_facts(r)->ran_out || replay_facts(r)->doubts & ~HARMLESS ||
	    replay_settings(r, words, &q.settings, NULL) ||
	    allocator_settings_same(&q.settings, &replay_facts(r)->settings))
		return false;
	replay_ask(r, &q, &a);
	*spare = spare_of(&a);
	return !(a.doubts & ~HARMLESS);
}

struct replay *room_open(struct trace *t, int device)
{
	struct replay *r = NULL;
	struct buf bytes;

	buf_init(&bytes, BYTES_MAX);
	if (event_log_pack(&bytes, t) == 0 && !bytes.full)
		r = replay_new(t, bytes.data, bytes.len, device, NULL);
	buf_release(&bytes);
	return r;
}
