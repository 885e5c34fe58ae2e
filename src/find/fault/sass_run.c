/* SPDX-License-Identifier: Apache-2.0
 * Runs a thread to an instruction (see sass_run.h): where control goes. sass_exec.c executes everything else.
 *
 * Where a condition is not known, both ways are tried, as long as there are few. If all ways that lead to the instruction agree on
 * which bytes were checked, then these were, whatever their value is. A way that cannot be followed might disagree: then
 * nothing is known.
 */
#include "find/fault/sass_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/image.h"
#include "find/fault/sass_exec.h"
#include "find/fault/sass_word.h"

#define WAYS_MAX     48	 /* tried in all */
#define STACK_TOP    0x00fff000u /* any value: only differences matter */

struct ways {
	struct cell_run run;
	struct cell_state *open[WAYS_MAX];
	size_t n_open, n_all;
	uint64_t pc; /* where to */
	bool access;
	bool arrived, differ;
	bool forked; /* a condition was not known */
	unsigned steps; /* left */
	struct sass_found *found;
	const uint8_t *code;	/* of the kernel itself, which most of it runs in */
	uint64_t code_at, code_len;
	sass_access_fn *visit;	/* NULL: execute up to an instruction; else to the end, reporting each access here */
	void *arg;
};

/* Looking an address up in a module takes long: some have thousands of functions. */
static const uint8_t *fetch(const struct ways *ways, uint64_t pc)
{
	if (pc >= ways->code_at && pc - ways->code_at < ways->code_len &&
	    ways->code_len - (pc - ways->code_at) >= SASS_BYTES)
		return ways->code + (pc - ways->code_at);
	return image_code(ways->run.t->image, pc, SASS_BYTES);
}

enum next { NEXT, JUMPED, LEFT, LOST, BOTH };

/* Both predicates of a branch; a third one is uniform. */
static struct cell condition_of(const struct cell_state *s, const struct word *w)
{
	struct cell g = cell_predicate(s, false, (unsigned)bits(w, 12, 4)), c, u, all;
	uint32_t op = (uint32_t)bits(w, 0, 12);

	c = op == OPCODE(OP_BRA, 4) || op == OPCODE(OP_EXIT, 4) || op == OPCODE(OP_BRA, 2)
		    ? cell_predicate(s, false, (unsigned)bits(w, 87, 4))
		    : cell_number(1);
	u = op == OPCODE(OP_BRA, 2) ? cell_predicate(s, true, (unsigned)bits(w, 24, 4)) : cell_number(1);
	/* the constant true adds nothing */
	all = cell_merge(cell_merge(g, c), u);
	all.v = g.v && c.v && u.v;
	return all;
}

static bool is_constant(const struct word *w)
{
	uint32_t op = (uint32_t)bits(w, 0, 12);

	return bits(w, 12, 4) == 7 &&
	       (op == OPCODE(OP_BRA, 2) ? false
					: (op != OPCODE(OP_BRA, 4) && op != OPCODE(OP_EXIT, 4)) || bits(w, 87, 4) == 7);
}

/* RET goes to a place that a register names, from where its branch would go. */
static enum next run_return(const struct ways *ways, struct cell_state *s, const uint8_t *code, const struct word *w)
{
	struct word branch = *w;
	uint8_t as_branch[SASS_BYTES];
	int reg = reg_at(w, 24);
	uint64_t target;

	(void)code;
	if (reg < 0 || reg + 1 >= CELL_REGS || !s->r[reg].known || !s->r[reg + 1].known)
		return LOST;
	/* as an unconditional branch, which has the same place */
	branch.lo = (branch.lo & ~0xfffull) | OPCODE(OP_BRA, 4);
	branch.lo = htole64(branch.lo);
	branch.hi = htole64(branch.hi);
	memcpy(as_branch, &branch, sizeof(as_branch));
	sass_step(as_branch, ways->run.t->arch, s->pc, &target);
	s->pc = target + ((uint64_t)s->r[reg + 1].v << 32 | s->r[reg].v);
	return JUMPED;
}

/* What a branch does when it is taken. */
static enum next taken(const struct ways *ways, struct cell_state *s, const uint8_t *code, const struct word *w)
{
	uint64_t target;

	switch (bits(w, 0, 12)) {
	case OPCODE(OP_BRA, 4):
	case OPCODE(OP_BRA, 2):
	case OPCODE(OP_CALL_NEAR, 4): /* CALL of a function of the kernel's own: the return address is in a register already */
		sass_step(code, ways->run.t->arch, s->pc, &target);
		s->pc = target;
		return target ? JUMPED : LOST;
	case OPCODE(OP_EXIT, 4):
		return LEFT;
	case OPCODE(OP_RET, 4):
		return run_return(ways, s, code, w);
	default:
		return LOST;
	}
}

