/* SPDX-License-Identifier: Apache-2.0
 * Which turn of which Python loops a thread is in.
 *
 * Frames are seen only at events, and a loop whose body is one call never moves its own instruction. So each loop is
 * asked itself: a `for` loop keeps its iterator on the frame's stack (rec_python_loops.c knows where), and the position of a
 * list, a range, an enumerate() says which turn this is. The others (generators, `while`) have turned if their frame
 * went backwards within the loop, or stands where it stood and its variables have changed: only the frame itself
 * changes those. A frame that was in an inner loop and still is has turned the outer one if the inner one began anew, or if
 * variables have changed that only the outer one sets. A function that was called again although no loop around it says so is called by C code (map), and its
 * caller's line stands for the loop; also if C code has called another one meanwhile.
 *
 * Whatever is read belongs to frames that the walk has just confirmed, and is kept alive by them.
 */
#include "recorder/turns/rec_turns.h"

HOT_DATA static struct {
	bool on;
	uint32_t locals;		/* offset in a frame */
} hot_turns;

static const uint64_t nothing;

/* The address of a variable in a frame, or of nothing. */
static const uint64_t *variable(const char *frame, uint32_t i, bool exists)
{
	return exists ? (const uint64_t *)(const void *)(frame + hot_turns.locals) + i : &nothing;
}

static inline uint64_t state_of(const struct turn_level *l)
{
	uint64_t h = *l->var[0];

	return (h << 21 | h >> 43) ^ *l->var[1];
}

static inline const void *in_slot(const struct turn_level *l)
{
	return l->slot ? UNTAGGED(*l->slot) : NULL;
}

static bool level_read(const struct turn_level *l, uint32_t unit, struct reading *r)
{
	if (!iterator_read(in_slot(l), l->how, 0, r))
		return false;
	if (unit < py_loop[l->loop].body && iterator_counts_late(l->how)) {
		r->exact = r->turns == 0 || r->exact;
		r->base = r->turns == 0 ? 0 : r->base;
		r->turns++;
	}
	return true;
}

static __attribute__((noinline)) bool level_reads_same(const struct turn_level *l)
{
	struct reading r;

	return level_read(l, l->unit, &r) && r.turns - l->base == l->turn;
}

/* Its frame stands where it stood. */
static inline bool level_same(const struct turn_level *l)
{
	const void *it;

	if (l->slot) {
		it = in_slot(l);
		if (unlikely(it != l->iterator) || unlikely(load(it, PY_TYPE) != l->type))
			return false;
		if (likely(l->at))
			return load_number(it, l->at) == l->word;
		if (l->how)
			return level_reads_same(l);
	}
	return state_of(l) == l->state;
}

static bool is_generator(const char *frame)
{
	if (py.l.minor >= 11)
		return frame[py.l.owner] == PY_OWNER_GENERATOR;
	return load(frame, py.l.owner);
}

/* The slot of a loop is read through the kernel the first time. */
static bool slot_is_good(struct py_loop *p, const void *const *slot)
{
	const void *it, *type, *name;

	if (likely(p->checked))
		return true;
	p->checked = rec_read_memory(&it, slot, sizeof(it)) && UNTAGGED(it) &&
		     rec_read_memory(&type, UNTAGGED(it) + PY_TYPE, sizeof(type)) &&
		     rec_read_memory(&name, (const char *)type + PY_TYPE_NAME, sizeof(name));
	return p->checked;
}

static void level_refresh(struct turn_level *l, const struct reading *r)
{
	l->at = l->how ? r->at : 0;
	l->word = l->at ? r->word : 0;
	l->state = l->how ? 0 : state_of(l);
	l->record = 0;
}

/* The loop has just begun, as far as we know. */
static void level_begin(struct turn_level *l, uint32_t unit)
{
	struct reading r;

	l->flags &= LEVEL_OF_GENERATOR;
	l->turn = 1;
	l->iterator = in_slot(l);
	l->type = l->iterator ? load(l->iterator, PY_TYPE) : NULL;
	l->how = (uint8_t)(l->type ? iterator_reads(l->type) : READS_NOT);
	if (l->how && !level_read(l, unit, &r))
		l->how = READS_NOT;
	l->pace = iterator_pace(l->how);
	if (l->how) {
		l->flags |= LEVEL_READ | (r.exact ? LEVEL_EXACT : 0);
		l->base = r.base;
		l->turn = (uint32_t)(r.turns - r.base);
	}
	level_refresh(l, &r);
}

enum turned { TURN_SAME, TURN_NEXT, TURN_ANEW };

