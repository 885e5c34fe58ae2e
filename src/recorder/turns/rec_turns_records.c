/* SPDX-License-Identifier: Apache-2.0
 * The turns of loops in the recording: the loops, a record for the turn in which a block was made, and a log of turns for launches.
 */
#include <string.h>

#include "recorder/rec_segment.h"
#include "recorder/turns/rec_turns.h"

#define LOOPS_MAX	2048u		/* in the recording; index 0 is not used */
#define RECORDS		16384u
#define CALL_SLOTS	1024u

static struct {
	struct cw_loop *loop;		/* the chunk; made when the first loop is needed */
	uint32_t n_loops;
	struct slot calls[CALL_SLOTS];	/* lines that stand for C code that repeats */
	struct cw_turn *record;
	uint32_t n_records, free, free_last;	/* offs: those that were freed first are used again first */
	uint32_t spare;			/* offset of a record without blocks that may soon have some again, 0 = none */
	uint64_t serial;
} turns;
static struct spin turns_lock;
LOCK_LISTED(turns_lock, turns_lock);

static uint32_t line_at(const char *code, uint32_t unit)
{
	uint64_t instr = py.l.instr_kind == INSTR_POINTER ? (uintptr_t)(code + py.l.bytecode + 2 * unit)
			 : py.l.instr_kind == INSTR_BYTES ? 2 * unit
							  : unit;

	return python_line(&py.l, code, instr);
}

/* The body may come before the test in the bytecode; the line of `while` is the smallest. */
static uint32_t loop_line(const char *code, const struct py_loop *p)
{
	uint32_t line = line_at(code, p->head), jump = p->jump ? line_at(code, p->jump) : line;

	return jump < line ? jump : line;
}

/* Under the lock; 0 = no room. */
static uint32_t loop_add(const char *code, uint32_t line, uint32_t flags)
{
	struct cw_loop *l;

	if (!turns.loop || turns.n_loops == LOOPS_MAX)
		return 0;
	l = &turns.loop[turns.n_loops];
	python_code_frame(code, line, &l->frame);
	l->flags = flags;
	return turns.n_loops++;
}

uint32_t loop_of_calls(const struct py_chain *c, uint32_t link)
{
	const char *code = UNTAGGED(c->kept[link].code);
	uint64_t key = (c->kept[link].id ^ (uint64_t)unit_of(c, link) * 0x9e3779b97f4a7c15ull) | 1;
	uint32_t number = table_get(turns.calls, CALL_SLOTS, key);

	if (number || !spin_try(&turns_lock))
		return number;
	number = loop_add(code, python_line(&py.l, code, c->link[link].instr), CW_LOOP_CALLS);
	if (number && !table_put(turns.calls, CALL_SLOTS, key, number))
		number = 0;
	spin_done(&turns_lock);
	return number;
}

static inline uint32_t loop_number(const struct rec_thread *t, const struct turn_level *l)
{
	const char *code = UNTAGGED(t->chain.kept[l->link].code);
	struct py_loop *p = &py_loop[l->loop];
	uint32_t number;

	if (l->loop & CALLS)
		return l->loop & ~CALLS;
	number = __atomic_load_n(&p->number, __ATOMIC_ACQUIRE);
	if (likely(number) || !spin_try(&turns_lock))
		return number;
	if (!p->number)
		shared_set(&p->number, loop_add(code, loop_line(code, p), p->is_for ? CW_LOOP_FOR : 0));
	number = p->number;
	spin_done(&turns_lock);
	return number;
}

static inline struct cw_loop_turn turn_of(const struct rec_thread *t, const struct turn_level *l)
{
	return (struct cw_loop_turn){.loop = loop_number(t, l), .turn = l->turn, .flags = l->flags & CW_TURN_EXACT};
}

uint32_t turns_now(const struct rec_thread *t, struct cw_loop_turn *out, uint32_t max)
{
	uint32_t n = 0;

	for (uint32_t i = t->turns.n; i-- > 0 && n < max; n++)
		out[n] = turn_of(t, &t->turns.level[i]);
	return n;
}

/* Which launch the next entry belongs to: the one that is being written, else the next. */
static uint64_t launch_now(const struct cw_ring *r)
{
	const struct cw_launch *s = (const struct cw_launch *)(r + 1) + ((r->head - 1) & (CW_RING_LAUNCHES - 1));

	return r->head + !(r->head && !s->seq);
}

static inline void log_turn(struct cw_ring *r, uint64_t launch, uint32_t depth, struct cw_loop_turn at)
{
	struct cw_turned *s = (struct cw_turned *)(r + 1) + (r->head & (CW_RING_TURNS - 1));

	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	ring_ahead(r, s, sizeof(*s));
	r->head++;
	s->launch = launch;
	s->depth = depth;
	s->at = at;
	shared_set(&s->seq, r->head);
}

/* Only half of the chunks: rings of threads matter more. */
HOT void turns_log(struct rec_thread *t, uint32_t same)
{
	uint64_t launch;

	if (!t->turn_log) {
		if (!t->launches || t->no_turn_log || !t->turns.n)
			return;
		if (shared_get(&rec.h->n_chunks) < CW_MAX_CHUNKS / 2)
			t->turn_log = ring_new(CW_CHUNK_TURN_LOG, sizeof(struct cw_turned), CW_RING_TURNS);
		t->no_turn_log = !t->turn_log;
		if (!t->turn_log)
			return;
		t->turn_log->thread_key = off_of(t->launches);
		same = 0;
	}
	launch = launch_now(t->launches);
	for (uint32_t i = same; i < t->turns.n; i++)
		log_turn(t->turn_log, launch, i, turn_of(t, &t->turns.level[i]));
	if (same == t->turns.n && t->turn_logged > same)
		log_turn(t->turn_log, launch, same, (struct cw_loop_turn){0});
	t->turn_logged = t->turns.n;
}

