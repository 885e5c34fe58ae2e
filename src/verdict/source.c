/* SPDX-License-Identifier: Apache-2.0
 * Judges inputs, alone and together (see source.h).
 *
 * Every input is judged alone first. Then the cases are compared (tie.h): an input that is tied to one of higher authority
 * observes into that one's case, which is judged again. An input that is tied to nothing remains a separate answer.
 */
#include "verdict/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "read/dump/dump.h"
#include "find/input_dump.h"
#include "find/input.h"
#include "read/recording/recording.h"
#include "read/recording/trace.h"
#include "find/input_snapshot.h"
#include "find/input_text.h"
#include "verdict/doctor.h"
#include "find/fault/fault.h"
#include "verdict/opened.h"
#include "verdict/process.h"
#include "verdict/text.h"
#include "verdict/tie.h"
#include "verdict/verdict.h"

int source_from(struct source *s, const char *path, struct err *e)
{
	*s = (struct source){.input = input_sniff(path), .path = path};
	s->it = s->input->open(path, e);
	return s->it ? 0 : e->code ? e->code : -EINVAL;
}

void source_close(struct source *s)
{
	if (s->it)
		s->input->close(s->it);
	free(s->left);
	*s = (struct source){.input = NULL};
}

/* Inputs that add to a case, each with the reason why it belongs there. */
struct joined {
	struct source *source;
	const char *why;
	enum tied tied;
	uint32_t pid;		/* of a recording: the process it belongs to */
};

struct group {
	struct joined *list;
	size_t n;
};

/* Those that belong to one process of a recording, at least as surely. `list` must have room for all. */
static struct group group_of_process(const struct group *g, uint32_t pid, enum tied least, struct joined *list)
{
	struct group of = {.list = list};

	for (size_t i = 0; i < g->n; i++)
		if (g->list[i].pid == pid && g->list[i].tied >= least)
			of.list[of.n++] = g->list[i];
	return of;
}

static const struct joined *joined_kind(const struct group *g, const struct input *kind)
{
	for (size_t i = 0; g && i < g->n; i++)
		if (g->list[i].source->input == kind)
			return &g->list[i];
	return NULL;
}

static const struct culprit *joined_dump(const struct group *g)
{
	const struct joined *j = joined_kind(g, &input_dump);

	return j ? ((const struct dump_source *)j->source->it)->culprit : NULL;
}

/* What adds to the case; NULL when nothing was joined. Of a machine only the reason: the doctor's finding is added to the verdict. */
static const struct inputs_beside *beside_of(const struct group *g, struct pool *pool)
{
	struct inputs_beside *b = g ? pool_alloc(pool, sizeof(*b)) : NULL;

	if (!b)
		return NULL;
	*b = (struct inputs_beside){.list = pool_alloc(pool, g->n * sizeof(*b->list)), .n = g->n};
	for (size_t i = 0; i < g->n; i++) {
		const struct source *s = g->list[i].source;

		b->list[i] = (struct input_beside){
			.input = s->input, .it = s->it,
			.why = pool_printf(pool, "joined with %s, %s: %s%s", s->input->what, s->path, g->list[i].why,
					   g->list[i].tied == TIED_SURELY ? "" : "; it may still be of another run")};
	}
	return b;
}

static void adopt_machine(struct verdict *v, const struct group *g)
{
	for (size_t i = 0; g && i < g->n; i++) {
		struct source *s = g->list[i].source;
		struct doctor *d;

		if (s->input != &input_machine || !verdict_wants_machine(v))
			continue;
		d = doctor_judge(s->it);
		verdict_adopt(v, d);
		doctor_free(d);
	}
}

/* What only an input that may be of another run says is not certain. */
static void cap_certainty(struct verdict *v, const struct verdict *alone, const struct group *g)
{
	bool perhaps = false;

	for (size_t i = 0; i < g->n; i++)
		perhaps |= g->list[i].tied == TIED_PERHAPS;
	if (perhaps && (alone->sure < SURE_CERTAIN || v->cause != alone->cause))
		verdict_cap(v, SURE_LIKELY, "the inputs may be of two runs");
}

