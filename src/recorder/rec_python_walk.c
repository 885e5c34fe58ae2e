/* SPDX-License-Identifier: Apache-2.0
 * Walks the calling thread's Python frames: the first time with every check, after that as cheaply as possible.
 *
 * Two stacks in a row usually agree from the root up to somewhere near the top. So each thread keeps the frames of its
 * last walk, root first, each with the hash of everything up to it. A new walk goes from the top toward the root until
 * it reaches a kept frame. From there on it still reads every frame and compares it with the last walk, but computes
 * nothing and stalls on nothing: the address of the next frame is already known, and is read only after its neighbor
 * has confirmed it.
 */
#include <string.h>

#include "rec_python.h"

static const struct py_layout layouts[] = {
#define LAYOUT(number, ...) {number, __VA_ARGS__},
#include "kb/python_layouts.def"
};

const struct py_layout *layout_of(unsigned minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (layouts[i].minor == minor)
			return &layouts[i];
	return NULL;
}

static inline __attribute__((always_inline)) bool get(bool careful, void *to, const void *from, size_t n)
{
	if (careful)
		return rec_read_memory(to, from, n);
	memcpy(to, from, n);
	return true;
}

#define GET(var, base, offset)                                                     \
	do {                                                                       \
		if (!get(careful, &(var), (const char *)(base) + (offset), sizeof(var))) \
			return -1;                                                 \
	} while (0)

static inline __attribute__((always_inline)) int walk(const struct py_layout *l, bool careful, const void *tstate,
						      struct raw_frame *out)
{
	const char *frame, *code, *type;
	uint64_t instr = 0;
	int n = 0;

	GET(frame, tstate, l->first_frame);
	if (l->via_cframe && frame)
		GET(frame, frame, l->cframe_frame);
	for (int guard = 0; frame && guard < 4 * CW_MAX_FRAMES; guard++) {
		uint8_t owner = 0;

		if (l->shim_owner != 255)
			GET(owner, frame, l->owner);
		if (owner >= l->shim_owner)
			goto next;
		GET(code, frame, l->code);
		code = UNTAGGED(code);
		if (!code)
			goto next;
		if (l->check_type) {
			GET(type, code, 8);
			if (type != py.f.code_type)
				goto next;
		}
		if (n == CW_MAX_FRAMES)
			return n | WALK_CUT;
		if (l->instr_kind == INSTR_POINTER) {
			GET(instr, frame, l->instr);
		} else {
			int32_t lasti;

			GET(lasti, frame, l->instr);
			instr = (uint32_t)lasti;
		}
		out[n].code = code;
		out[n].frame = frame;
		out[n].instr = instr;
		n++;
next:
		GET(frame, frame, l->previous);
	}
	return n;
}

int walk_carefully(const void *tstate, struct raw_frame *out)
{
	return walk(&py.l, true, tstate, out);
}

int walk_all(const void *tstate, struct raw_frame *out)
{
	return walk(&py.l, false, tstate, out);
}