HOT void turns_log_step(struct rec_thread *t)
{
	uint32_t last = t->turns.n - 1;

	if (likely(t->turn_log && t->turn_logged == t->turns.n))
		log_turn(t->turn_log, launch_now(t->launches), last, turn_of(t, &t->turns.level[last]));
	else
		turns_log(t, last);
}

static struct cw_turn *record_new(void)
{
	struct cw_turn *r = at(turns.free);

	if (turns.record && turns.n_records < RECORDS) {
		r = &turns.record[turns.n_records++];
		if (begins_page(r, sizeof(*r)))
			chunk_warm_ahead(turns.record, (size_t)((char *)r - (char *)turns.record), RECORDS * sizeof(*r));
	} else if (r) {
		turns.free = r->next;
	}
	return r;
}

static bool record_is(const struct turn_level *l)
{
	return l->record && ((const struct cw_turn *)at(l->record))->serial == l->serial;
}

/* The record of each loop refers to that of the loop around it. If there is no room, only the outer loops are recorded. */
static __attribute__((noinline)) uint32_t turn_make(struct rec_thread *t)
{
	struct py_turns *p = &t->turns;
	uint32_t i = p->n, up;
	struct cw_turn *r;

	while (i && !record_is(&p->level[i - 1]))
		i--;
	up = i ? p->level[i - 1].record : 0;
	for (; i < p->n; i++) {
		r = record_new();
		if (!r) {
			shared_add(&rec.h->lost_turns, 1);
			break;
		}
		r->up = up;
		r->at = turn_of(t, &p->level[i]);
		r->refs = 0;
		shared_set(&r->serial, ++turns.serial);
		if (up)
			((struct cw_turn *)at(up))->refs++;
		p->level[i].serial = r->serial;
		p->level[i].record = up = off_of(r);
	}
	if (up)
		((struct cw_turn *)at(up))->refs++;
	return up;
}

/* PyTorch's backward threads have no Python frames. The thread that created the graph waits for them, in the turn of its last event. It
 * might go on without waiting, so its record counts only while it is still in use. */
static __attribute__((noinline)) uint32_t turn_of_forward(struct rec_thread *t)
{
	uint32_t i;

	if (t->forward_of != t->forward_nodes) {
		t->forward_of = t->forward_nodes;
		t->forward = rec_thread_of_nodes(t->forward_nodes);
	}
	if (!t->forward || t->forward == t)
		return 0;
	i = __atomic_load_n(&t->forward->turns.n, __ATOMIC_RELAXED);
	for (i = i < TURN_LEVELS ? i : TURN_LEVELS; i-- > 0;) {
		const struct turn_level *l = &t->forward->turns.level[i];
		uint32_t off = __atomic_load_n(&l->record, __ATOMIC_RELAXED);

		if (off && ((struct cw_turn *)at(off))->serial == __atomic_load_n(&l->serial, __ATOMIC_RELAXED)) {
			((struct cw_turn *)at(off))->refs++;
			return off;
		}
	}
	return 0;
}

HOT uint32_t turn_keep(struct rec_thread *t)
{
	const struct turn_level *l;

	if (!t->turns.n)
		return unlikely(t->node_depth) && turns.record ? turn_of_forward(t) : 0;
	l = &t->turns.level[t->turns.n - 1];
	if (unlikely(!record_is(l)))
		return turn_make(t);
	((struct cw_turn *)at(l->record))->refs++;
	return l->record;
}

static __attribute__((noinline)) void records_free(uint32_t turn)
{
	while (turn) {
		struct cw_turn *r = at(turn), *last = at(turns.free_last);

		r->refs = (uint32_t)r->serial;
		shared_set(&r->serial, 0);
		r->next = 0;
		*(turns.free ? &last->next : &turns.free) = turn;
		turns.free_last = turn;
		turn = r->up;
		if (turn && --((struct cw_turn *)at(turn))->refs)
			break;
	}
}

uint32_t turn_serial(uint32_t turn)
{
	return turn ? (uint32_t)((const struct cw_turn *)at(turn))->serial : 0;
}

/* A record whose last block is gone is not freed at once: in many programs each block is freed before the next one is allocated. */
HOT void turn_drop(uint32_t turn)
{
	const struct cw_turn *spare = at(turns.spare);

	if (!turn || --((struct cw_turn *)at(turn))->refs || turn == turns.spare)
		return;
	if (spare && !spare->refs)
		records_free(turns.spare);
	turns.spare = turn;
}

bool turn_table_start(void)
{
	turns.free = turns.free_last = turns.n_records = turns.spare = 0;
	turns.record = turns.loop ? chunk_new(CW_CHUNK_TURNS, RECORDS * sizeof(*turns.record), 0) : NULL;
	return turns.record;
}

bool turns_records_start(bool on)
{
	memset(&turns, 0, sizeof(turns));
	turns.n_loops = 1;
	turns.loop = on ? chunk_new(CW_CHUNK_LOOPS, LOOPS_MAX * sizeof(*turns.loop), 0) : NULL;
	return turns.loop;
}
