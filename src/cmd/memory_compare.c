/* SPDX-License-Identifier: Apache-2.0
 * Reads both, finds which device of which process belongs to which, prints the differences (see memory_compare.h).
 */
#include "cmd/memory_compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "find/input.h"
#include "read/recording/recording.h"
#include "read/recording/trace.h"
#include "read/snapshot/snapshot.h"
#include "show/memory.h"

int compare_parse_moments(struct compare_asked *a, const char *text, struct pool *pool, struct err *e)
{
	const char *comma = text ? strchr(text, ',') : NULL;

	a->at[0] = comma ? pool_copy(pool, text, (size_t)(comma - text)) : text;
	a->at[1] = comma ? comma + 1 : text;
	for (int i = 0; i < 2; i++)
		if (memory_when_parse(&a->when[i], a->at[i], e))
			return -EINVAL;
	return 0;
}

int compare_parse_limit(struct growth_limit *l, const char *text, struct err *e)
{
	uint64_t bytes;
	char *end;

	*l = (struct growth_limit){.given = text != NULL};
	if (!text)
		return 0;
	if (str_bytes(text, &bytes) || (str_u64(text, &bytes) && bytes == 0)) {
		l->value = (double)bytes;
		return 0;
	}
	l->percent = true;
	l->value = strtod(text, &end);
	if (end != text && strcmp(end, "%") == 0 && isfinite(l->value) && l->value >= 0)
		return 0;
	err_set(e, -EINVAL, "--max-growth takes a size or a percentage, not '%s'", text);
	return err_hint(e, "for example 100MiB, 2GiB or 5%%");
}

struct sides {
	struct memory_side *list;
	bool *taken;
	size_t n, cap;
	const char *path;
	struct pool *pool;
};

static struct ledger *side_add(struct sides *to, uint32_t pid, uint32_t rank)
{
	struct ledger *l = pool_alloc(to->pool, sizeof(*l));

	to->list = xgrow(to->list, to->n, &to->cap, sizeof(*to->list));
	to->list[to->n++] = (struct memory_side){.path = to->path, .ledger = l, .pid = pid, .rank = rank};
	return l;
}

/* A time without a memory trace still has lines: those of the moment nearby when most was in use. */
static bool side_ledger(struct ledger *l, const struct memory_moment *m, int device, struct pool *pool)
{
	if (m->when.at == LEDGER_TIME && !m->traced && ledger_build_epoch(l, m->trace, device, m->ticks, pool))
		return true;
	return memory_moment_ledger(l, m, device, pool);
}

static void process_add(struct sides *to, const struct memory_moment *m)
{
	const struct cw_header *h = trace_header(m->trace);

	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		struct ledger l, *kept;

		if (!memory_device_used(m->trace, d) || !side_ledger(&l, m, d, to->pool))
			continue;
		ledger_own_all(&l, h->cwd, to->pool);
		kept = side_add(to, h->pid, h->rank);
		*kept = l;
		to->list[to->n - 1].when = memory_moment_words(kept, m->trace, to->pool);
	}
}

static int process_read(struct sides *to, struct recorded_process *p, const struct memory_when *w, struct err *e)
{
	struct trace *t = trace_open(p->part, e);
	struct memory_moment m;
	int rc;

	if (!t)
		return -1;
	if (!p->end_known)
		end_from_header(&p->end, trace_header(t));
	rc = memory_moment_open(&m, t, p, w, e);
	if (rc == 0)
		process_add(to, &m);
	memory_moment_close(&m);
	cmd_tell_damage(t);
	trace_free(t);
	return rc;
}

static int recording_sides(struct sides *to, const struct memory_when *w, struct err *e)
{
	struct recording r = {0};
	struct err first = {0};
	size_t read = 0;
	int rc = recording_read(&r, to->path, e);

	for (size_t i = 0; rc == 0 && i < r.n; i++) {
		struct err one = {0};

		if (!r.process[i].part)
			continue;
		if (process_read(to, &r.process[i], w, &one) == 0)
			read++;
		else if (!first.code)
			first = one;
	}
	recording_release(&r);
	if (rc == 0 && !read && first.code) {
		*e = first;
		return -1;
	}
	if (rc == 0 && first.code)
		fprintf(stderr, "cuwhy: left out: %s\n", first.msg);
	if (rc == 0 && !to->n && w->given && w->at == LEDGER_OOM)
		return memory_when_no_oom(to->path, e);
	return rc;
}

static int snapshot_sides(struct sides *to, const struct compare_asked *a, int which, struct err *e)
{
	const char *at = a->at[which];
	struct snapshot *s;
	struct snap_views *v;
	int rc = 0;

	if (a->when[which].at == LEDGER_TIME)
		return err_set(e, -EINVAL, "--at takes oom, peak or end of a snapshot, not '%s'", at);
	if (a->by != BY_LINE && a->by != BY_FUNCTION)
		return err_set(e, -EINVAL, "--by takes line or function when snapshots are compared");
	s = snap_open(to->path, e);
	if (!s)
		return -1;
	v = snap_views_new(s, "line", at);
	if (at && !strcmp(at, "oom") && !snap_views_ran_out(v))
		rc = memory_when_no_oom(to->path, e);
	for (size_t i = 0; rc == 0 && i < snap_views_count(v); i++) {
		struct ledger *l = side_add(to, 0, CW_UNKNOWN);

		to->list[to->n - 1].when = snap_views_ledger(v, i, l, to->pool);
		to->list[to->n - 1].no_kinds = true;
	}
	snap_views_free(v);
	snap_free(s);
	return rc;
}

