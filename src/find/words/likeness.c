/* SPDX-License-Identifier: Apache-2.0
 * Which causes a text is like (see likeness.h).
 */
#include "find/words/likeness.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "knowledge/likeness.h"
#include "read/text/said.h"

#define WORD_MIN	2	/* as tools/learn_words.py has them */
#define WORD_MAX	24
#define PAIR_MAX	(2 * WORD_MAX + 1)
#define FAILING		2	/* times that a word of a line that says what failed counts; as learned */
#define WORDS_SHOWN	4
#define WORDS_ALIKE	4	/* with 2, as many reports have the right cause first, but short errors that are not known get one, too */

#define NO_FAILURE	"none"	/* the row of clean logs and unrelated failures */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct like_table *learned;

void likeness_learned(const struct like_table *t)
{
	learned = t;
}

struct word {
	const char *s;
	size_t len;
};

static uint64_t hash_word(const struct word *word)
{
	return map_hash_bytes(0, word->s, word->len);
}

static bool same_word(const void *list, uint32_t i, const void *key)
{
	const struct word *w = key;
	const char *has = ((const char *const *)list)[i];

	return !strncmp(has, w->s, w->len) && !has[w->len];
}

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static void add_word(struct text_words *w, struct pool *pool, const char *low, size_t len, bool fails)
{
	struct word key = {low, len};
	uint32_t i;

	if (w->n == LIKENESS_WORDS_MAX)
		return;
	i = map_put(&w->map, hash_word(&key), same_word, w->list, &key, (uint32_t)w->n);
	if (i != w->n) {
		w->failing[i] |= fails;
		return;
	}
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 256;
		w->list = xrealloc(w->list, w->room, sizeof(*w->list));
		w->failing = xrealloc(w->failing, w->room, sizeof(*w->failing));
	}
	w->failing[w->n] = fails;
	w->list[w->n++] = pool_copy(pool, low, len);
}

/* The next word, without numbers before it, which belong to one text alone. False: the line ends. */
static bool next_word(const char **at, struct word *word)
{
	const char *s = *at, *end = s;

	if (!*s)
		return false;
	while (is_of_word(*end))
		end++;
	while (s < end && !isalpha((unsigned char)*s))
		s++;
	*word = (struct word){s, (size_t)(end - s)};
	while (word->len && s[word->len - 1] == '_')
		word->len--;
	*at = end + (*end != '\0');
	return true;
}

/* A line that says what failed counts more, and what its words mean depends on their neighbors: "illegal+access", "access+denied". */
bool text_words_line(struct text_words *w, struct pool *pool, const char *s)
{
	bool fails = w->n < LIKENESS_WORDS_MAX && says(s, SAID_failing);
	char pair[PAIR_MAX];	/* the word before, "+", and this one */
	size_t before = 0;
	struct word word;

	while (w->n < LIKENESS_WORDS_MAX && next_word(&s, &word)) {
		char *low = pair + before + (before > 0);

		if (word.len < WORD_MIN || word.len > WORD_MAX)
			continue;
		for (size_t k = 0; k < word.len; k++)
			low[k] = (char)tolower((unsigned char)word.s[k]);
		add_word(w, pool, low, word.len, fails);
		if (before && fails) {
			pair[before] = '+';
			add_word(w, pool, pair, before + 1 + word.len, true);
		}
		before = word.len;
		memmove(pair, low, before);
	}
	return fails;
}

void text_words_release(struct text_words *w)
{
	map_release(&w->map);
	free(w->list);
	free(w->failing);
}

bool text_words_has(const struct text_words *w, const char *word)
{
	struct word key = {word, strlen(word)};

	return map_find(&w->map, hash_word(&key), same_word, w->list, &key) != MAP_NONE;
}

/* What the words of a text say about one cause. */
struct score {
	long sum;			/* of the weights of the words in common; some speak against the cause */
	size_t n_shown;
	struct shown {
		uint16_t place;
		const char *word;
	} shown[WORDS_SHOWN];		/* the heaviest, which come first in the table: the ones to show */
};

