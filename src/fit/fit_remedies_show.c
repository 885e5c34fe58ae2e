/* SPDX-License-Identifier: Apache-2.0
 * What was tried, as text and as JSON (see fit_remedies.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "fit/fit_remedies.h"

#define CARDS_NAMED 6
/* What needs the framework's own options, or other weights. */
#define NOT_TRIED(trains) \
	((trains) ? "gradient accumulation, sharding, offload, 8-bit optimizers" : "sharding, offload, smaller weights")

/* The cards on which it fits, the smallest first; what else it needs there. */
static void print_cards(FILE *out, const struct fit_menu *m, const struct what_if_row *row)
{
	size_t fit = 0, n = 0;

	for (size_t i = 0; i < m->n; i++)
		fit += fit_remedy_fits(&row[i]);
	if (!fit)
		fputs("none", out);
	else if (fit == m->n && fit > 1)
		fprintf(out, "all %zu", fit);
	for (size_t i = 0; i < m->n && (fit < m->n || fit == 1); i++) {
		if (!fit_remedy_fits(&row[i]))
			continue;
		if (n++ < CARDS_NAMED)
			fprintf(out, "%s%s%s", str_if(n > 1, ", "), m->card[i]->id,
				str_if(row[i].answer.doubts & ~(1u << REPLAY_LATER), " (likely)"));
	}
	if (n > CARDS_NAMED)
		fprintf(out, " and %zu more", n - CARDS_NAMED);
}

static void print_tried(FILE *out, const struct fit_menu *m, const struct fit_tried *t, int width)
{
	char peak[32];

	if (!t->row) {
		fprintf(out, "  %-*s  the program fails with it: %s\n", width, t->words, t->failed);
		return;
	}
	fprintf(out, "  %-*s  %-10s  %-14s  ", width, t->words, format_bytes(peak, sizeof(peak), (double)t->peak),
		t->numbers);
	print_cards(out, m, t->row);
	if (t->row[0].growth.bytes)
		fprintf(out, "; +%s per step", format_bytes(peak, sizeof(peak), (double)t->row[0].growth.bytes));
	putc('\n', out);
}

/* Of PyTorch's settings, which cost nothing; played back with what the program did as it is. */
static void print_settings(FILE *out, const struct fit_menu *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->row[i].change)
			fprintf(out, "  %s: fits on %s, played back; the numbers stay the same\n", m->row[i].change,
				m->card[i]->id);
}

/* Without a margin: to be pasted, or read by patch(1). */
static void print_diff(FILE *out, const struct fit_patch *p)
{
	char *diff = xstrdup(p->diff);

	str_make_plain(diff);
	fprintf(out, "%s\n", diff);
	free(diff);
}

static void print_patch(FILE *out, const struct fit_tried *t)
{
	if (!t->patch.ran_on)
		return;
	fprintf(out, "  %s, as an edit that ran on a simulated %s; the numbers: %s\n", t->words, t->patch.ran_on->id,
		t->numbers);
	print_diff(out, &t->patch);
}

static void print_batch(FILE *out, const struct fit_batch *b)
{
	fprintf(out, "  a batch of %" PRIu64 " instead of %" PRIu64 " ran on a simulated %s; a step learns from fewer samples\n",
		b->size, b->of, b->card->id);
	if (b->command)
		fprintf(out, "      %s\n\n", b->command);
	else
		print_diff(out, &b->patch);
}

/* The table above says that it fits. */
static void print_refuted(FILE *out, const struct fit_batch *b)
{
	fprintf(out,
		"  a batch of %" PRIu64 " instead of %" PRIu64 " was tried on a simulated %s, and did not run there: ",
		b->size, b->of, b->card->id);
	fputs("what was said to fit does not; --vary finds what does\n", out);
}