/* Instructions that only concern how the threads of a warp meet. */
static bool is_meeting(uint32_t op, const struct word *w)
{
	switch (op) {
	case OPCODE(OP_BSSY, 4):
	case OPCODE(OP_BSYNC, 4):
	case OPCODE(OP_BREAK, 4):
	case OPCODE(OP_YIELD, 4):
	case OPCODE(OP_WARPSYNC, 4):
	case OPCODE(OP_BMOV_TO, 4):
	case OPCODE(OP_BMOV_FROM, 1):
	case OPCODE(OP_BMOV_FROM, 7):
		return true;
	case OPCODE(OP_WARPSYNC, 1):
		return !bits(w, 86, 1);
	default:
		return false;
	}
}

static enum next run_control(struct ways *ways, struct cell_state *s, const uint8_t *code, const struct word *w)
{
	uint32_t op = (uint32_t)bits(w, 0, 12);
	struct cell condition;
	uint64_t target;

	if (is_meeting(op, w)) {
		/* a barrier's state may be moved into a register */
		if (op == OPCODE(OP_BMOV_FROM, 1) && reg_at(w, 16) >= 0)
			s->r[reg_at(w, 16)] = cell_unknown();
		return NEXT;
	}
	if (op == OPCODE(OP_LEPC, 1) || op == OPCODE(OP_LEPC, 4)) { /* LEPC: where the call returns to */
		if (reg_at(w, 16) >= 0 && reg_at(w, 16) + 1 < CELL_REGS)
			s->r[reg_at(w, 16)] = s->r[reg_at(w, 16) + 1] = cell_unknown();
		return NEXT;
	}
	if (sass_step(code, ways->run.t->arch, s->pc, &target) == SASS_STEP_ANYWHERE)
		return LOST;
	if (is_constant(w))
		return taken(ways, s, code, w);
	condition = condition_of(s, w);
	if (!condition.known) {
		s->decided = condition;
		return BOTH;
	}
	/* loops count with constants of the launch; what was read from memory is of interest */
	s->decided = condition;
	return condition.v ? taken(ways, s, code, w) : NEXT;
}

static bool push(struct ways *ways, const struct cell_state *s)
{
	struct cell_state *copy;

	if (ways->n_all >= WAYS_MAX)
		return false;
	copy = xcalloc(1, sizeof(*copy));
	*copy = *s;
	ways->open[ways->n_open++] = copy;
	ways->n_all++;
	return true;
}

/* Reports an access whose guard holds, or may hold. */
static void visit(const struct ways *ways, const struct cell_state *s, const uint8_t *code, bool sure)
{
	struct sass_access a = {.pc = s->pc};
	struct cell at;

	if (!sass_decode(code, ways->run.t->arch, &a.insn) ||
	    (a.insn.space != SASS_GLOBAL && a.insn.space != SASS_GENERIC))
		return;
	at = cell_address(s, &a.insn, &a.address);
	a.known = at.known;
	a.base = at.known ? cell_base_value(&ways->run, at.base) : 0;
	a.sure = sure && !ways->forked && !ways->run.loaded;
	ways->visit(ways->arg, &a);
}

static enum next step(struct ways *ways, struct cell_state *s)
{
	const uint8_t *code = fetch(ways, s->pc);
	struct word w;
	enum next next = NEXT;
	struct cell guard;
	struct cell_state other;

	if (!code)
		return LOST;
	w = word_of(code);
	if (is_control(&w)) {
		next = run_control(ways, s, code, &w);
		if (next == BOTH) {
			ways->forked = true;
			other = *s;
			next = taken(ways, &other, code, &w);
			if (next == LOST || (next == JUMPED && !push(ways, &other)))
				return LOST;
			next = NEXT;
		}
	} else {
		guard = cell_guard(s, code);
		if (ways->visit && (!guard.known || guard.v))
			visit(ways, s, code, guard.known);
		if (!cell_step(&ways->run, s, code))
			return LOST;
	}
	if (next == NEXT)
		s->pc += SASS_BYTES;
	return next == JUMPED ? NEXT : next;
}

static struct sass_bytes bytes_of(const struct cell_run *run, const struct cell *c)
{
	return (struct sass_bytes){.at = c->n == SASS_SEVERAL ? 0 : c->at,
				   .n = c->n,
				   .base = c->n && c->n != SASS_SEVERAL ? cell_base_value(run, c->at_base) : 0};
}

