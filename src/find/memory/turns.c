/* SPDX-License-Identifier: Apache-2.0
 * Turns of Python loops (see turns.h and struct cw_turn).
 */
#include "find/memory/turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "read/recording/trace_memory.h"

static bool turn_fill(const struct trace *t, const struct cw_loop_turn *at, struct turn *out)
{
	size_t len;
	const struct cw_loop *l = trace_chunk(t, CW_CHUNK_LOOPS, &len);

	if (!at->loop || at->loop >= len / sizeof(*l) || !l[at->loop].frame.file || !at->turn)
		return false;
	l += at->loop;
	*out = (struct turn){
		.loop = {.file = trace_string(t, l->frame.file), .function = trace_string(t, l->frame.function),
			 .line = l->frame.line, .first_line = l->frame.first_line},
		.number = at->loop,
		.turn = at->turn,
		.exact = at->flags & CW_TURN_EXACT,
		.calls = l->flags & CW_LOOP_CALLS,
	};
	out->loop.library = frame_owner(out->loop.file, trace_header(t)->torch_path) != OWNER_USER;
	return true;
}

static size_t turns_fill(const struct trace *t, const struct cw_loop_turn *at, uint32_t count, struct turn *out)
{
	size_t n = 0;

	for (uint32_t k = 0; k < count && k < CW_LOOP_TURNS; k++)
		n += turn_fill(t, &at[k], &out[n]);
	return n;
}

size_t turns_of_failure(const struct trace *t, const struct cw_failure *f, struct turn *out)
{
	size_t len;
	const struct cw_failure_turns *all = trace_chunk(t, CW_CHUNK_FAILURE_TURNS, &len);

	for (size_t i = 0; f->seq && i < len / sizeof(*all); i++)
		if (all[i].seq == f->seq)
			return turns_fill(t, all[i].at, all[i].n, out);
	return 0;
}

size_t turns_of_number(const struct trace *t, const struct cw_number *x, struct turn *out)
{
	return turns_fill(t, x->at, x->n, out);
}

/* What its serial is, or was before it was freed; 0 = there is none. */
static uint32_t serial_of(const struct cw_turn *r)
{
	return r->serial ? (uint32_t)r->serial : r->refs;
}

/* A turn is made after those of the loops around it: one with a later serial has taken the place of such a one, or the
 * recording is damaged. */
static size_t turns_from(const struct trace *t, uint32_t off, uint32_t serial, struct turn *out)
{
	const struct cw_turn *r;
	uint32_t before = 0;
	size_t n = 0;

	for (size_t guard = 0; off && guard < CW_LOOP_TURNS; guard++, off = r->up) {
		r = off % 8 == 0 ? trace_in_chunk(t, CW_CHUNK_TURNS, off, sizeof(*r)) : NULL;
		if (!r || !serial_of(r) || (serial && serial_of(r) != serial) || (before && serial_of(r) >= before))
			break;
		before = serial_of(r);
		serial = 0;
		n += turn_fill(t, &r->at, &out[n]);
	}
	return n;
}

size_t turns_of_block(const struct trace *t, const struct cw_allocation *block, struct turn *out)
{
	return turns_from(t, block->kind == CW_MEM_TORCH ? (uint32_t)(block->extra >> 32) : 0, 0, out);
}

size_t turns_of_piece(const struct trace *t, const struct piece *p, struct turn *out)
{
	return turns_from(t, p->turn, p->turn_serial, out);
}

/* Entry i of a log, from 1; NULL if another has taken its place. */
static const struct cw_turned *log_entry(const struct cw_ring *log, uint64_t i)
{
	const struct cw_turned *e = (const struct cw_turned *)(log + 1) + ((i - 1) & (log->n_slots - 1));

	return e->seq == i ? e : NULL;
}

static size_t turns_in_log(const struct trace *t, const struct cw_ring *log, uint64_t launch, struct turn *out)
{
	uint64_t i = log->head, least = i > log->n_slots ? i - log->n_slots : 0;
	const struct cw_turned *e;
	uint32_t depth = UINT32_MAX;
	size_t n = 0;

	for (; i > least && depth && n < CW_LOOP_TURNS; i--) {
		e = log_entry(log, i);
		if (!e || e->launch > launch || e->depth >= depth)
			continue;
		depth = e->depth;
		n += turn_fill(t, &e->at, &out[n]);
	}
	return n;
}