static inline __attribute__((always_inline)) uint64_t fold(const struct py_layout *l, uint64_t h, uint64_t id,
							   const char *code, uint64_t instr)
{
	if (l->instr_kind == INSTR_POINTER)	/* the same code may be at another address next time */
		instr -= (uintptr_t)code;
	h = ((h << 5 | h >> 59) ^ id ^ instr * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

uint64_t walk_hash(const struct raw_frame *raw, int n, bool watched)
{
	uint64_t h = n & WALK_CUT ? 0x51ed270b9f3a7c15ull : 0;

	for (int i = WALK_FRAMES(n) - 1; i >= 0; i--)
		h = fold(&py.l, h, code_id(raw[i].code, watched), raw[i].code, raw[i].instr);
	return h;
}

#define INLINE static inline __attribute__((always_inline))

INLINE const char *load(const char *from, uint16_t offset)
{
	const char *v;

	memcpy(&v, from + offset, sizeof(v));
	return v;
}

INLINE uint64_t load_instr(const struct py_layout *l, const char *frame)
{
	uint32_t lasti;

	if (l->instr_kind == INSTR_POINTER)
		return (uintptr_t)load(frame, l->instr);
	memcpy(&lasti, frame + l->instr, sizeof(lasti));
	return lasti;
}

INLINE bool is_shim(const struct py_layout *l, const char *frame)
{
	return l->shim_owner != 255 && *(const uint8_t *)(frame + l->owner) >= l->shim_owner;
}

INLINE bool same_code(const struct py_layout *l, const struct py_chain *c, uint32_t i, bool watched)
{
	const struct py_kept *k = &c->kept[i];
	const char *frame = c->link[i].frame;

	if (!k->id)
		return is_shim(l, frame);
	return !is_shim(l, frame) && code_id(UNTAGGED(k->code), watched) == k->id;
}

/* The frame of link i is where it was. Returns the first link from there to the root that has changed; 0 = none.
 * No address is dereferenced before the frame above has confirmed it. An instruction pointer points into its code
 * object, so comparing it covers the code as well, unless `look`: code objects may have been destroyed meanwhile, and
 * then an address proves nothing. Frames that are not Python code (shims) have instructions that live forever. */
INLINE uint32_t first_other(const struct py_layout *l, const struct py_chain *c, uint32_t i, bool look, bool watched)
{
	for (; i; i--) {
		const struct py_link *k = &c->link[i];
		uint64_t other = load_instr(l, k->frame) ^ k->instr;

		other |= (uintptr_t)load(k->frame, l->previous) ^ (uintptr_t)k[-1].frame;
		if (look || l->instr_kind != INSTR_POINTER)
			other |= (uintptr_t)load(k->frame, l->code) ^ (uintptr_t)c->kept[i].code;
		if (unlikely(other))
			return i;
		if (look && !same_code(l, c, i, watched))
			return i;
	}
	return 0;
}

/* The link of a frame, searching from link i toward the root. Since 3.11 most frames are on a stack that grows upward,
 * so a frame above a kept one in memory is not below it in the chain; a frame that we miss is merely read again. */
INLINE uint32_t find(const struct py_layout *l, const struct py_chain *c, uint32_t i, const char *frame)
{
	for (; i; i--) {
		if (c->link[i].frame == frame)
			return i;
		if (l->minor >= 11 && (uintptr_t)c->link[i].frame - c->base < (uintptr_t)frame - c->base)
			return 0;
	}
	return 0;
}

/* Reads a frame into link `to`. i: the link of the same frame, whose code object is still the same if its address is,
 * or 0. False: the frame runs something other than code, which cannot be kept. */
INLINE bool read_link(const struct py_layout *l, struct py_chain *c, uint32_t to, const char *frame, uint32_t i,
		      bool watched)
{
	struct py_kept *k = &c->kept[to];
	const char *code = load(frame, l->code);

	c->link[to].frame = frame;
	c->link[to].instr = load_instr(l, frame);
	k->code = code;
	k->called = 0;
	if (is_shim(l, frame)) {
		k->id = k->loops = 0;
		return true;
	}
	if (i && c->kept[i].code == code && c->kept[i].id) {
		k->id = c->kept[i].id;
		k->loops = c->kept[i].loops;
		return true;
	}
	code = UNTAGGED(code);
	if (!code || (l->check_type && load(code, PY_TYPE) != py.f.code_type))
		return false;
	k->id = code_id_and_loops(code, watched, &k->loops);
	return true;
}

/* Links from i on are about to go. Above those that are not Python code is the function that C code has called; if it returned
 * before, it is still what was there. */
INLINE void keep_was(struct py_chain *c, uint32_t i)
{
	if (i > c->n)
		c->was = (struct py_was){0};
	while (i <= c->n && !c->kept[i].id)
		i++;
	if (i <= c->n)
		c->was = (struct py_was){c->link[i].frame, c->link[i].instr, c->kept[i].id};
}

/* Moves links `from` to the last to follow link n. */
INLINE void put_on(const struct py_layout *l, struct py_chain *c, uint32_t n, uint32_t from)
{
	uint32_t python = c->kept[n].python;
	uint64_t h = c->kept[n].h;

	if (n + 1 < c->first) {
		c->first = n + 1;
		keep_was(c, n + 1);
	}
	for (; from <= CHAIN_MAX; from++) {
		struct py_kept *k = &c->kept[++n];

		c->link[n] = c->link[from];
		k->code = c->kept[from].code;
		k->id = c->kept[from].id;
		k->loops = c->kept[from].loops;
		k->called = c->kept[from].called;
		k->method = k->id && k->loops != LOOPS_LATER && k->loops & LOOPS_METHOD ? n : k[-1].method;
		if (k->id) {
			h = fold(l, h, k->id, UNTAGGED(k->code), c->link[n].instr);
			if (!python++)
				c->base = (uintptr_t)c->link[n].frame;
		}
		k->h = h;
		k->python = python;
	}
	c->n = n;
	c->off = 0;
	c->version++;
}

/* Writes new links from the end downward until a kept link is reached. False: no room, or not code. */
INLINE bool walk_new(const struct py_layout *l, struct py_chain *c, const char *frame, bool known, bool watched)
{
	uint32_t to = CHAIN_MAX + 1, i = c->n, found, other;

	for (; frame; frame = load(frame, l->previous)) {
		found = find(l, c, i, frame);
		if (found) {
			other = known ? first_other(l, c, found, false, watched)
				      : first_other(l, c, found, true, watched);
			if (!other)
				break;
			/* those above the first changed one are the same, but what is below them is not */
			if (to - (found - other) <= c->n + 1)
				return false;
			for (i = found; i > other; i--) {
				c->link[--to] = c->link[i];
				c->kept[to] = c->kept[i];
			}
			frame = c->link[other].frame;
		}
		if (to <= c->n + 1 || !read_link(l, c, --to, frame, found && known ? i : 0, watched))
			return false;
		i -= found && i;
	}
	put_on(l, c, frame ? found : 0, to);
	return true;
}

/* The case where every frame is the same and no code object was destroyed, but the innermost function may have moved to
 * another line. */
INLINE enum walked walk_again(const struct py_layout *l, const void *tstate, struct py_chain *c)
{
	const char *frame = load(tstate, l->first_frame);
	struct py_link *top = &c->link[c->n];
	struct py_kept *kept = &c->kept[c->n];
	const struct py_top *been;
	uint64_t other, instr;

	if (l->via_cframe && frame)
		frame = load(frame, l->cframe_frame);
	if (!frame || frame != top->frame || atomic_load_explicit(&code_watch.gone, memory_order_acquire) != c->gone)
		return WALKED_NOT;
	instr = load_instr(l, frame);
	other = (uintptr_t)load(frame, l->code) ^ (uintptr_t)kept->code;
	other |= (uintptr_t)load(frame, l->previous) ^ (uintptr_t)top[-1].frame;
	if (unlikely(other) || unlikely(first_other(l, c, c->n - 1, false, true)))
		return WALKED_NOT;
	if (likely(instr == top->instr))
		return WALKED_SAME;
	if (unlikely(!kept->id))
		return WALKED_NOT;
	if (likely(c->n < c->first)) {
		c->first = c->n;
		c->was = (struct py_was){top->frame, top->instr, kept->id};
	}
	top->instr = instr;
	kept->called = 0;
	been = chain_top(c, instr);
	if (likely(been->instr == instr && been->version == c->version)) {
		kept->h = been->h;
		c->off = been->off;
		return WALKED_SAME;
	}
	kept->h = fold(l, kept[-1].h, kept->id, UNTAGGED(kept->code), instr);
	c->off = 0;
	return WALKED_KEPT;
}

INLINE enum walked walk_other(const struct py_layout *l, const void *tstate, struct py_chain *c, bool watched)
{
	uint32_t gone = atomic_load_explicit(&code_watch.gone, memory_order_acquire);
	bool known = watched && gone == c->gone;
	const char *frame = load(tstate, l->first_frame);

	if (l->via_cframe && frame)
		frame = load(frame, l->cframe_frame);
	if (!frame)
		return WALKED_NONE;
	if (!walk_new(l, c, frame, known, watched)) {
		c->n = 0;
		if (!walk_new(l, c, frame, false, watched)) {
			c->n = c->off = 0;
			return WALKED_NOT;
		}
	}
	c->gone = watched ? gone : gone - 1;	/* never equal to `gone`: code must be checked each time */
	return WALKED_KEPT;
}

/* The walks that every launch pays for: one pair per version with its offsets built in, and one for any layout. */
static enum walked again_any(const void *tstate, struct py_chain *c)
{
	return walk_again(&py.l, tstate, c);
}

static enum walked other_any(const void *tstate, struct py_chain *c, bool watched)
{
	return walk_other(&py.l, tstate, c, watched);
}

#define LAYOUT(number, ...)                                                                             \
	static const struct py_layout layout_3_##number = {number, __VA_ARGS__}; \
\
	HOT static enum walked again_3_##number(const void *tstate, struct py_chain *c)                \
	{                                                                                          \
		return walk_again(&layout_3_##number, tstate, c);                                  \
	}                                                                                          \
\
	HOT static enum walked other_3_##number(const void *tstate, struct py_chain *c, bool watched)  \
	{                                                                                          \
		return walk_other(&layout_3_##number, tstate, c, watched);                         \
	}
#include "kb/python_layouts.def"

struct kept_walk kept_walk_for(const struct py_layout *l)
{
#define LAYOUT(number, ...)                                                                             \
	if (memcmp(l, &layout_3_##number, sizeof(*l)) == 0)                                        \
		return (struct kept_walk){again_3_##number, other_3_##number};
#include "kb/python_layouts.def"
	return (struct kept_walk){again_any, other_any}; /* the interpreter reported other offsets */
}