static struct verdict *source_judge_process(struct recorded_process *p, const struct group *g, struct err *e)
{
	struct pool pool = {0};
	struct opened o;
	struct verdict *v;

	if (opened_read(&o, p, e))
		return NULL;
	if (!p->end.fault)
		p->end.fault = joined_dump(g);
	v = opened_judge_beside(&o, p, beside_of(g, &pool));
	adopt_machine(v, g);
	opened_release(&o, p);
	pool_release(&pool);
	return v;
}

/* Judges a process again, first with what is surely of its run, then with everything that is tied to it. */
static void join_process(struct verdict **v, struct recorded_process *p, const struct group *g, struct err *e)
{
	struct joined *list = xcalloc(g->n, sizeof(*list));

	for (enum tied least = TIED_SURELY; least >= TIED_PERHAPS; least--) {
		struct group own = group_of_process(g, (*v)->pid, least, list);
		struct verdict *joined = own.n ? source_judge_process(p, &own, e) : NULL;

		if (!joined)
			continue;
		cap_certainty(joined, *v, &own);
		verdict_free(*v);
		*v = joined;
	}
	free(list);
}

/* What cannot be read is skipped and noted; if nothing can: NULL with the reason in `e`. */
static struct verdict *judge_recording(struct source *s, const struct group *g, struct err *e)
{
	struct recording *r = s->it;
	struct verdict **list = xcalloc(r->n + 1, sizeof(*list)), *all = NULL;
	size_t n = 0;

	free(s->left);
	s->left = xcalloc(r->n + 1, sizeof(*s->left));
	s->n_left = r->n;
	for (size_t i = 0; i < r->n; i++) {
		list[n] = source_judge_process(&r->process[i], NULL, &s->left[i]);
		if (list[n] && g && verdict_failed(list[n]))
			join_process(&list[n], &r->process[i], g, &s->left[i]);
		if (s->left[i].code)
			*e = s->left[i];
		n += list[n] != NULL;
	}
	if (n > 0 || r->n == 0)
		all = verdict_join(list, n);
	if (all && r->ended_well)
		verdict_ended_well(all);
	if (all && r->unrecorded)
		all = verdict_without(all, NULL, r->unrecorded);
	free(list);
	return all;
}

static struct verdict *judge_machine(struct source *s)
{
	struct doctor *d = doctor_judge(s->it);
	struct verdict *v = doctor_take_verdict(d);

	doctor_free(d);
	return v;
}

static struct verdict *judge_text(struct source *s, const struct group *g)
{
	struct text_source *t = s->it;
	struct pool pool = {0};
	struct verdict *v = verdict_of_text_beside(t->log, beside_of(g, &pool), &t->about);

	adopt_machine(v, g);
	pool_release(&pool);
	return v;
}

/* Any input that is about one failure. */
static struct verdict *judge_plain(struct source *s, const struct group *g)
{
	struct verdict *v = verdict_new("unknown");
	const struct inputs_beside *beside = beside_of(g, &v->pool);

	s->input->observe(s->it, &v->c);
	if (!case_observed(&v->c, GROUP_error)) {
		verdict_free(v);
		return verdict_new("none");
	}
	if (beside)
		inputs_observe(&v->c, beside);
	verdict_judge(v);
	adopt_machine(v, g);
	return v;
}

static struct verdict *judge_group(struct source *s, const struct group *g, struct err *e)
{
	if (s->input == &input_recording)
		return judge_recording(s, g, e);
	if (s->input == &input_machine)
		return judge_machine(s);	/* it says least about a failure: others are never joined to it */
	if (s->input == &input_text)
		return judge_text(s, g);
	return judge_plain(s, g);
}

struct verdict *source_judge(struct source *s, struct err *e)
{
	return judge_group(s, NULL, e);
}

