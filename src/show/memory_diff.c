/* SPDX-License-Identifier: Apache-2.0
 * Two moments side by side (see memory_diff.h).
 *
 * A line is the same line if its file, its function, where the function begins and its number are the same. If the function
 * has moved in its file, it is the same if it is as far from the beginning of the function: other numbers are no new line.
 */
#include "show/memory_diff.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "cuwhy/format.h"
#include "base/format.h"

/* All that one place holds, whatever it is for: a tensor that was an activation at one moment may be a gradient at another. */
struct held {
	struct ledger_line line;	/* its kind is that of most bytes */
	uint64_t kind_bytes;
	const char *name;		/* unless by line */
	struct held *other;		/* on the other side */
};

struct holdings { struct held *list; size_t n; };

static bool same_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "") == 0;
}

static bool same_function(const struct ledger_line *a, const struct ledger_line *b)
{
	return a->part == b->part && same_text(a->library, b->library) && same_text(a->place.file, b->place.file) &&
	       same_text(a->place.function, b->place.function);
}

static bool same_line(const struct ledger_line *a, const struct ledger_line *b)
{
	return same_function(a, b) && a->place.line == b->place.line && a->place.first_line == b->place.first_line;
}

static bool same_but_moved(const struct ledger_line *a, const struct ledger_line *b)
{
	return same_function(a, b) && a->place.first_line && b->place.first_line &&
	       a->place.line - a->place.first_line == b->place.line - b->place.first_line;
}

static struct held *holding_of(struct holdings *h, const struct ledger_line *l, const char *name)
{
	for (size_t i = 0; i < h->n; i++)
		if (name ? same_text(h->list[i].name, name) : same_line(&h->list[i].line, l))
			return &h->list[i];
	h->list[h->n] = (struct held){.line = *l, .name = name};
	h->list[h->n].line.bytes = h->list[h->n].line.count = 0;
	return &h->list[h->n++];
}

/* Other processes are not the program's: they are among the parts. */
static struct holdings holdings_of(const struct ledger *l, enum ledger_by by, struct pool *pool)
{
	struct holdings h = {pool_alloc(pool, ((l ? l->n : 0) + 1) * sizeof(*h.list)), 0};

	for (size_t i = 0; l && i < l->n; i++) {
		const struct ledger_line *x = &l->line[i];
		struct held *to;

		if (x->part == PART_PROCESSES)
			continue;
		to = holding_of(&h, x, by == BY_LINE ? NULL : ledger_group_name(x, by, pool));
		to->line.bytes += x->bytes;
		to->line.count += x->count;
		if (x->bytes > to->kind_bytes) {
			to->kind_bytes = x->bytes;
			to->line.kind = x->kind;
		}
	}
	return h;
}

static struct held *only_like(struct holdings *h, const struct ledger_line *l)
{
	struct held *found = NULL;

	for (size_t i = 0; i < h->n; i++)
		if (!h->list[i].other && same_but_moved(&h->list[i].line, l)) {
			if (found)
				return NULL;	/* two of that name: it cannot be told which */
			found = &h->list[i];
		}
	return found;
}

static void holdings_match(struct holdings *a, struct holdings *b, enum ledger_by by)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n && !a->list[i].other; k++)
			if (!b->list[k].other && (by == BY_LINE ? same_line(&a->list[i].line, &b->list[k].line)
								: same_text(a->list[i].name, b->list[k].name))) {
				a->list[i].other = &b->list[k];
				b->list[k].other = &a->list[i];
			}
	for (size_t i = 0; by == BY_LINE && i < a->n; i++) {
		struct held *x = &a->list[i], *y = x->other ? NULL : only_like(b, &x->line);

		if (y && only_like(a, &y->line) == x) {
			x->other = y;
			y->other = x;
		}
	}
}

static int64_t growth_of(const struct memory_change *c)
{
	return (int64_t)c->after - (int64_t)c->before;
}