#define STACK_REG    1	/* where the stack begins is not known: it has any value */
#define STRAIGHT_MAX 64 /* instructions between the access and where a thread stopped */

/* What the thread has computed against its registers in the dump. From here to where it stopped it must have gone straight on. */
static void compare_registers(struct ways *ways, const struct cell_state *s)
{
	const struct sass_thread *t = ways->run.t;
	struct cell_state *then;
	const uint8_t *code;
	struct word w;
	uint64_t pc;
	uint32_t v;

	if (!t->regs.data || t->stopped < s->pc || (t->stopped - s->pc) / SASS_BYTES > STRAIGHT_MAX)
		return;
	then = xcalloc(1, sizeof(*then));
	*then = *s;
	for (pc = s->pc; pc < t->stopped; pc += SASS_BYTES) {
		code = fetch(ways, pc);
		if (!code)
			break;
		w = word_of(code);
		if (is_control(&w) || !cell_forget(&ways->run, then, code))
			break;
	}
	for (unsigned i = 0; pc >= t->stopped && i < CELL_REGS - 1; i++) {
		if (i == STACK_REG || !then->r[i].known || !dump_word(t->regs, i, &v))
			continue;
		ways->found->agree += v == then->r[i].v;
		ways->found->differ += v != then->r[i].v;
	}
	free(then);
}

static void arrive(struct ways *ways, const struct cell_state *s)
{
	const uint8_t *code = fetch(ways, s->pc);
	const struct sass_compare *c = cell_compare(&ways->run, s->decided.compare);
	struct cell behind = s->decided;
	struct sass_bytes from;
	uint64_t address = 0;
	struct sass a;
	int pointer = -1;

	if (ways->access) {
		behind = sass_decode(code, ways->run.t->arch, &a) ? cell_address(s, &a, &address) : cell_unknown();
		pointer = cell_base_value(&ways->run, behind.base) ? (behind.base - 1) * 8 : -1;
	}
	if (ways->access)
		compare_registers(ways, s);
	from = bytes_of(&ways->run, &behind);
	if (ways->arrived && (pointer != ways->found->pointer || address != ways->found->address))
		behind.known = false;
	ways->found->pointer = ways->arrived && pointer != ways->found->pointer ? -1 : pointer;
	ways->found->address_known = ways->access && behind.known;
	ways->found->address = address;
	if (ways->arrived && (from.at != ways->found->from.at || from.n != ways->found->from.n))
		ways->differ = true;
	ways->found->from = from;
	ways->arrived = true;
	ways->found->compared = c && !ways->access;
	if (c)
		ways->found->compare = *c;
}

/* A guard may skip the instruction; then the thread did not fail there. A guard that is not known held. */
static bool executes(const struct ways *ways, struct cell_state *s)
{
	const uint8_t *code = fetch(ways, s->pc);
	struct word w;
	struct cell guard;

	if (!code)
		return true;
	w = word_of(code);
	guard = cell_guard(s, code);
	if (bits(&w, 12, 4) != SASS_PT && (!guard.known || guard.v))
		s->decided = guard;
	return !guard.known || guard.v;
}

/* Executes along one of the ways until it ends. */
static enum sass_end follow(struct ways *ways, struct cell_state *s)
{
	uint64_t pc;

	while (ways->steps > 0) {
		ways->steps--;
		if (!ways->visit && s->pc == ways->pc && executes(ways, s)) {
			arrive(ways, s);
			return SASS_END_THERE;
		}
		pc = s->pc;
		switch (step(ways, s)) {
		case LEFT:
			return SASS_END_LEFT;
		case LOST:
			ways->found->lost_at = pc;
			return SASS_END_LOST;
		default:
			break;
		}
	}
	return SASS_END_LONG;
}

static void start(struct ways *ways, struct cell_state *s)
{
	size_t i;

	for (i = 0; i < CELL_REGS; i++)
		s->r[i] = s->u[i] = cell_unknown();
	for (i = 0; i < CELL_PREDS; i++)
		s->p[i] = s->up[i] = cell_unknown();
	s->p[SASS_PT] = s->up[SASS_PT] = cell_number(1);
	s->pc = ways->run.t->entry;
}

static enum sass_end follow_all(struct ways *ways)
{
	struct cell_state *s;
	enum sass_end end = SASS_END_LEFT, one;