/* The clocks of a file server and of its clients, if they are set at all: seconds apart, not minutes. */
#define CLOCKS_APART_NS 60000000000u

/* A dump has the kernel, a recording its launches: kernel, dimensions and parameters must match. Another run of the program
 * launches the same kernels, and may even have the same addresses: so we ask who wrote the dump, and when. */
static enum tied dump_of_process(const struct dump_source *d, const struct opened *o, const struct process_end *end,
				 const char **why)
{
	const struct cw_header *h = trace_header(o->trace);

	if (end->fault_mark && end->fault_mark == dump_mark(d->dump)) {
		*why = "it is the dump of this process";
		return TIED_SURELY;
	}
	if (end->fault_mark)
		*why = "this process wrote another dump";
	else if (d->pid && d->pid != h->pid)
		*why = "its name is that of another process";
	else if (d->written_ns && d->written_ns + CLOCKS_APART_NS < h->start_realtime_ns)
		*why = "it is older than this process";
	else if (!fault_has_launch(o->trace, d->culprit))
		*why = "this process has no matching launch of the dump's kernel";
	else {
		*why = "a launch of the same kernel, with the same dimensions and parameters";
		return d->pid ? TIED_SURELY : TIED_PERHAPS;
	}
	return TIED_NOT;
}

static enum tied dump_tied(const struct source *dump, struct source *recording, uint32_t pid, const char **why)
{
	struct recording *r = recording->it;
	enum tied tied = TIED_NOT;

	*why = "this process has no recording";
	for (size_t i = 0; i < r->n && !tied; i++) {
		struct recorded_process *p = &r->process[i];
		struct opened o;

		if (!p->part || opened_read(&o, p, NULL))
			continue;
		if (trace_header(o.trace)->pid == pid)
			tied = dump_of_process(dump->it, &o, &p->end, why);
		opened_release(&o, p);
	}
	return tied;
}

/* A verdict of `s` is its own, or that of a failed process of a recording. */
static enum tied verdict_tied(struct source *s, const struct verdict *v, struct source *other, const struct verdict *w,
			      struct pool *pool, const char **why)
{
	enum tied tied;

	/* one run leaves one of each: two recordings are two runs, two dumps are two faults */
	if (s->input == other->input) {
		*why = s->input == &input_text ? "by their times, the texts are of two runs"
					       : "two inputs of the same kind are never joined";
		return TIED_NOT;
	}
	tied = case_tied(&v->c, &w->c, pool, why);

	if (s->input != &input_recording || other->input != &input_dump || strstr(*why, TIE_DIFFERS))
		return tied;
	return dump_tied(other, s, v->pid, why);
}

static const struct verdict *find_tied(struct source *s, const struct verdict *v, struct source *other,
				       const struct verdict *w, struct pool *pool, struct joined *as)
{
	const char **why = &as->why, *first = NULL;

	as->source = other;
	as->tied = verdict_tied(s, v, other, w, pool, why);
	if (as->tied)
		return v;
	first = *why;
	for (const struct verdict *o = v->others; s->input == &input_recording && o; o = o->next) {
		as->tied = verdict_tied(s, o, other, w, pool, why);
		if (as->tied)
			return o;
	}
	*why = first;
	return NULL;
}

static int authority(const struct input *input)
{
	int id = 0;

	while (id < INPUT_COUNT && input_get((enum input_id)id) != input)
		id++;
	return id;
}

/* Sorts sources by authority; those of one kind keep their order. */
static void sort_sources(struct source **order, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct source *s = order[i];
		size_t k = i;

		for (; k > 0 && authority(order[k - 1]->input) > authority(s->input); k--)
			order[k] = order[k - 1];
		order[k] = s;
	}
}

struct table {
	struct source **order;
	struct verdict **verdict;	/* NULL = joined to another one */
	const char **apart;		/* why it was not joined to an earlier one; NULL = not compared */
	struct pool pool;
	size_t n;
};