static int by_growth(const void *a, const void *b)
{
	int64_t x = growth_of(a), y = growth_of(b);

	if (x != y)
		return x > y ? -1 : 1;
	return strcmp(((const struct memory_change *)a)->name, ((const struct memory_change *)b)->name);
}

static void diff_add(struct memory_diff *d, const struct held *before, const struct held *after, struct pool *pool)
{
	const struct held *shown = after ? after : before;
	struct memory_change c = {.is_new = !before, .is_gone = !after};

	if (before) {
		c.before = before->line.bytes;
		c.count_before = before->line.count;
	}
	if (after) {
		c.after = after->line.bytes;
		c.count_after = after->line.count;
	}
	if (c.before == c.after)
		return;
	c.line = d->by == BY_LINE ? &shown->line : NULL;
	c.name = d->by == BY_LINE ? ledger_line_name(&shown->line, pool) : shown->name;
	if (d->by == BY_LINE && before && after && before->line.place.line != after->line.place.line)
		c.was_line = before->line.place.line;
	d->row[d->n++] = c;
}

static uint64_t held_by(const struct ledger *l)
{
	return l ? l->part[PART_TENSORS] + l->part[PART_LIBRARIES] : 0;
}

void memory_diff_make(struct memory_diff *d, const struct memory_side *before, const struct memory_side *after,
		      enum ledger_by by, struct pool *pool)
{
	struct holdings a = holdings_of(before->ledger, by, pool), b = holdings_of(after->ledger, by, pool);

	*d = (struct memory_diff){.before = *before, .after = *after, .by = by, .held_before = held_by(before->ledger),
				  .held_after = held_by(after->ledger),
				  .device = after->ledger ? after->ledger->device : before->ledger->device};
	d->row = pool_alloc(pool, (a.n + b.n + 1) * sizeof(*d->row));
	holdings_match(&a, &b, by);
	for (size_t i = 0; i < b.n; i++)
		diff_add(d, b.list[i].other, &b.list[i], pool);
	for (size_t i = 0; i < a.n; i++)
		if (!a.list[i].other)
			diff_add(d, &a.list[i], NULL, pool);
	xsort(d->row, d->n, sizeof(*d->row), by_growth);
}

/* Contexts and other processes are known only where NVML was asked: when memory ran out. A process that uses CUDA has a context. */
bool memory_part_known(const struct memory_side *s, enum ledger_part part)
{
	const struct ledger *l = s->ledger;

	if (part == PART_CONTEXT || part == PART_OUTSIDE)
		return l && l->part[part];
	if (part == PART_PROCESSES)
		return l && (l->part[part] || l->part[PART_CONTEXT]);
	return true;
}

const char *memory_diff_gpus(const struct memory_diff *d, struct pool *pool)
{
	const char *a = d->before.ledger ? d->before.ledger->device_name : "",
		   *b = d->after.ledger ? d->after.ledger->device_name : "";

	if (!*a || !*b || !strcmp(a, b))
		return *b ? b : a;
	return pool_printf(pool, "%s before, %s after", a, b);
}

bool memory_diff_exceeds(const struct memory_diff *d, const struct growth_limit *limit)
{
	double growth = (double)d->held_after - (double)d->held_before;

	if (!limit->given || growth <= 0)
		return false;
	return growth > (limit->percent ? (double)d->held_before * limit->value / 100 : limit->value);
}

static const char *signed_bytes(char *to, size_t size, int64_t n)
{
	char text[32];

	snprintf(to, size, "%s%s", n < 0 ? "-" : "+", format_bytes(text, sizeof(text), n < 0 ? -(double)n : (double)n));
	return to;
}

static void side_print(FILE *out, const char *label, const struct memory_side *s)
{
	fprintf(out, "  %-7s %s", label, s->path);
	if (s->pid)
		fprintf(out, ", process %u", s->pid);
	if (s->rank != CW_UNKNOWN)
		fprintf(out, ", rank %u", s->rank);
	fprintf(out, ": %s\n", s->ledger ? s->when : "the GPU was not used");
}

