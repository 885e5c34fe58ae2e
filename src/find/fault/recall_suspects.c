/* SPDX-License-Identifier: Apache-2.0
 * Looks at the lists of indices that suspects were given (see recall_suspects.h).
 *
 * A list counts if all of it is known: then the launch would have failed if one of its numbers is out of bounds, and not if none is.
 */
#include "find/fault/recall_suspects.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "case/assert.h"
#include "case/case.h"
#include "case/signature.h"
#include "find/failure/asserting.h"
#include "find/failure/suspects.h"
#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"
#include "find/fault/observe_origin.h"
#include "find/fault/recall.h"
#include "find/fault/recall_write.h"
#include "find/words/printed_assert.h"
#include "read/recording/trace.h"

#define NUMBERS_MAX (1 << 20)
#define NUMBERS_OF_ALL (1 << 24)	/* launches together: a second's work, */
#define NUMBERS_FEW (1 << 12)		/* and of each so many */
#define NEVER 255	/* in kb/asserts.def */

static const struct { const char *kernel; unsigned number; const char *name; int index; } bounds[] = {
#define BOUND(kernel, number, name, index) {kernel, number, name, index},
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number, negative; } checked[] = {
#define CHECKED(kernel, number, negative) {kernel, number, negative},
#include "kb/asserts.def"
};

static const struct { const char *kernel; unsigned number; } ignored[] = {
#define IGNORED(kernel, number) {kernel, number},
#include "kb/asserts.def"
};

#define LENGTH(list) (sizeof(list) / sizeof((list)[0]))

/* What a launch checks. */
struct list {
	uint64_t at;
	unsigned bytes;
	int64_t n, bound, least, skip;
	bool skips;
	bool real;	/* they must be from 0 to 1 */
	const char *dtype;
};

static bool integer(const char *full, const struct cw_launch *l, unsigned number, int64_t *to)
{
	return l->n_param <= CW_PARAM_BYTES && signature_integer(full, number, l->params, l->n_param, to);
}

static bool read_counts(struct list *to, const char *full, const char *name, const struct cw_launch *l)
{
	int64_t from_end;

	for (size_t i = 0; i < LENGTH(ignored); i++)
		if (fnmatch(ignored[i].kernel, name, 0) == 0)
			to->skips = integer(full, l, ignored[i].number, &to->skip);
	for (size_t i = 0; i < LENGTH(checked); i++) {
		if (fnmatch(checked[i].kernel, name, 0) != 0)
			continue;
		if (checked[i].negative != NEVER && (!integer(full, l, checked[i].negative, &from_end) || (from_end & 1)))
			to->least = -to->bound;
		return integer(full, l, checked[i].number, &to->n) && to->n > 0 && to->n <= NUMBERS_MAX;
	}
	return false;
}

static bool read_list(struct list *to, struct trace *t, const struct cw_launch *l, struct pool *pool)
{
	const char *full = trace_function_name(t, l->func), *name = kernel_short_name(full, pool);
	struct signature_param p;

	for (size_t i = 0; i < LENGTH(bounds); i++) {
		if (fnmatch(bounds[i].kernel, name, 0) != 0 || bounds[i].index < 0)
			continue;
		*to = (struct list){.n = 0};
		if (!integer(full, l, bounds[i].number, &to->bound) || to->bound <= 0 ||
		    !signature_param(full, (unsigned)bounds[i].index, &p) || !p.points_to_dtype || p.points_to > 8 ||
		    p.offset + sizeof(to->at) > l->n_param)
			return false;
		memcpy(&to->at, l->params + p.offset, sizeof(to->at));
		to->bytes = p.points_to;
		to->dtype = p.points_to_dtype;
		return read_counts(to, full, name, l);
	}
	return false;
}

/* The probabilities of a binary cross entropy, or its targets. */
static bool read_range(struct list *to, struct trace *t, const struct cw_launch *l, const struct asserting *a,
		       struct pool *pool)
{
	const char *full = trace_function_name(t, l->func), *condition = a->line ? a->line->condition : "";
	struct operand o;

