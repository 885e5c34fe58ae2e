/* SPDX-License-Identifier: Apache-2.0
 * What a GPU core dump says: the fault, the thread, the kernel, the assertion; not which line launched the kernel, nor whose
 * memory the address is in.
 */
#include "find/fault/observe_dump.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "case/assert.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "find/fault/culprit.h"

static const struct { const char *kernel; unsigned number; const char *name; int index; } bounds[] = {
#define BOUND(kernel, number, name, index) {kernel, number, name, index},
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number; } messages[] = {
#define MESSAGE(kernel, number) {kernel, number},
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number; } ignored[] = {
#define IGNORED(kernel, number) {kernel, number},
#include "kb/asserts.def"
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool kernel_is_like(const char *text, const char *pattern)
{
	return fnmatch(pattern, text, 0) == 0;
}

static void set_dtype(struct casefile *c, const char *name, int index)
{
	struct signature_param p;

	if (index >= 0 && signature_param(name, (unsigned)index, &p) && p.points_to_dtype)
		fact_set_text(c, FACT_assert_dtype, p.points_to_dtype);
}

static void set_bound(struct casefile *c, const struct culprit *k, const char *kernel, const char *condition)
{
	double bound;
	int64_t value;

	if (assert_bound_in_text(condition, &bound))
		fact_set_number(c, FACT_assert_bound, bound);
	for (size_t i = 0; i < COUNT(bounds) && k->kernel_text; i++) {
		/* the condition must mention that parameter */
		if (!kernel_is_like(kernel, bounds[i].kernel) || !strstr(condition, bounds[i].name))
			continue;
		if (signature_integer(k->kernel_text, bounds[i].number, k->params.data, k->params.len, &value) &&
		    value > 0 && value < (int64_t)1 << 48)
			fact_set_number(c, FACT_assert_bound, (double)value);
		set_dtype(c, k->kernel_text, bounds[i].index);
	}
}

static void set_ignored(struct casefile *c, const struct culprit *k, const char *kernel)
{
	int64_t value;

	for (size_t i = 0; i < COUNT(ignored) && k->kernel_text; i++)
		if (kernel_is_like(kernel, ignored[i].kernel) &&
		    signature_integer(k->kernel_text, ignored[i].number, k->params.data, k->params.len, &value) &&
		    value > -((int64_t)1 << 48) && value < (int64_t)1 << 48)
			fact_set_number(c, FACT_assert_ignored, (double)value);
}

/* Some kernels get their message as a parameter. */
static const char *message_in_params(struct casefile *c, const struct culprit *k, const char *kernel)
{
	struct signature_param p;
	size_t n;

	for (size_t i = 0; i < COUNT(messages) && k->kernel_text && k->params.data; i++) {
		if (!kernel_is_like(kernel, messages[i].kernel) || !messages[i].number ||
		    !signature_param(k->kernel_text, messages[i].number - 1, &p))
			continue;
		/* the text follows the parameter before it, without a gap: it is made of bytes */
		if (p.offset + p.size >= k->params.len)
			continue;
		n = strnlen((const char *)k->params.data + p.offset + p.size, k->params.len - p.offset - p.size);
		if (n && p.offset + p.size + n < k->params.len)
			return pool_copy(c->pool, (const char *)k->params.data + p.offset + p.size, n);
	}
	return NULL;
}

/* Of several candidates, what all of them are about. */
static const char *about_choices(struct casefile *c, const struct assertion *a, const char *kernel)
{
	const char *about = assert_about_condition(kernel, a->one_of[0]), *text = "";

	for (size_t i = 0; i < a->n_one_of; i++) {
		if (strcmp(about, assert_about_condition(kernel, a->one_of[i])))
			about = "";
		text = pool_printf(c->pool, "%s%s`%s`", text, text[0] ? " or " : "", a->one_of[i]);
	}
	fact_set_text(c, FACT_assert_one_of, text);
	return about;
}

static void observe_assert(struct casefile *c, const struct culprit *k)
{
	const char *kernel = k->kernel_text ? kernel_short_name(k->kernel_text, c->pool) : "";
	const char *condition = k->assertion.condition, *about;

	if (k->fault != FAULT_ASSERT)
		return;
	if (!condition)
		condition = message_in_params(c, k, kernel);
	fact_set_text(c, FACT_assert_kernel, kernel);
	fact_set_text(c, FACT_assert_condition, condition);
	fact_set_text(c, FACT_assert_file, k->assertion.file);
	fact_set_text(c, FACT_assert_function, k->assertion.function);
	if (k->assertion.line)
		fact_set_number(c, FACT_assert_line, k->assertion.line);
	if (condition)
		about = assert_about_condition(kernel, condition);
	else if (k->assertion.n_one_of)
		about = about_choices(c, &k->assertion, kernel);
	else
		about = assert_about_kernel(kernel, k->kernel_text ? k->kernel_text : "");
	if (about[0] || condition)	/* where the dump does not know it, what was printed may */
		fact_set_text(c, FACT_assert_about, about);
	if (condition)
		set_bound(c, k, kernel, condition);
	set_ignored(c, k, kernel);
	dump_observe_values(c, k, kernel);
}

static void observe_access(struct casefile *c, const struct culprit *k)
{
	static const struct { enum sass_kind kind; const char *said; } accesses[] = {
		{SASS_LOAD, "read"}, {SASS_STORE, "wrote"}, {SASS_ATOMIC, "updated"}, {SASS_REDUCTION, "updated"},
	};

	for (size_t i = 0; k->decoded && i < COUNT(accesses); i++) {
		if (accesses[i].kind != k->insn.kind)
			continue;
		fact_set_text(c, FACT_fault_access, accesses[i].said);
		fact_set_number(c, FACT_fault_bytes, k->insn.width);
	}
	if (k->decoded && k->insn.name[0])
		fact_set_text(c, FACT_fault_instruction, k->insn.name);
	if (k->decoded && k->space != SASS_NOWHERE)
		fact_set_text(c, FACT_fault_space, sass_space_name(k->space));
}

/* As many numbers as the grid or block has dimensions. */
static const char *place_text(struct casefile *c, const uint32_t at[3], const uint32_t dim[3])
{
	if (dim[1] <= 1 && dim[2] <= 1)
		return pool_printf(c->pool, "%u", at[0]);
	if (dim[2] <= 1)
		return pool_printf(c->pool, "(%u, %u)", at[0], at[1]);
	return pool_printf(c->pool, "(%u, %u, %u)", at[0], at[1], at[2]);
}

void dump_observe_thread(struct casefile *c, const struct culprit *k, size_t lane, size_t threads)
{
	const char *before = case_observer(c, DUMP_OBSERVER);

	fact_set_number(c, FACT_fault_threads, (double)threads);
	fact_set_flag(c, FACT_fault_address_recomputed, k->address_recomputed);
	fact_set_flag(c, FACT_fault_address_unchecked, k->address_unchecked);
	fact_set_flag(c, FACT_fault_address_computed, k->address_computed);
	fact_set_flag(c, FACT_fault_address_perhaps, k->address_perhaps);
	if (lane < k->n_kept) {
		fact_set_triple(c, FACT_fault_block, k->lanes[lane].block);
		fact_set_triple(c, FACT_fault_thread, k->lanes[lane].thread);
		fact_set_text(c, FACT_fault_who,
			      pool_printf(c->pool, "thread %s of block %s", place_text(c, k->lanes[lane].thread, k->block),
					  place_text(c, k->lanes[lane].block, k->grid)));
	}
	if (lane < k->n_kept && k->lanes[lane].address_known && !k->address_doubtful) {
		c->fault_address = k->lanes[lane].address;
		fact_set_text(c, FACT_fault_address, pool_printf(c->pool, "0x%" PRIx64, c->fault_address));
	}
	dump_observe_view(c, k, lane);
	case_observer(c, before);
}

static void observe_kernel(struct casefile *c, const struct culprit *k)
{
	const char *function = k->function && (!k->kernel || strcmp(k->function, k->kernel)) ? k->function : NULL;
	const char *name = k->kernel_text ? kernel_short_name(k->kernel_text, c->pool) : NULL;

	if (name) {
		fact_set_text(c, FACT_kernel_name, k->kernel_text);
		fact_set_text(c, FACT_kernel_short, name);
	}
	if (k->grid_known) {
		fact_set_triple(c, FACT_kernel_grid, k->grid);
		fact_set_triple(c, FACT_kernel_block, k->block);
	}
	if (k->pc_known && name)
		fact_set_text(c, FACT_fault_pc, pool_printf(c->pool, "%s+0x%" PRIx64 "%s%s", name, k->kernel_offset,
					  function ? ", in " : "", function ? function : ""));
}

/* Where the threads of a kernel that did not fail are. */
static void observe_standing(struct casefile *c, const struct culprit *k)
{
	const char *kernel = fact_known(c, FACT_kernel_short) ? fact_text(c, FACT_kernel_short) : "the kernel";

	c->warps = k->n_warps;
	c->blocks = k->n_blocks;
	c->elsewhere = k->n_elsewhere;
	c->standing = pool_alloc(c->pool, (k->n_places + 1) * sizeof(*c->standing));
	for (size_t i = 0; i < k->n_places; i++) {
		const struct culprit_place *p = &k->places[i];
		bool own = !p->function || (k->kernel && !strcmp(p->function, k->kernel));

		c->standing[c->n_standing++] = (struct standing){
			.pc = pool_printf(c->pool, "%s+0x%" PRIx64, own ? kernel : p->function, p->offset),
			.threads = p->threads};
	}
	if (k->other_grids)
		case_evidence(c, DUMP_OBSERVER, "other kernels were running, too; this one is the oldest on its GPU");
}

void dump_observe_fault(struct casefile *c, const struct culprit *k)
{
	/* a trap stops its warp without an exception */
	const char *what = culprit_fault_text(k->fault), *exception = k->exception ? k->exception_name : NULL;
	const char *before = case_observer(c, DUMP_OBSERVER);

	fact_set_text(c, FACT_fault_kind, culprit_fault_id(k->fault));
	fact_set_text(c, FACT_fault_what, what);
	fact_set_text(c, FACT_fault_exception, exception);
	observe_access(c, k);
	dump_observe_index(c, k);
	dump_observe_thread(c, k, 0, k->n_lanes);
	observe_kernel(c, k);
	observe_assert(c, k);
	case_evidence(c, DUMP_OBSERVER, exception ? pool_printf(c->pool, "%s (%s)", what, exception) : what);
	if (k->source == CULPRIT_RUNNING)
		observe_standing(c, k);
	if (k->exception_text && k->exception_text[0])
		case_evidence(c, DUMP_OBSERVER, pool_strdup(c->pool, k->exception_text));
	case_observer(c, before);
}

void dump_observe(struct casefile *c, const struct culprit *k)
{
	const char *before = case_observer(c, DUMP_OBSERVER), *what = culprit_fault_text(k->fault);
	uint32_t code = culprit_fault_code(k->fault);

	dump_observe_fault(c, k);
	fact_set_number(c, FACT_error_code, code);
	if (code)
		fact_set_text(c, FACT_error_name, cuda_error_name(code));
	fact_set_text(c, FACT_error_string, code ? cuda_error_text(code) : what);
	fact_set_text(c, FACT_error_text, "");
	fact_set_text(c, FACT_error_source, DUMP_OBSERVER);
	fact_set_number(c, FACT_error_count, 1);
	fact_set_flag(c, FACT_error_async, true);
	fact_set_flag(c, FACT_error_sticky, code && cuda_error_sticky(code));
	fact_set_number(c, FACT_fault_lines, 0);	/* a dump has no lines; a recording may add them */
	c->no_lines = "a core dump alone does not say which line launched the kernel";
	case_observer(c, before);
}