/* A text, compared with all rows. */
struct comparison {
	const struct like_table *table;
	struct score *score;		/* of each row */
	double length;			/* of the text: that of its words, each as rare as it is; a text as long as another is worth as much */
};

static void show_word(struct score *score, uint16_t place, const char *word)
{
	size_t at = score->n_shown;

	while (at > 0 && score->shown[at - 1].place > place)
		at--;
	if (at == WORDS_SHOWN)
		return;
	score->n_shown += score->n_shown < WORDS_SHOWN;
	memmove(&score->shown[at + 1], &score->shown[at], (score->n_shown - at - 1) * sizeof(*score->shown));
	score->shown[at] = (struct shown){place, word};
}

static void compare_word(struct comparison *c, const struct like_word *word, bool fails)
{
	const struct like_weight *w = AT(c->table->weights) + word[0].first, *end = AT(c->table->weights) + word[1].first;
	int times = fails ? FAILING : 1;

	for (; w < end; w++) {
		struct score *score = &c->score[w->row];

		if (!w->row)
			c->length += (double)w->weight * w->weight * times * times;
		score->sum += times * w->weight;
		if (w->weight > 0)
			show_word(score, w->place, AT(word->s));
	}
}

static struct comparison compare(const struct text_words *w)
{
	struct comparison c = {.table = learned ? learned : like_get()};

	c.score = xcalloc(c.table->n_rows, sizeof(*c.score));
	for (size_t i = 0; i < w->n; i++) {
		const struct like_word *word = like_find(c.table, w->list[i]);

		if (word)
			compare_word(&c, word, w->failing[i]);
	}
	c.length = sqrt(c.length);
	return c;
}

static const char *cause_of(const struct comparison *c, size_t row)
{
	return AT(AT(c->table->rows)[row].cause);
}

static double weight_of(const struct comparison *c, size_t row)
{
	return (double)c->score[row].sum / c->length;
}

/* "illegal access, kernel": neighbors as people write them. */
static const char *join_words(const struct score *score, struct pool *pool)
{
	char *all = pool_strdup(pool, "");

	for (size_t i = 0; i < score->n_shown; i++)
		all = pool_printf(pool, "%s%s%s", all, i ? ", " : "", score->shown[i].word);
	for (char *at = all; (at = strchr(at, '+')) != NULL;)
		*at = ' ';
	return all;
}

static bool is_of_none(const struct comparison *c, size_t row)
{
	return !strcmp(cause_of(c, row), NO_FAILURE);
}

size_t likeness_rank(const struct text_words *w, struct likeness *list, size_t max, struct pool *pool)
{
	struct comparison c = compare(w);
	size_t n = 0;

	for (size_t i = 1; c.length > 0 && i < c.table->n_rows; i++) {
		double weight = weight_of(&c, i);
		size_t at = n;

		while (at > 0 && list[at - 1].weight < weight)
			at--;
		if (c.score[i].n_shown < WORDS_ALIKE || at == max || is_of_none(&c, i))
			continue;
		n += n < max;
		memmove(list + at + 1, list + at, (n - at - 1) * sizeof(*list));
		list[at] = (struct likeness){cause_of(&c, i), join_words(&c.score[i], pool), weight};
	}
	free(c.score);
	return n;
}

double likeness_lead(const struct text_words *w)
{
	struct comparison c = compare(w);
	double best = 0, none = 0;
	bool any = false;

	for (size_t i = 1; c.length > 0 && i < c.table->n_rows; i++) {
		double weight = weight_of(&c, i);

		if (is_of_none(&c, i)) {
			none = weight;
		} else if (c.score[i].n_shown >= WORDS_ALIKE && (!any || weight > best)) {
			best = weight;
			any = true;
		}
	}
	free(c.score);
	return any && w->n < LIKENESS_WORDS_MAX ? best - none : -INFINITY;
}
