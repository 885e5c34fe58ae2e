/* SPDX-License-Identifier: Apache-2.0
 * What makes a program fit: a run for each change that applies to it, and of several at once if none is enough (see fit_remedies.h).
 */
#include "fit/fit_remedies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define FIRST "foreach"	/* of the first run, in which is also seen what else could be changed */
#define SOON  "12"	/* optimizer steps are enough for that, where the program grows for long */
#define LATE  1000000	/* the step in which memory runs out, at the earliest */
#define CALLS_MAX 65536

static const struct remedy {
	const char *name, *words, *numbers, *costs;
} remedies[] = {
#define REMEDY(name, ...) {#name, __VA_ARGS__},
#include "fit/fit_remedies.def"
#undef REMEDY
};
#define REMEDIES (sizeof(remedies) / sizeof(remedies[0]))

/* What is known of the program: which changes apply to it. */
struct able {
	bool is[REMEDIES];
	const char *words[REMEDIES];	/* with what they apply to */
	const char *numbers[REMEDIES];	/* other than usual for such a change; NULL = as usual */
	const char *calls;		/* of no_grad; "" = none */
};

static size_t remedy_named(const char *name)
{
	size_t i = 0;

	while (i < REMEDIES && strcmp(remedies[i].name, name) != 0)
		i++;
	return i;
}

/* What a program says of itself may have anything in it. */
static const char *plain(char *text)
{
	str_make_line(text);
	return text;
}

static void note_able(struct able *able, const json_t *told, struct pool *pool)
{
	const char *name = json_string_value(json_object_get(told, "able")),
		   *detail = json_string_value(json_object_get(told, "detail"));
	size_t i = name ? remedy_named(name) : REMEDIES;

	if (i == REMEDIES)
		return;
	able->is[i] = true;
	if (json_is_true(json_object_get(told, "batch_norm")))
		able->numbers[i] = "other averages";
	able->words[i] =
		detail && *detail ? plain(pool_printf(pool, "%s of %s", remedies[i].words, detail)) : remedies[i].words;
}

/* Calls of models whose outputs no backward reaches, and the first of these lines. */
static void note_calls(struct able *able, const struct fit_run *run, const char *cwd, struct pool *pool)
{
	size_t at = remedy_named("no_grad"), i, n = 0;
	const char *file = NULL;
	json_int_t line = 0;
	const json_t *one;
	struct buf ids;

	buf_init(&ids, CALLS_MAX);
	json_array_foreach(run->told, i, one) {
		const char *id = json_string_value(json_object_get(one, "call"));

		if (!id)
			continue;
		buf_printf(&ids, "%s%s", str_if(n > 0, ","), id);
		if (n++ == 0) {
			file = json_string_value(json_object_get(one, "file"));
			line = json_integer_value(json_object_get(one, "line"));
		}
	}
	able->is[at] = n > 0;
	able->calls = pool_strdup(pool, n ? ids.data : "");
	if (file)
		able->words[at] = plain(pool_printf(pool, "%s at %s:%d%s", remedies[at].words, file_shown(file, cwd),
						    (int)line, str_if(n > 1, ", and others")));
	buf_release(&ids);
}

static bool is_told(const json_t *told, const char *key)
{
	const json_t *one;
	size_t i;

	json_array_foreach(told, i, one)
		if (json_is_true(json_object_get(one, key)))
			return true;
	return false;
}

static struct able able_read(const struct fit_run *run, const char *cwd, struct pool *pool)
{
	struct able able = {.calls = ""};
	const json_t *one;
	size_t i;

	json_array_foreach(run->told, i, one)
		note_able(&able, one, pool);
	note_calls(&able, run, cwd, pool);
	return able;
}

/* What still grows, as a list of numbers does, runs out of memory too late to matter. */
bool fit_remedy_fits(const struct what_if_row *row)
{
	if (row->growth.bytes)
		return row->answer.fits && row->growth.fails_at >= LATE;
	return row->answer.fits && !(row->answer.doubts & 1u << REPLAY_RISING);
}

