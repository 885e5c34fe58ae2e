/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy fit`: the batch that fits, as a command or as an edit with which the program ran.
 *
 * How much of the batch fits on a card was played back; how large it is, the program's models were asked. Where exactly one word of the command or
 * one number of the program's file has that size, the smaller one takes its place, and the program runs on that card.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "fit/fit_remedies.h"

#define WORDS_MAX 4096
#define HARMLESS  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+@%"	/* in a shell */

/* 0: not known, or all of it. */
static uint64_t millionths(const struct what_if_row *row)
{
	const struct smaller *s = &row->smaller;

	return s->known && s->largest ? s->largest * 1000000 / smaller_whole(s) : 0;
}

const char *fit_batches(const struct fit_menu *m)
{
	const char *list = NULL;
	size_t n = 0;

	for (size_t i = 0; i < m->n && n < BATCHES_MAX && !m->grows; i++) {
		uint64_t part = millionths(&m->row[i]);

		if (!part)
			continue;
		list = list ? pool_printf(m->pool, "%s,%" PRIu64, list, part) : pool_printf(m->pool, "%" PRIu64, part);
		n++;
	}
	return list;
}

static uint64_t batch_told(const json_t *told)
{
	const json_t *one;
	size_t i;

	json_array_foreach(told, i, one) {
		json_int_t size = json_integer_value(json_object_get(one, "batch"));

		if (size > 0)
			return (uint64_t)size;
	}
	return 0;
}

/* "64" and "--batch-size=64": where the number begins. NULL: the word is neither. */
static const char *number_in(const char *word, uint64_t number)
{
	const char *is = strrchr(word, '='), *at = is ? is + 1 : word;
	uint64_t value;

	return str_u64(at, &value) && value == number ? at : NULL;
}

/* The program's words with the smaller size; free as fit_vary_words. NULL: it is not known which word that is. */
static char **words_with(char *const *program, uint64_t of, uint64_t size)
{
	char **words;
	size_t n = 0, at = 0, found = 0;

	for (; program[n]; n++)
		if (n > 0 && number_in(program[n], of)) {
			at = n;
			found++;
		}
	if (found != 1)
		return NULL;
	words = xcalloc(n + 1, sizeof(*words));
	for (size_t i = 0; i < n; i++)
		words[i] = xstrdup(program[i]);
	free(words[at]);
	words[at] = xasprintf("%.*s%" PRIu64, (int)(number_in(program[at], of) - program[at]), program[at], size);
	return words;
}

static const char *command_of(char *const *words, struct pool *pool)
{
	const char *command = NULL;
	struct buf b;

	buf_init(&b, WORDS_MAX);
	for (; *words; words++) {
		bool plain = **words && !(*words)[strspn(*words, HARMLESS)];

		if (!plain && strchr(*words, '\''))
			break;
		buf_printf(&b, plain ? "%s%s" : "%s'%s'", str_if(b.len > 0, " "), *words);
	}
	if (!*words && !b.full)
		command = pool_strdup(pool, b.data);
	buf_release(&b);
	return command;
}

static void say_batch(const struct fit_menu *m, struct fit_batch *b)
{
	b->tried = true;
	m->say("a batch of %" PRIu64 " instead of %" PRIu64 ": a dry run on %s\n", b->size, b->of, b->card->id);
}

static bool runs_with_words(struct fit_menu *m, struct fit_batch *b)
{
	char **words = words_with(m->program, b->of, b->size);
	bool good = false;

	b->command = words ? command_of(words, m->pool) : NULL;
	if (b->command) {
		say_batch(m, b);
		m->runs->other_words = true;
		good = fit_remedies_run(m, NULL, words, b->card);
		m->runs->other_words = false;
	}
	fit_words_free(words);
	return good;
}

static bool runs_with_edit(struct fit_menu *m, struct fit_batch *b, const json_t *told, uint64_t part)
{
	b->command = NULL;
	if (!fit_patch_read(&b->patch, told, pool_printf(m->pool, "batch %" PRIu64, part), m->pool))
		return false;
	say_batch(m, b);
	return fit_remedies_run(m, &b->patch, m->program, b->card);
}

void fit_batches_try(struct fit_menu *m, const json_t *told)
{
	uint64_t of = batch_told(told);
	size_t n = 0;

	for (size_t i = 0; i < m->n && n < BATCHES_MAX && of && !m->grows; i++) {
		uint64_t part = millionths(&m->row[i]);
		struct fit_batch b = {.card = m->card[i], .of = of, .size = of * part / 1000000};

		n += part > 0;
		if (!b.size || b.size >= of)
			continue;
		if (runs_with_words(m, &b) || runs_with_edit(m, &b, told, part))
			m->batch[m->n_batches++] = b;
		else if (b.tried)
			m->refuted[m->n_refuted++] = b;
	}
}