	if (strcmp(assert_about_kernel(kernel_short_name(full, pool), full), "range") != 0 ||
	    !launch_operand(t, l, strstr(condition, "target") ? 2 : 1, &o) || !o.of.real || o.n > NUMBERS_MAX)
		return false;
	*to = (struct list){.at = o.at, .bytes = o.of.bytes, .n = (int64_t)o.n, .real = true};
	return true;
}

static bool is_bad(const struct list *l, const struct checked *c)
{
	int64_t v = checked_integer(c->raw, l->bytes);
	double d;

	if (l->real)
		return checked_real(c, &d) && !(d >= 0 && d <= 1);
	return (v < l->least || v >= l->bound) && !(l->skips && v == l->skip);
}

/* The numbers that are out of bounds. False: not all of them are known. */
static bool find_bad(struct values *v, struct recall *r, const struct list *l)
{
	*v = (struct values){.answer = VALUES_FOUND, .n_threads = 1};
	for (int64_t i = 0; i < l->n; i++) {
		struct checked one = {.at = l->at + (uint64_t)i * l->bytes, .n = l->bytes, .base = l->at, .n_raw = l->bytes,
				      .compared = true, .compare.real = l->real};

		if (!recall_memory(r, one.at, one.raw, l->bytes))
			return false;
		if (!is_bad(l, &one))
			continue;
		v->n_found++;
		if (v->n_kept < VALUES_MAX)
			v->value[v->n_kept++] = one;
	}
	return true;
}

struct search {
	const struct cw_launch **list;	/* newest first */
	size_t n, cap;
};

static void add(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;

	q->list = xgrow(q->list, q->n, &q->cap, sizeof(*q->list));
	q->list[q->n++] = l;
}

/* Launches wait for the kernel if the program wants that, and then it is they who fail. */
static void add_failed(struct search *q, struct trace *t, const struct cw_failure *noticed)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l);

	for (size_t i = 0; noticed->is_launch && noticed->code && i < n; i++)
		if (l[i]->result == noticed->code && l[i]->func == noticed->func && !(l[i]->flags & CW_LAUNCH_CAPTURED)) {
			add(q, l[i]);
			return;
		}
}

static void set_facts(struct casefile *c, struct trace *t, const struct cw_launch *l, const struct list *list,
		      const struct values *v, const struct recalled *from)
{
	const char *full = trace_function_name(t, l->func), *name = kernel_short_name(full, c->pool);
	struct culprit k = {.kernel_text = (char *)full, .values = *v};

	fact_set_text(c, FACT_assert_kernel, name);
	fact_set_text(c, FACT_assert_about, assert_about_kernel(name, full));
	if (!list->real)
		fact_set_number(c, FACT_assert_bound, (double)list->bound);
	fact_set_text(c, FACT_assert_dtype, list->dtype);
	if (list->skips)
		fact_set_number(c, FACT_assert_ignored, (double)list->skip);
	dump_observe_values(c, &k, name);
	observe_origin(c, t, from);
}

uint32_t recall_suspects(struct casefile *c, struct trace *t, const struct cw_failure *noticed, const struct asserting *a)
{
	struct search q = {.n = 0};
	struct recall *r = recall_open(t);
	bool doubt = false, known;
	uint32_t stack = 0;
	int64_t looked_at = 0;

	add_failed(&q, t, noticed);
	if (!q.n)
		suspects_asserting(t, noticed, a, c->pool, add, &q);
	for (size_t i = q.n; i > 0 && !stack; i--) {
		const struct cw_launch *l = q.list[i - 1];
		struct recalled from;
		struct values v;
		struct list list;

		if (!read_list(&list, t, l, c->pool) && !read_range(&list, t, l, a, c->pool))
			continue;
		if (list.n > NUMBERS_FEW && list.n > NUMBERS_OF_ALL - looked_at) {
			doubt = true;
			continue;
		}
		looked_at += list.n;
		recall_launch(r, l, l->ticks);
		known = find_bad(&v, r, &list);
		if (!v.n_kept) {
			doubt = doubt || !known;
			continue;
		}
		recall_origin(r, v.value[0].at, v.value[0].n, &from);
		from.sure = from.sure && !doubt;
		set_facts(c, t, l, &list, &v, &from);
		stack = l->stack ? l->stack : l->forward_stack;
	}
	recall_close(r);
	free(q.list);
	return stack;
}