static uint64_t most_in_use(const struct replays *all)
{
	uint64_t most = 0;

	for (size_t i = 0; i < all->n; i++)
		if (replay_facts(all->list[i].replay)->peak_allocated > most)
			most = replay_facts(all->list[i].replay)->peak_allocated;
	return most;
}

static int answer_cards(struct fit_menu *m, struct fit_tried *t, const struct fit_run *run, struct replays *all)
{
	struct what_if_row *row = pool_alloc(m->pool, m->n * sizeof(*row));
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < m->n; i++)
		rc = m->answer(m->of, &row[i], all, run, m->card[i]);
	t->row = row;
	t->peak = most_in_use(all);
	return rc;
}

/* The program with these changes. What it told of itself stays in `run`, which the caller releases; `cwd`: where it ran. */
static struct fit_tried run_with(struct fit_menu *m, const char *changes, const char *calls, struct fit_run *run,
				 const char **cwd)
{
	struct fit_tried t = {.changes = pool_strdup(m->pool, changes)};
	struct err e = {0};
	struct replays all;
	int rc;

	m->runs->changes = changes;
	m->runs->calls = calls;
	rc = fit_run(m->runs, run, m->base, FIT_NO_LIMIT, m->program, &e);
	t.stopped = run->stopped;
	t.settled = run->settled;
	if (rc == 0)
		rc = replays_open(&all, run->folder, &e);
	if (rc == 0) {
		rc = answer_cards(m, &t, run, &all);
		*cwd = pool_strdup(m->pool, trace_header(all.list[0].trace)->cwd);
		replays_close(&all);
	}
	m->runs->changes = m->runs->calls = NULL;
	if (rc) {
		t.failed = pool_strdup(m->pool, e.msg);
		t.row = NULL;
	}
	return t;
}

/* The words, the numbers and the costs of all that is changed at once: what changes the numbers most decides. */
static void describe(struct fit_tried *t, const struct able *able, const bool with[REMEDIES], struct pool *pool)
{
	for (size_t i = 0; i < REMEDIES; i++) {
		const struct remedy *r = &remedies[i];
		const char *numbers = able->numbers[i] ? able->numbers[i] : r->numbers;

		if (!with[i])
			continue;
		if (t->words)
			t->words = pool_printf(pool, "%s, %s", t->words, r->words);
		else
			t->words = able->words[i] ? able->words[i] : r->words;
		t->costs = t->costs ? pool_printf(pool, "%s; %s", t->costs, r->costs) : r->costs;
		if (able->numbers[i])
			t->costs = pool_printf(pool, "%s; BatchNorm in them counts each batch twice", t->costs);
		if (!t->numbers || strcmp(numbers, "the same") != 0)
			t->numbers = numbers;
	}
}

static void keep(struct fit_menu *m, struct fit_tried t)
{
	if (m->n_tried < REMEDIES_MAX)
		m->tried[m->n_tried++] = t;
}

static void try_these(struct fit_menu *m, const struct able *able, const bool with[REMEDIES])
{
	char *changes = NULL;
	struct fit_tried t;
	struct fit_run run;
	const char *cwd;

	for (size_t i = 0; i < REMEDIES; i++) {
		char *longer = with[i] ? xasprintf("%s%s%s", str_given(changes), str_if(changes != NULL, ","), remedies[i].name)
				       : NULL;

		if (longer) {
			free(changes);
			changes = longer;
		}
	}
	m->say("with %s: a dry run without a limit\n", changes);
	t = run_with(m, changes, able->calls, &run, &cwd);
	fit_run_release(&run);
	describe(&t, able, with, m->pool);
	keep(m, t);
	free(changes);
}

/* The first card on which it fits. */
static const struct card_model *smallest_card(const struct fit_menu *m, const struct fit_tried *t)
{
	for (size_t i = 0; t->row && i < m->n; i++)
		if (fit_remedy_fits(&t->row[i]))
			return m->card[i];
	return NULL;
}