size_t turns_of_launch(const struct trace *t, const struct cw_launch *l, struct turn *out)
{
	const struct cw_ring *log;
	size_t len, ring_len;

	for (size_t i = 0; l->stack && (log = trace_ring(t, CW_CHUNK_TURN_LOG, sizeof(struct cw_turned), i)); i++) {
		const char *ring = trace_chunk_at(t, CW_CHUNK_LAUNCHES, log->thread_key, &ring_len);

		len = (size_t)((const char *)l - ring);
		if (ring && (const char *)l >= ring && len < ring_len)
			return turns_in_log(t, log, l->seq, out);
	}
	return 0;
}

const struct turn *turn_to_name(const struct turn *turns, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!turns[i].loop.library)
			return &turns[i];
	return n ? &turns[0] : NULL;
}

static const char *turn_in_words(const struct trace *t, const struct turn *turn, struct pool *pool)
{
	const char *about = turn->exact ? "" : "about ", *file = file_shown(turn->loop.file, trace_header(t)->cwd);

	if (turn->calls)
		return pool_printf(pool, "%scall %u from %s:%u", about, turn->turn, file, turn->loop.line);
	return pool_printf(pool, "%siteration %u of the loop at %s:%u", about, turn->turn, file, turn->loop.line);
}

const char *turns_in_words(const struct trace *t, const struct turn *turns, size_t n, struct pool *pool)
{
	const struct turn *named = turn_to_name(turns, n);
	const char *words = named ? turn_in_words(t, named, pool) : "";

	for (size_t i = 0; i < n; i++)
		if (&turns[i] > named && !turns[i].loop.library)
			words = pool_printf(pool, "%s, in %s", words, turn_in_words(t, &turns[i], pool));
	return words;
}

/* The turns of the loops around a block, outermost first, down to the loop in question. */
struct path { uint32_t turn[CW_LOOP_TURNS], n; uint64_t bytes; bool exact; };

static bool path_of(const struct trace *t, const struct cw_allocation *block, uint32_t loop, struct path *p)
{
	struct turn turns[CW_LOOP_TURNS];
	size_t n = turns_of_block(t, block, turns), i;

	*p = (struct path){.bytes = block->size};
	for (i = 0; i < n && turns[i].number != loop; i++)
		;
	if (i == n)
		return false;
	p->exact = turns[i].exact;
	while (n-- > i)
		p->turn[p->n++] = turns[n].turn;
	return true;
}

static int path_order(const void *left, const void *right)
{
	const struct path *a = left, *b = right;

	for (uint32_t i = 0; i < a->n && i < b->n; i++)
		if (a->turn[i] != b->turn[i])
			return a->turn[i] < b->turn[i] ? -1 : 1;
	return a->n < b->n ? -1 : a->n > b->n;
}

void site_turns_of(struct trace *t, uint32_t site, uint32_t loop, struct site_turns *out)
{
	const struct cw_allocation *const *block;
	size_t n = trace_blocks(t, &block), paths = 0;
	struct path *path = xcalloc(n + 1, sizeof(*path));

	*out = (struct site_turns){.share = xcalloc(n + 1, sizeof(*out->share))};
	for (size_t i = 0; i < n; i++) {
		if (block[i]->site != site)
			continue;
		if (path_of(t, block[i], loop, &path[paths])) {
			paths++;
		} else {
			out->blocks++;
			out->bytes += block[i]->size;
		}
	}
	xsort(path, paths, sizeof(*path), path_order);
	for (size_t i = 0; i < paths; i++) {
		struct turn_share *s = &out->share[out->n];

		if (i && path_order(&path[i - 1], &path[i]) == 0)
			s--;
		else
			*s = (struct turn_share){.turn = path[i].turn[path[i].n - 1], .outer = path[i].turn[0],
						 .exact = path[i].exact}, out->n++;
		s->blocks++;
		s->bytes += path[i].bytes;
	}
	free(path);
}

void site_turns_release(struct site_turns *s)
{
	free(s->share);
	*s = (struct site_turns){0};
}