/* Its iterator is another one, or has gone back. */
static bool begins_anew(const struct turn_level *l, uint32_t unit)
{
	const void *it = in_slot(l);
	struct reading r;

	if (it != l->iterator || (it && load(it, PY_TYPE) != l->type))
		return true;
	return l->how && (!level_read(l, unit, &r) || r.turns - l->base < l->turn);
}

/* For a loop without an iterator that tells its turn. Exception handlers lie behind the code that they return to, so jumping back from
 * one to a place that the frame has not reached in this turn is not a new turn. `inner`: a loop of the same frame that it was in and
 * still is in. */
static enum turned level_moved(struct turn_level *l, uint32_t before, uint32_t unit, uint32_t cold,
			       const struct turn_level *inner)
{
	uint64_t state = l->state;
	bool back, same;

	l->state = state_of(l);
	if (inner) {
		l->warm = unit < cold ? unit : l->warm;
		if (l->state == state && !begins_anew(inner, unit))
			return TURN_SAME;
		goto turned;
	}
	if (unit >= cold && before < cold)
		return TURN_SAME;
	if (unit < cold && before >= cold) {
		back = unit <= l->warm;
		same = false;
	} else {
		back = unit < before;
		same = unit == before;
	}
	if (unit < cold || back)
		l->warm = unit < cold ? unit : 0;
	if (!back && !(same && l->state != state))
		return TURN_SAME;
turned:
	l->turn++;
	l->record = 0;
	return TURN_NEXT;
}

/* What has happened to a loop since the last event. Keeps its new state, unless the loop began anew. */
static enum turned level_look(struct turn_level *l, uint32_t unit, uint32_t cold, const struct turn_level *inner)
{
	const void *it = in_slot(l);
	uint32_t before = l->unit;
	struct reading r;
	int64_t turn;

	if (l->loop & CALLS)
		return TURN_SAME;
	if (it != l->iterator || (it && load(it, PY_TYPE) != l->type))
		return TURN_ANEW;
	l->unit = unit;
	if (!l->how)
		return level_moved(l, before, unit, cold, inner);
	if (!level_read(l, unit, &r))
		return TURN_ANEW;
	turn = r.turns - l->base;
	if (turn < l->turn)
		return TURN_ANEW;
	l->word = r.word;
	if (turn == l->turn)
		return TURN_SAME;
	level_refresh(l, &r);
	l->turn = (uint32_t)turn;
	return TURN_NEXT;
}

static uint32_t cold_of(const struct py_chain *c, uint32_t link)
{
	return loops_cold(LOOPS_NUMBER(c->kept[link].loops));
}

static void level_new(struct turn_level *l, const struct py_chain *c, uint32_t link, uint32_t loop)
{
	struct py_loop *p = &py_loop[loop];

	*l = (struct turn_level){.frame = c->link[link].frame, .unit = unit_of(c, link), .loop = loop, .link = (uint16_t)link,
				 .var = {variable(c->link[link].frame, p->var[0], p->n_vars > 0),
					 variable(c->link[link].frame, p->var[1], p->n_vars > 1)},
				 .flags = is_generator(c->link[link].frame) ? LEVEL_OF_GENERATOR : 0};
	if (p->slot >= 0) {
		l->slot = loops_stack(l->frame, LOOPS_NUMBER(c->kept[link].loops)) + p->slot;
		if (!slot_is_good(p, l->slot))
			p->slot = -1, l->slot = NULL;
	}
	l->warm = l->unit < cold_of(c, link) ? l->unit : 0;
	level_begin(l, l->unit);
}

/* The frame at `link` is a new call of the same function. Which loop called it? The innermost of the first n that may have turned
 * unseen; otherwise C code. Returns how many loops are still certain: all others begin anew. */
static uint32_t called_again(struct py_turns *t, const struct py_chain *c, uint32_t link, uint32_t n)
{
	struct turn_level *l;
	uint32_t caller = link - 1;

	if (n && t->level[n - 1].link == link && !(t->level[n - 1].flags & LEVEL_READ))
		goto turned;
	while (n && t->level[n - 1].link >= link)
		n--;
	if (n && !(t->level[n - 1].flags & LEVEL_READ))
		goto turned;
	while (caller && !c->kept[caller].id)
		caller--;
	if (!caller || n == TURN_LEVELS)
		return n;
	l = &t->level[n];
	*l = (struct turn_level){
		.frame = c->link[caller].frame, .var = {&nothing, &nothing}, .link = (uint16_t)caller, .turn = 1};
	l->loop = CALLS | loop_of_calls(c, caller);
	n++;
turned:
	l = &t->level[n - 1];
	l->turn++;
	l->record = 0;
	return n;
}