bool fit_remedies_run(struct fit_menu *m, const struct fit_patch *p, char *const *words, const struct card_model *card)
{
	char *memory = card->name ? NULL : xasprintf("%" PRIu64, card->memory);
	const struct card_model *model = card->name ? card : m->base;
	struct err e = {0};
	struct what_if_row row;
	struct replays all;
	struct fit_run run;
	bool good = (p ? fit_patch_run(m->runs, &run, p, model, memory, words, &e)
		       : fit_run(m->runs, &run, model, memory, words, &e)) == 0 &&
		    run.fits && replays_open(&all, run.folder, &e) == 0;

	if (good) {
		good = m->answer(m->of, &row, &all, &run, card) == 0 && fit_remedy_fits(&row);
		replays_close(&all);
	}
	fit_run_release(&run);
	free(memory);
	return good;
}

/* The same as edits, for each change that helps by itself. */
static void try_patches(struct fit_menu *m, const json_t *told)
{
	for (size_t i = 0; i < m->n_tried; i++) {
		struct fit_tried *t = &m->tried[i];
		const struct card_model *card = smallest_card(m, t);

		if (!card || !fit_patch_read(&t->patch, told, t->changes, m->pool))
			continue;
		m->say("%s as an edit of '%s': a dry run on %s\n", t->changes, t->patch.file, card->id);
		if (fit_remedies_run(m, &t->patch, m->program, card))
			t->patch.ran_on = card;
	}
}

static bool fits_everywhere(const struct fit_menu *m, const struct fit_tried *t)
{
	for (size_t i = 0; t->row && i < m->n; i++)
		if (!fit_remedy_fits(&t->row[i]))
			return false;
	return t->row != NULL;
}

static bool any_fits_everywhere(const struct fit_menu *m)
{
	for (size_t i = 0; i < m->n_tried; i++)
		if (fits_everywhere(m, &m->tried[i]))
			return true;
	return false;
}

static size_t count(const bool with[REMEDIES])
{
	size_t n = 0;

	for (size_t i = 0; i < REMEDIES; i++)
		n += with[i];
	return n;
}

/* First without what makes the numbers less precise. */
static void try_together(struct fit_menu *m, const struct able *able)
{
	size_t bf16 = remedy_named("bf16");
	bool with[REMEDIES];

	memcpy(with, able->is, sizeof(with));
	with[bf16] = false;
	if (!any_fits_everywhere(m) && count(with) > 1)
		try_these(m, able, with);
	with[bf16] = able->is[bf16];
	if (!any_fits_everywhere(m) && with[bf16] && count(with) > 1)
		try_these(m, able, with);
}

void fit_remedies_try(struct fit_menu *m)
{
	const char *steps = m->runs->steps, *cwd = "";
	bool with[REMEDIES] = {false};
	struct fit_tried first;
	struct fit_run run;
	struct able able;

	m->began = m->runs->n;
	m->say("which changes apply to the program: a dry run without a limit\n");
	if (m->grows)
		m->runs->steps = SOON;
	m->runs->batches = fit_batches(m);
	first = run_with(m, FIRST, "", &run, &cwd);
	m->runs->steps = steps;
	m->runs->batches = NULL;
	m->failed = first.failed;
	if (first.failed) {
		fit_run_release(&run);
		return;
	}
	able = able_read(&run, cwd, m->pool);
	m->trains = is_told(run.told, "trains");
	for (size_t i = 0; i < REMEDIES; i++) {
		memset(with, 0, sizeof(with));
		with[i] = true;
		if (!able.is[i] || (m->grows && strcmp(remedies[i].name, "no_grad") != 0))
			continue;
		if (strcmp(remedies[i].name, FIRST) != 0) {
			try_these(m, &able, with);
			continue;
		}
		describe(&first, &able, with, m->pool);
		keep(m, first);
	}
	if (!m->grows || (m->n_tried && m->tried[0].row && m->tried[0].settled))	/* it does no more */
		try_together(m, &able);
	try_patches(m, run.told);
	fit_batches_try(m, run.told);
	fit_run_release(&run);
}