static int sides_read(struct sides *to, const struct compare_asked *a, int which, struct err *e)
{
	int rc;

	to->path = a->path[which];
	progress_begin("reading '%s'", to->path);
	rc = input_sniff(to->path) == &input_snapshot ? snapshot_sides(to, a, which, e)
						      : recording_sides(to, &a->when[which], e);
	progress_end();
	to->taken = xcalloc(to->n + 1, sizeof(*to->taken));
	return rc;
}

/* The same device of the same rank; of several processes without a rank, the first with the first. */
static size_t partner_of(const struct sides *before, const struct memory_side *after)
{
	size_t i = 0;

	while (i < before->n && (before->taken[i] || before->list[i].ledger->device != after->ledger->device ||
				 before->list[i].rank != after->rank))
		i++;
	return i;
}

static size_t first_free(const struct sides *s, size_t *left)
{
	size_t found = s->n;

	*left = 0;
	for (size_t i = s->n; i-- > 0;)
		if (!s->taken[i]) {
			found = i;
			(*left)++;
		}
	return found;
}

struct compared {
	struct memory_diff *list;
	size_t n;
};

static void compare_add(struct compared *c, const struct compare_asked *a, const struct memory_side *before,
			const struct memory_side *after, struct pool *pool)
{
	struct memory_side none[2] = {{.path = a->path[0], .rank = CW_UNKNOWN}, {.path = a->path[1], .rank = CW_UNKNOWN}};

	memory_diff_make(&c->list[c->n++], before ? before : &none[0], after ? after : &none[1], a->by, pool);
}

static void compare_pairs(struct compared *c, const struct compare_asked *a, struct sides *before, struct sides *after,
			  struct pool *pool)
{
	size_t left[2], at[2];

	c->list = xcalloc(before->n + after->n + 1, sizeof(*c->list));
	for (size_t i = 0; i < after->n; i++) {
		size_t k = partner_of(before, &after->list[i]);

		if (k == before->n)
			continue;
		before->taken[k] = after->taken[i] = true;
		compare_add(c, a, &before->list[k], &after->list[i], pool);
	}
	at[0] = first_free(before, &left[0]);
	at[1] = first_free(after, &left[1]);
	if (left[0] == 1 && left[1] == 1) {	/* another device, or a rank on one side only: it can be no other */
		before->taken[at[0]] = after->taken[at[1]] = true;
		compare_add(c, a, &before->list[at[0]], &after->list[at[1]], pool);
	}
	for (size_t i = 0; i < before->n; i++)
		if (!before->taken[i])
			compare_add(c, a, &before->list[i], NULL, pool);
	for (size_t i = 0; i < after->n; i++)
		if (!after->taken[i])
			compare_add(c, a, NULL, &after->list[i], pool);
}

static json_t *limit_json(const struct growth_limit *l)
{
	if (!l->given)
		return json_null();
	return l->percent ? JSON_OF(J_VALUE("percent", json_real(l->value)))
			  : JSON_OF(J_BYTES("bytes", (uint64_t)l->value));
}

static int compare_show(const struct compared *c, const struct compare_asked *a)
{
	json_t *list = json_array();
	bool exceeds = false;

	for (size_t i = 0; i < c->n; i++) {
		bool this_one = memory_diff_exceeds(&c->list[i], &a->limit);

		exceeds |= this_one;
		if (a->json)
			json_array_append_new(list, memory_diff_json(&c->list[i]));
		else
			memory_diff_print(stdout, &c->list[i], a->top);
		if (this_one && !a->json)
			printf("cuwhy: device %d holds more than --max-growth allows\n", c->list[i].device);
	}
	if (!c->n && !a->json)
		printf("cuwhy: no memory of a GPU was used in '%s' and '%s' at that moment\n", a->path[0], a->path[1]);
	if (a->json)
		json_print(stdout, JSON_OF(J_INT("schema", 1), J_TEXT("before", a->path[0]),
					   J_TEXT("after", a->path[1]), J_VALUE("max_growth", limit_json(&a->limit)),
					   J_BOOL("exceeded", exceeds), J_SHARED("compared", list)));
	json_decref(list);
	return cmd_finish(exceeds ? EXIT_FOUND : EXIT_NOTHING);
}

static int compare_write_page(const struct compared *c, const char *path, struct err *e)
{
	struct outfile f;
	int rc = outfile_open(&f, path, e);

	if (rc)
		return rc;
	memory_diff_page(f.out, c->list, c->n);
	return outfile_close(&f, true, NULL, e);
}

int memory_compare(const struct compare_asked *a)
{
	struct pool pool = {0};
	struct sides side[2] = {{.pool = &pool}, {.pool = &pool}};
	struct compared c = {0};
	struct err e = {0};
	int rc = 0, status;

	for (int i = 0; rc == 0 && i < 2; i++)
		rc = sides_read(&side[i], a, i, &e);
	if (rc == 0)
		compare_pairs(&c, a, &side[0], &side[1], &pool);
	if (rc == 0 && a->page)
		rc = compare_write_page(&c, a->page, &e);
	status = rc ? cmd_fail(stdout, a->json, &e, EXIT_TROUBLE) : compare_show(&c, a);
	free(c.list);
	for (int i = 0; i < 2; i++) {
		free(side[i].list);
		free(side[i].taken);
	}
	pool_release(&pool);
	return status;
}