static struct turn_level *same_level(struct turn_level *old, uint32_t n, const char *frame, uint32_t loop)
{
	for (uint32_t i = 0; i < n; i++)
		if (old[i].frame == frame && old[i].loop == loop)
			return &old[i];
	return NULL;
}

struct change {
	struct py_turns *t;
	const struct py_chain *c;
	struct turn_level old[TURN_LEVELS];
	uint32_t n_old;
	uint32_t first;			/* link */
	bool fresh;			/* a loop around has turned: the rest is new */
};

static bool went_back(const struct py_chain *c, uint32_t first, uint32_t link)
{
	const struct py_was *was = &c->was;
	const struct py_link *now = &c->link[link];

	if (link == c->again)
		return true;
	if (link != first || was->id != c->kept[link].id || !was->id)
		return false;
	if (was->frame != now->frame)
		return !is_generator(now->frame);
	return now->instr < was->instr &&
	       code_unit(UNTAGGED(c->kept[link].code), was->instr) < cold_of(c, link);
}

/* Adds the loops that the frame at `link` is in, except the first `have`, which are there already. False: the function was called again,
 * so look again. */
static bool add_loops(struct change *x, uint32_t link, uint32_t have)
{
	uint32_t around[TURN_LEVELS], n = 0, unit = unit_of(x->c, link), loop, range[2];
	const char *frame = x->c->link[link].frame;
	bool generator = is_generator(frame), explained = x->fresh;
	struct py_turns *t = x->t;
	struct turn_level *l, *o;

	loop = loops_around(LOOPS_NUMBER(x->c->kept[link].loops), unit, range);
	for (; loop && n < TURN_LEVELS; loop = py_loop[loop].up)
		around[n++] = loop;
	for (n -= have < n ? have : n; n-- > 0 && t->n < TURN_LEVELS;) {
		enum turned how;
		const struct turn_level *inner = NULL;

		l = &t->level[t->n];
		o = !x->fresh || generator ? same_level(x->old, x->n_old, frame, around[n]) : NULL;
		if (!o && generator) {
			o = same_level(t->parked, 4, frame, around[n]);
			if (o)
				o->record = 0;
		}
		if (!o) {
			level_new(l, x->c, link, around[n]);
			t->n++;
			continue;
		}
		*l = *o;
		l->link = (uint16_t)link;
		if (n)
			inner = same_level(x->old, x->n_old, frame, around[n - 1]);
		how = level_look(l, unit, cold_of(x->c, link), inner);
		t->n++;
		explained |= how == TURN_NEXT || !(l->flags & LEVEL_READ);
		if (how == TURN_ANEW) {
			if (!explained && !generator) {
				t->n--;
				return false;
			}
			level_new(l, x->c, link, around[n]);
		}
		if (how != TURN_SAME)
			x->fresh = true;
		if (x->fresh)
			l->record = 0;
	}
	if (!explained && went_back(x->c, x->first, link))
		return false;
	if (t->n && t->level[t->n - 1].link == link) {
		t->level[t->n - 1].from = (uint16_t)range[0];
		t->level[t->n - 1].to = (uint16_t)range[1];
	}
	return true;
}

static void park(struct change *x)
{
	struct py_turns *t = x->t;

	for (uint32_t i = 0; i < x->n_old; i++) {
		struct turn_level *o = &x->old[i];
		struct turn_level *there;

		if (!(o->flags & LEVEL_OF_GENERATOR) || same_level(t->level, t->n, o->frame, o->loop))
			continue;
		there = same_level(t->parked, 4, o->frame, o->loop);
		*(there ? there : &t->parked[t->park++ % 4]) = *o;
	}
}

/* The stack is the same as at the last event. If the two innermost functions have other arguments now, they were called again: returns
 * the link of the outer one of those that were, 0 = none. The first time, there is nothing to compare with. */
static uint32_t called_with_others(struct py_turns *t, const struct py_chain *c)
{
	uint32_t link[2] = {c->n, c->n - 1}, called = 0;
	bool known = t->arg[0];

	while (link[0] && !c->kept[link[0]].id)
		link[1] = --link[0] - 1;
	while (link[0] && link[1] && !c->kept[link[1]].id)
		link[1]--;
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t of = link[0] ? link[i / 2] : 0;
		const uint64_t *arg = variable(c->link[of].frame, i % 2, of && i % 2 < LOOPS_LOCALS(c->kept[of].loops));

		if (known && *arg != t->arg_was[i])
			called = of;
		t->arg[i] = arg;
		t->arg_was[i] = *arg;
	}
	return called;
}