/* A process has one dump, one snapshot of its failure, one machine: the first that is tied to it. */
static bool kind_is_taken(const struct group *g, const struct joined *as)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->list[i].pid == as->pid && g->list[i].source->input == as->source->input)
			return true;
	return false;
}

static void set_apart(struct table *t, size_t k, const char *why)
{
	if (!t->apart[k])	/* the first reason is about the strongest input */
		t->apart[k] = pool_printf(&t->pool, "%s, %s, was analyzed separately: %s", t->order[k]->input->what,
					  t->order[k]->path, why);
}

/* Adds the next source that is tied to the case of source `at` as it is now; false when there is none. */
static bool gather_one(struct table *t, size_t at, struct group *g)
{
	for (size_t k = at + 1; k < t->n; k++) {
		const struct verdict *with;
		struct joined as = {.why = NULL};

		if (!t->verdict[k])
			continue;
		with = find_tied(t->order[at], t->verdict[at], t->order[k], t->verdict[k], &t->pool, &as);
		if (!with) {
			set_apart(t, k, as.why);
			continue;
		}
		as.pid = with->pid;
		if (kind_is_taken(g, &as)) {
			set_apart(t, k, pool_printf(&t->pool, "%s was joined already", as.source->input->what));
			continue;
		}
		g->list[g->n++] = as;
		verdict_free(t->verdict[k]);
		t->verdict[k] = NULL;
		t->apart[k] = NULL;
		return true;
	}
	return false;
}

/* One at a time: what the first one adds may tie the next. */
static void join_group(struct table *t, size_t at, struct err *e)
{
	struct group g = {.list = xcalloc(t->n, sizeof(*g.list))};

	while (gather_one(t, at, &g)) {
		struct verdict *joined = judge_group(t->order[at], &g, e);

		if (!joined)
			break;
		if (t->order[at]->input != &input_recording)	/* whose processes have had theirs */
			cap_certainty(joined, t->verdict[at], &g);
		verdict_free(t->verdict[at]);
		t->verdict[at] = joined;
	}
	free(g.list);
}

/* The most certain verdict comes first, with a note about each source that was not joined. */
static struct verdict *combine_left(struct table *t)
{
	struct verdict *v;
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!t->verdict[i])
			t->apart[i] = NULL;
		else
			t->verdict[n++] = t->verdict[i];
	}
	v = verdict_combine(t->verdict, n);
	for (size_t i = 0; i < t->n; i++)
		if (t->apart[i])
			verdict_evidence(v, "input", pool_strdup(&v->pool, t->apart[i]));
	return v;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A file that was given twice counts once. Returns how many are left. */
static size_t drop_repeated(struct source **order, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		bool repeated = false;

		for (size_t k = 0; k < kept; k++)
			repeated |= is_same_file(order[k]->path, order[i]->path);
		if (!repeated)
			order[kept++] = order[i];
	}
	return kept;
}

struct verdict *sources_judge(struct source *list, size_t n, struct err *e)
{
	struct table t = {.n = n, .order = xcalloc(n + 1, sizeof(*t.order)), .verdict = xcalloc(n + 1, sizeof(*t.verdict)),
			  .apart = xcalloc(n + 1, sizeof(*t.apart))};
	struct verdict *v = NULL;
	size_t judged = 0;

	for (size_t i = 0; i < n; i++)
		t.order[i] = &list[i];
	sort_sources(t.order, n);
	t.n = n = drop_repeated(t.order, n);
	for (; judged < n; judged++) {
		t.verdict[judged] = source_judge(t.order[judged], e);
		if (!t.verdict[judged])
			break;
	}
	if (judged == n) {
		for (size_t i = 0; i + 1 < n; i++)
			if (t.verdict[i] && verdict_failed(t.verdict[i]))
				join_group(&t, i, e);
		v = combine_left(&t);
	} else {
		while (judged)
			verdict_free(t.verdict[--judged]);
	}
	pool_release(&t.pool);
	free(t.order);
	free(t.apart);
	free(t.verdict);
	return v;
}