void fit_remedies_print(FILE *out, const struct fit_menu *m)
{
	size_t width = strlen("CHANGE");
	unsigned runs = m->runs->n - m->began;

	for (size_t i = 0; i < m->n_tried; i++)
		width = strlen(m->tried[i].words) > width ? strlen(m->tried[i].words) : width;
	fprintf(out, "  where it does not fit: the program ran %u more time%s, changed while it ran\n", runs,
		runs == 1 ? "" : "s");
	print_settings(out, m);
	if (m->failed)
		fprintf(out, "  nothing was tried: %s\n", m->failed);
	else if (!m->n_tried)
		fputs("  no change that cuwhy can make applies to it\n", out);
	else
		fprintf(out, "\n  %-*s  %-10s  %-14s  %s\n", (int)width, "CHANGE", "PEAK", "NUMBERS", "FITS ON");
	for (size_t i = 0; i < m->n_tried; i++)
		print_tried(out, m, &m->tried[i], (int)width);
	if (m->n_tried)
		putc('\n', out);
	for (size_t i = 0; i < m->n_tried; i++)
		if (m->tried[i].row && !strchr(m->tried[i].changes, ','))
			fprintf(out, "  %s costs: %s\n", m->tried[i].words, m->tried[i].costs);
	if (m->grows)
		fputs("  its memory grows: what only needs less at once was not tried\n", out);
	else if (!m->failed)
		fprintf(out, "  not tried: %s\n", NOT_TRIED(m->trains));
	putc('\n', out);
	for (size_t i = 0; i < m->n_tried; i++)
		print_patch(out, &m->tried[i]);
	for (size_t i = 0; i < m->n_batches; i++)
		print_batch(out, &m->batch[i]);
	for (size_t i = 0; i < m->n_refuted; i++)
		print_refuted(out, &m->refuted[i]);
}

static json_t *patch_json(const struct fit_patch *p, const struct card_model *ran_on)
{
	return JSON_OF(J_TEXT("file", p->file), J_TEXT("diff", p->diff), J_TEXT("gpu", ran_on->id));
}

static json_t *batches_json(const struct fit_menu *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_batches; i++) {
		const struct fit_batch *b = &m->batch[i];

		json_array_append_new(list, JSON_OF(J_TEXT("gpu", b->card->id), J_INT("size", b->size),
						    J_INT("of", b->of), J_TEXT("command", b->command),
						    J_IF(!b->command, J_VALUE("patch", patch_json(&b->patch, b->card)))));
	}
	return list;
}

static json_t *refuted_json(const struct fit_menu *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_refuted; i++)
		json_array_append_new(list, JSON_OF(J_TEXT("gpu", m->refuted[i].card->id),
						    J_INT("size", m->refuted[i].size), J_INT("of", m->refuted[i].of)));
	return list;
}

static json_t *tried_json(const struct fit_menu *m, const struct fit_tried *t)
{
	json_t *changes = json_array(), *cards = json_array();

	for (const char *at = t->changes; *at; at += strcspn(at, ",") + (strchr(at, ',') != NULL))
		json_append_text(changes, "%.*s", (int)strcspn(at, ","), at);
	for (size_t i = 0; t->row && i < m->n; i++) {
		json_t *card = what_if_card_json(&t->row[i]);

		JSON_ADD(card, J_BOOL("fits", fit_remedy_fits(&t->row[i])));
		json_array_append_new(cards, card);
	}
	return JSON_OF(J_VALUE("changes", changes), J_TEXT("words", t->words), J_TEXT("numbers", t->numbers),
		       J_TEXT("costs", t->costs), J_TEXT("failed", t->failed),
		       J_INT_OR_NULL("steps", t->stopped, t->stopped), J_BOOL("settled", t->settled),
		       J_BYTES("peak_allocated", t->row ? t->peak : UINT64_MAX), J_VALUE("cards", cards),
		       J_IF(t->patch.ran_on != NULL, J_VALUE("patch", patch_json(&t->patch, t->patch.ran_on))));
}

json_t *fit_remedies_json(const struct fit_menu *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_tried; i++)
		json_array_append_new(list, tried_json(m, &m->tried[i]));
	return JSON_OF(J_INT("runs", m->runs->n - m->began), J_VALUE("tried", list),
		       J_VALUE("batches", batches_json(m)), J_VALUE("refuted", refuted_json(m)),
		       J_TEXT("not_tried", m->grows ? NULL : NOT_TRIED(m->trains)), J_TEXT("failed", m->failed));
}