/* Looks at the loops whose frames have not moved. Returns how many are certain; the others must be found again. */
static uint32_t look_at_kept(struct change *x, uint32_t called)
{
	struct py_turns *t = x->t;
	const struct py_chain *c = x->c;
	const struct turn_level *last;
	uint32_t sure;

	for (sure = 0; sure < t->n && t->level[sure].link < x->first; sure++) {
		struct turn_level *l = &t->level[sure], *inner = sure + 1 < t->n ? l + 1 : NULL;

		if (inner && (inner->link != l->link || inner->loop & CALLS))
			inner = NULL;
		switch (level_look(l, unit_of(c, l->link), cold_of(c, l->link), inner)) {
		case TURN_SAME:
			continue;
		case TURN_NEXT:
			x->fresh = true;
			return sure + 1;
		case TURN_ANEW:
			x->fresh = true;
			return called_again(t, c, l->link, sure);
		}
	}
	/* No frame has moved, but a function's variables have changed: if a loop of its own had done that, it would have shown. */
	last = sure && called ? &t->level[sure - 1] : NULL;
	if (!called || sure != t->n || (last && last->link >= called && !(last->flags & LEVEL_READ)))
		return sure;
	x->fresh = true;
	return called_again(t, c, called, sure);
}

/* Finds the loops above those. False: a function was called again, and `sure` says how many loops are still certain. */
static bool find_others(struct change *x, uint32_t *sure)
{
	struct py_turns *t = x->t;
	const struct py_chain *c = x->c;
	uint32_t link = 1, have = 0;

	t->n = *sure;
	if (t->n) {
		link = t->level[t->n - 1].link;
		if (t->level[t->n - 1].loop & CALLS)
			link++;
		else
			while (have < t->n && t->level[t->n - 1 - have].link == link)
				have++;
	}
	for (; link <= c->n; link++, have = 0) {
		if (link > x->first)	/* the frame below has moved since: this one is a new call */
			x->fresh = true;
		if (c->kept[link].loops & LOOPS_ANY ? add_loops(x, link, have)
						    : x->fresh || !went_back(c, x->first, link))
			continue;
		*sure = called_again(t, c, link, t->n);
		return false;
	}
	return true;
}

static __attribute__((noinline)) void turns_change(struct py_turns *t, struct py_chain *c, uint32_t first, uint32_t called)
{
	struct change x;
	uint32_t sure;

	x.t = t;
	x.c = c;
	x.n_old = t->n;
	x.first = first;
	x.fresh = false;
	memcpy(x.old, t->level, t->n * sizeof(t->level[0]));
	sure = look_at_kept(&x, called);
	if (!find_others(&x, &sure)) {
		x.fresh = true;
		find_others(&x, &sure);
	}
	park(&x);
	for (sure = 0; sure < t->n && sure < x.n_old && t->level[sure].loop == x.old[sure].loop &&
		       t->level[sure].turn == x.old[sure].turn;
	     sure++)
		;
	turns_log(rec_self, sure);
}

/* The frame of a loop has moved forward within the loop: true if the loop has certainly not turned. */
static inline bool level_goes_on(struct turn_level *l, uint32_t unit)
{
	const void *it = in_slot(l);

	if (it != l->iterator || (it && load(it, PY_TYPE) != l->type))
		return false;
	if (l->how ? !l->at || load_number(it, l->at) != l->word || unit < py_loop[l->loop].body : unit <= l->unit)
		return false;
	l->unit = l->warm = unit;
	if (!l->how)
		l->state = state_of(l);
	return true;
}

/* The usual case: the innermost loop's iterator says that its next turn has begun, and nothing else has changed. False: everything must
 * be looked at. */
static inline bool level_steps(struct turn_level *l, uint32_t unit)
{
	const void *it = in_slot(l);
	int64_t word, turn;

	if (!l->pace || it != l->iterator || load(it, PY_TYPE) != l->type || unit < py_loop[l->loop].body)
		return false;
	word = load_number(it, l->at);
	turn = l->pace * word - l->base;
	if (turn <= l->turn)
		return false;
	l->word = word;
	l->turn = (uint32_t)turn;
	l->unit = unit;
	l->record = 0;
	return true;
}

/* The frame at link `first` has moved, and those above it are new calls. Was that without any loop turning, or did only the innermost
 * turn? TURN_ANEW: that cannot be told so easily. k: the first loop of that frame. */