/* What is not known on one side has no growth. */
static void figure_print_alone(FILE *out, const char *name, const uint64_t *before, const uint64_t *after)
{
	char a[32], b[32];

	fprintf(out, "  %10s  %10s  %11s  %s\n", before ? format_bytes(a, sizeof(a), (double)*before) : "-",
		after ? format_bytes(b, sizeof(b), (double)*after) : "-", "", name);
}

static void figures_print(FILE *out, const char *name, uint64_t before, uint64_t after)
{
	char a[32], b[32], g[40], share[24] = "";

	if (before && before != after)
		snprintf(share, sizeof(share), "  %+.1f %%", ((double)after - (double)before) * 100 / (double)before);
	fprintf(out, "  %10s  %10s  %11s  %s%s\n", format_bytes(a, sizeof(a), (double)before),
		format_bytes(b, sizeof(b), (double)after),
		before == after ? "=" : signed_bytes(g, sizeof(g), (int64_t)after - (int64_t)before), name, share);
}

static uint64_t part_of(const struct memory_side *s, int part)
{
	return s->ledger ? s->ledger->part[part] : 0;
}

/* What is left of the card is not compared: it says nothing about the program. */
static void parts_print(FILE *out, const struct memory_diff *d)
{
	fprintf(out, "  %10s  %10s  %11s\n", "before", "after", "growth");
	for (int p = 0; p < PART_COUNT; p++) {
		uint64_t a = part_of(&d->before, p), b = part_of(&d->after, p);

		const char *name = ledger_part_text((enum ledger_part)p);
		bool was = memory_part_known(&d->before, (enum ledger_part)p),
		     is = memory_part_known(&d->after, (enum ledger_part)p);

		if ((!a && !b) || p == PART_FREE || p == PART_UNMEASURED || p == PART_REST)
			continue;
		if (was && is)
			figures_print(out, name, a, b);
		else
			figure_print_alone(out, name, was ? &a : NULL, is ? &b : NULL);
	}
}

static bool kinds_known(const struct memory_diff *d)
{
	return !d->before.no_kinds && !d->after.no_kinds;
}

/* In brackets, separated by commas: what it is for, how many there are, where it was. */
static void row_print_details(FILE *out, const struct memory_diff *d, const struct memory_change *c)
{
	const char *comma = "  (";

	if (kinds_known(d) && c->line->part == PART_TENSORS) {
		fprintf(out, "%s%s", comma, ledger_kind_text(c->line->kind));
		comma = ", ";
	}
	if (c->count_before && c->count_after && c->count_before != c->count_after) {
		fprintf(out, "%s%llu -> %llu %s", comma, (unsigned long long)c->count_before,
			(unsigned long long)c->count_after, c->line->part == PART_TENSORS ? "tensors" : "allocations");
		comma = ", ";
	}
	if (c->was_line) {
		fprintf(out, "%swas line %u", comma, c->was_line);
		comma = ", ";
	}
	if (comma[0] == ',')
		putc(')', out);
}

static void row_print(FILE *out, const struct memory_diff *d, const struct memory_change *c)
{
	char a[32], b[32], g[40];

	fprintf(out, "  %10s  %10s  %11s  %s", c->is_new ? "-" : format_bytes(a, sizeof(a), (double)c->before),
		c->is_gone ? "-" : format_bytes(b, sizeof(b), (double)c->after),
		signed_bytes(g, sizeof(g), growth_of(c)), c->name);
	if (c->is_new)
		fputs("  NEW", out);
	if (c->line)
		row_print_details(out, d, c);
	putc('\n', out);
}

/* Those that grew, or those that shrank, the largest change first. */
static void rows_print(FILE *out, const struct memory_diff *d, bool grew, size_t top)
{
	static const char *const titles[] = {"lines", "functions", "kinds", "libraries"};
	size_t shown = 0, all = 0;

	for (size_t i = 0; i < d->n; i++)
		all += (growth_of(&d->row[i]) > 0) == grew;
	for (size_t i = 0; i < d->n; i++) {
		const struct memory_change *c = grew ? &d->row[i] : &d->row[d->n - 1 - i];

		if ((growth_of(c) > 0) != grew || shown == top)
			continue;
		if (!shown++)
			fprintf(out, "\n  %s that hold %s\n", titles[d->by], grew ? "more" : "less");
		row_print(out, d, c);
	}
	if (all > shown)
		fprintf(out, "  %zu more (--top)\n", all - shown);
}