	while (ways->n_open) {
		s = ways->open[--ways->n_open];
		one = follow(ways, s);
		free(s);
		if (one == SASS_END_LOST || one == SASS_END_LONG) {
			/* this way might have led there, too */
			end = one;
			break;
		}
	}
	while (ways->n_open)
		free(ways->open[--ways->n_open]);
	if (end != SASS_END_LEFT)
		return end == SASS_END_LOST && ways->n_all > 1 && ways->run.missing ? SASS_END_MISSING : end;
	return ways->differ ? SASS_END_MISSING : ways->arrived ? SASS_END_THERE : SASS_END_LEFT;
}

static bool can_run(unsigned arch)
{
	return arch >= SASS_ARCH_MIN && arch <= SASS_RUN_ARCH_MAX;
}

static void open_code(struct ways *ways, const struct sass_thread *t)
{
	struct image_function kernel;

	ways->run.t = t;
	ways->run.stack = cell_number(STACK_TOP);
	if (image_entry(t->image, t->entry, &kernel) &&
	    (ways->code = image_code(t->image, kernel.start, kernel.size)) != NULL) {
		ways->code_at = kernel.start;
		ways->code_len = kernel.size;
	}
	image_section(t->image, ".nv.constant4", &ways->run.bank4);
}

static enum sass_end run_thread(struct ways *ways, unsigned steps, struct sass_found *f)
{
	struct cell_state *s = xcalloc(1, sizeof(*s));
	enum sass_end end;

	*f = (struct sass_found){.pointer = -1};
	ways->found = f;
	ways->steps = steps;
	ways->n_open = ways->n_all = 0;
	ways->forked = false;
	start(ways, s);
	push(ways, s);
	free(s);
	end = follow_all(ways);
	f->missing = ways->run.missing;
	f->steps = steps - ways->steps;
	return end;
}

enum sass_end sass_run(const struct sass_thread *t, uint64_t pc, bool access, unsigned steps, struct sass_found *f)
{
	struct ways *ways;
	enum sass_end end;

	*f = (struct sass_found){.pointer = -1};
	if (!can_run(t->arch))
		return SASS_END_LOST;
	ways = xcalloc(1, sizeof(*ways));
	ways->pc = pc;
	ways->access = access;
	open_code(ways, t);
	end = run_thread(ways, steps, f);
	free(ways);
	return end;
}

/* No branch leads back over it, and nothing calls what it is in. */
bool sass_once(struct bytes image, unsigned arch, uint64_t entry, uint64_t pc)
{
	struct image_function kernel;
	const uint8_t *code;
	uint64_t target;

	if (!image_entry(image, entry, &kernel) || pc < kernel.start || pc - kernel.start >= kernel.size ||
	    !(code = image_code(image, kernel.start, kernel.size)))
		return false;
	for (uint64_t at = 0; at + SASS_BYTES <= kernel.size; at += SASS_BYTES) {
		bool behind = kernel.start + at >= pc;

		switch (sass_step(code + at, arch, kernel.start + at, &target)) {
		case SASS_STEP_ANYWHERE:
			if (behind)
				return false;
			break;
		case SASS_STEP_CALL:
			behind = true;
			/* fall through */
		default:
			if (behind && target && target <= pc)
				return false;
		}
	}
	return true;
}

struct sass_runner {
	struct sass_thread t;
	struct ways ways;
};

struct sass_runner *sass_runner_open(const struct sass_thread *t)
{
	struct sass_runner *r;

	if (!can_run(t->arch))
		return NULL;
	r = xcalloc(1, sizeof(*r));
	r->t = *t;
	open_code(&r->ways, &r->t);
	return r;
}

void sass_runner_close(struct sass_runner *r)
{
	free(r);
}

enum sass_end sass_runner_trace(struct sass_runner *r, const uint32_t block[3], const uint32_t thread[3],
				unsigned steps, sass_access_fn *fn, void *arg, unsigned *used)
{
	struct cell_run *run = &r->ways.run;
	const uint32_t *dim = r->t.block_dim;
	struct sass_found f;
	enum sass_end end;

	memcpy(r->t.block, block, sizeof(r->t.block));
	memcpy(r->t.thread, thread, sizeof(r->t.thread));
	r->t.id = (thread[0] + dim[0] * (thread[1] + dim[1] * thread[2])) % 32;
	memset(run->numbers, 0, sizeof(run->numbers));
	run->n_compares = 0;
	run->missing = run->loaded = false;
	r->ways.visit = fn;
	r->ways.arg = arg;
	end = run_thread(&r->ways, steps, &f);
	*used = f.steps;
	return end;
}