static inline enum turned still_in(struct py_turns *t, const struct py_chain *c, uint32_t first, uint32_t k)
{
	struct turn_level *last = &t->level[t->n - 1];
	uint32_t unit;
	bool explained = false;

	for (uint32_t link = first + (k < t->n); link <= c->n; link++)
		if (unlikely(c->kept[link].loops & LOOPS_ANY) &&
		    loops_around(LOOPS_NUMBER(c->kept[link].loops), unit_of(c, link), NULL))
			return TURN_ANEW;
	if (k < t->n) {
		if (t->level[k].link != first || last->link != first || last->frame != c->link[first].frame ||
		    last->loop & CALLS)
			return TURN_ANEW;
		unit = unit_of(c, first);
		if (unit < last->from || unit >= last->to || unit >= cold_of(c, first) || last->unit >= cold_of(c, first))
			return TURN_ANEW;
		for (; k < t->n; k++) {
			if (!level_goes_on(&t->level[k], unit))
				return &t->level[k] == last && level_steps(last, unit) ? TURN_NEXT : TURN_ANEW;
			explained |= !t->level[k].how;
		}
	}
	return explained || !went_back(c, first, first) ? TURN_SAME : TURN_ANEW;
}

/* Keeps the arguments for the next event to compare with. After a change they are unknown, unless the innermost functions are the same. */
static inline void keep_args(struct py_turns *t, const struct py_chain *c, uint32_t first)
{
	if (!t->arg[0] || t->links != c->n || first < c->n || (first == c->n && c->was.frame != c->link[first].frame)) {
		t->arg[0] = NULL;
		return;
	}
	for (uint32_t i = 0; i < 4; i++)
		t->arg_was[i] = *t->arg[i];
}

/* C code may call several functions in turn, as map() does over a generator: one replaces the other while the caller does not move. When
 * the first of them comes back, the next turn begins. */
static inline uint32_t called_in_turn(struct py_chain *c, uint32_t link)
{
	uint32_t caller = link - 1;
	uint64_t id;

	if (link > c->n || is_generator(c->link[link].frame))
		return 0;
	while (caller && !c->kept[caller].id)
		caller--;
	id = c->kept[link].id;
	if (!caller || !c->kept[caller].called) {
		c->kept[caller].called = caller ? id : 0;
		return 0;
	}
	return c->kept[caller].called == id && c->was.id && c->was.id != id ? link : 0;
}

static __attribute__((noinline)) HOT void turns_moved(struct py_turns *t, struct py_chain *c)
{
	uint32_t first = c->first, k = 0, called = 0;
	enum turned how = TURN_ANEW;

	while (first <= c->n && !c->kept[first].id)	/* C code has called anew: what it called counts */
		first++;
	c->again = called_in_turn(c, first);
	while (k < t->n && t->level[k].link < first && level_same(&t->level[k]))
		k++;
	if (first > c->n && t->links == c->n && k == t->n) {
		called = called_with_others(t, c);
		if (!called)
			return;
	} else if (first > c->n && t->links == c->n && k + 1 == t->n) {
		how = level_steps(&t->level[k], t->level[k].unit) ? TURN_NEXT : TURN_ANEW;
	} else if ((k == t->n || t->level[k].link >= first) && first <= c->n) {
		how = still_in(t, c, first, k);
	}
	if (how == TURN_ANEW)
		turns_change(t, c, first, called);
	else if (how == TURN_NEXT)
		turns_log_step(rec_self);
	if (unlikely(!t->n && rec_self->turn_logged))	/* also of a thread that has ended */
		turns_log(rec_self, 0);
	if (!called)
		keep_args(t, c, first);
	c->first = c->n + 1;
	t->links = c->n;
}

HOT void turns_seen(struct py_chain *c)
{
	struct py_turns *t = &rec_self->turns;
	uint32_t k = 0;

	if (unlikely(!hot_turns.on))
		return;
	if (likely(c->first > c->n && t->links == c->n && t->arg[0])) {
		while (k < t->n && level_same(&t->level[k]))
			k++;
		if (likely(k == t->n && *t->arg[0] == t->arg_was[0] && *t->arg[1] == t->arg_was[1] &&
			   *t->arg[2] == t->arg_was[2] && *t->arg[3] == t->arg_was[3]))
			return;
	}
	turns_moved(t, c);
}

/* If CPython reports other offsets than we know, it is another build, and its bytecode may differ, too. */
void turns_start(void)
{
	const struct py_layout *known = layout_of(py.l.minor);
	void *f = elf_symbol_anywhere("PyGILState_GetThisThreadState");
	struct elf_object o;

	hot_turns.on = py.on && known && memcmp(known, &py.l, sizeof(*known)) == 0 && f && elf_object_at(f, &o);
	loops_start(hot_turns.on);
	hot_turns.locals = loops_locals();
	if (hot_turns.on)
		iterators_start(&o);
	hot_turns.on = turns_records_start(hot_turns.on);
}