static bool without_lines(const struct memory_side *s)
{
	return s->ledger && s->ledger->allocated && !s->ledger->n;
}

void memory_diff_print(FILE *out, const struct memory_diff *d, size_t top)
{
	struct pool pool = {0};
	const char *gpus = memory_diff_gpus(d, &pool);

	fprintf(out, "device %d%s%s\n", d->device, gpus[0] ? ", " : "", gpus);
	pool_release(&pool);
	side_print(out, "before", &d->before);
	side_print(out, "after", &d->after);
	putc('\n', out);
	parts_print(out, d);
	rows_print(out, d, true, top);
	rows_print(out, d, false, top);
	if (without_lines(&d->before) || without_lines(&d->after))
		fputs("  lines are not known at that time: only 'cuwhy run --memory-trace' keeps every event\n", out);
	else if (!d->n)
		fputs("\n  every line holds what it held before\n", out);
	putc('\n', out);
}

static json_t *side_json(const struct memory_side *s)
{
	static const char *const moments[] = {"end", "peak", "oom", "time"};
	const struct ledger *l = s->ledger;

	if (!l)
		return json_null();
	return JSON_OF(J_TEXT("recording", s->path), J_INT_OR_NULL("pid", s->pid, s->pid),
		       J_INT_OR_NULL("rank", s->rank != CW_UNKNOWN, s->rank), J_TEXT("at", moments[l->at]),
		       J_TEXT("when", s->when), J_TEXT("name", l->device_name), J_BYTES("allocated", l->allocated),
		       J_BYTES("reserved", l->reserved), J_BYTES("other_libraries", l->part[PART_LIBRARIES]));
}

static json_t *change_json(const struct memory_diff *d, const struct memory_change *c)
{
	const struct ledger_line *l = c->line;
	json_t *o = JSON_OF(J_TEXT("name", c->name), J_BYTES("before", c->before), J_BYTES("after", c->after),
			    J_INT("growth", growth_of(c)), J_BOOL("new", c->is_new), J_BOOL("gone", c->is_gone),
			    J_BYTES("count_before", c->count_before), J_BYTES("count_after", c->count_after));

	if (l)
		JSON_ADD(o, J_TEXT("part", ledger_part_id(l->part)),
			 J_IF(l->part == PART_TENSORS && kinds_known(d), J_TEXT("kind", ledger_kind_id(l->kind))),
			 J_TEXT("file", l->place.file), J_INT_OR_NULL("line", l->place.file, l->place.line),
			 J_TEXT("function", l->place.function), J_INT_OR_NULL("was_line", c->was_line, c->was_line),
			 J_IF(l->part == PART_LIBRARIES, J_TEXT("library", l->library)));
	return o;
}

json_t *memory_diff_json(const struct memory_diff *d)
{
	static const char *const bys[] = {"line", "function", "kind", "library"};
	const struct ledger *l = d->after.ledger ? d->after.ledger : d->before.ledger;
	json_t *rows = json_array();

	for (size_t i = 0; i < d->n; i++)
		json_array_append_new(rows, change_json(d, &d->row[i]));
	return JSON_OF(J_INT("device", d->device), J_TEXT("name", l->device_name),
		       J_VALUE("before", side_json(&d->before)), J_VALUE("after", side_json(&d->after)),
		       J_BYTES("held_before", d->held_before), J_BYTES("held_after", d->held_after),
		       J_INT("growth", (json_int_t)d->held_after - (json_int_t)d->held_before),
		       J_TEXT("by", bys[d->by]), J_VALUE("changes", rows));
}
