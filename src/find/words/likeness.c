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
#include "read/text/said.h"

#define WORD_MIN	2	/* as tools/learn_words.py has them */
#define WORD_MAX	24
#define PAIR_MAX	(2 * WORD_MAX + 1)
#define FAILING		2	/* times that a word of a line that says what failed counts; as learned */
#define WORDS_SHOWN	4
#define WORDS_ALIKE	4	/* with 2, as many reports have the right cause first, but short errors that nobody knows get one, too */

#define NO_FAILURE	"none"	/* the row of clean logs and unrelated failures */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* The first row is no cause's: how rare each word is. */
static const struct likeness_row learned[] = {
#define WORDS(cause, words) {cause, words},
#include "kb/words.def"
};

struct word {
	const char *s;
	size_t len;
};

/* A word of a row. */
struct weighed {
	struct word word;
	uint64_t hash;
	long weight;		/* of the first row: how rare it is */
};

/* A row, taken apart once: a text asks for all of them more than once, and a process may have many texts. */
struct known_row {
	const char *cause;
	struct weighed *word;
	size_t n;
};

static struct known_row *known;
static size_t n_known;

static size_t count_words(const char *table)
{
	size_t n = 0;

	for (; *table; table++)
		n += *table == ' ';
	return n / 2 + 1;	/* a word and its weight */
}

static uint64_t hash_word(const struct word *word)
{
	return map_hash_bytes(0, word->s, word->len);
}

static struct known_row take_apart(const struct likeness_row *row)
{
	struct known_row known_row = {.cause = row->cause,
				      .word = xcalloc(count_words(row->words), sizeof(struct weighed))};

	for (const char *at = row->words; *at;) {
		struct weighed *w = &known_row.word[known_row.n++];
		char *next;

		w->word = (struct word){at, strcspn(at, " ")};
		w->hash = hash_word(&w->word);
		w->weight = strtol(at + w->word.len, &next, 10);
		at = next + (*next == ' ');
	}
	return known_row;
}

void likeness_learned(const struct likeness_row *rows, size_t n)
{
	for (size_t i = 0; i < n_known; i++)
		free(known[i].word);
	known = xrealloc(known, n, sizeof(*known));
	for (n_known = 0; n_known < n; n_known++)
		known[n_known] = take_apart(&rows[n_known]);
}

static void prepare_known(void)
{
	if (!known)
		likeness_learned(learned, COUNT(learned));
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

static uint32_t find_weighed(const struct text_words *w, const struct weighed *key)
{
	return map_find(&w->map, key->hash, same_word, w->list, &key->word);
}

/* Adds up the weights of the words in common; some speak against the cause. The heaviest come first in the table: they are the ones to
 * show. */
static long compare(const struct text_words *w, const struct known_row *row, struct word *shown, size_t *n_shown)
{
	long sum = 0;

	*n_shown = 0;
	for (size_t i = 0; i < row->n; i++) {
		const struct weighed *has = &row->word[i];
		uint32_t at = find_weighed(w, has);

		if (at == MAP_NONE)
			continue;
		sum += w->failing[at] ? FAILING * has->weight : has->weight;
		if (has->weight > 0 && *n_shown < WORDS_SHOWN)
			shown[(*n_shown)++] = has->word;
	}
	return sum;
}

/* A text as long as another is worth as much: the length of its words, each as rare as it is. */
static double length_of(const struct text_words *w, const struct known_row *rare)
{
	double sum = 0;

	for (size_t i = 0; i < rare->n; i++) {
		const struct weighed *has = &rare->word[i];
		double part = (double)has->weight;
		uint32_t at = find_weighed(w, has);

		if (at != MAP_NONE)
			sum += part * part * (w->failing[at] ? FAILING * FAILING : 1);
	}
	return sqrt(sum);
}

/* "illegal access, kernel": neighbors as people write them. */
static const char *join_words(const struct word *word, size_t n, struct pool *pool)
{
	char *all = pool_strdup(pool, "");

	for (size_t i = 0; i < n; i++)
		all = pool_printf(pool, "%s%s%.*s", all, i ? ", " : "", (int)word[i].len, word[i].s);
	for (char *at = all; (at = strchr(at, '+')) != NULL;)
		*at = ' ';
	return all;
}

static bool is_of_none(const struct known_row *row)
{
	return !strcmp(row->cause, NO_FAILURE);
}

size_t likeness_rank(const struct text_words *w, struct likeness *list, size_t max, struct pool *pool)
{
	double length;
	size_t n = 0;

	prepare_known();
	length = length_of(w, &known[0]);
	for (size_t i = 1; length > 0 && i < n_known; i++) {
		struct word shown[WORDS_SHOWN];
		size_t n_shown, at = n;
		double weight = (double)compare(w, &known[i], shown, &n_shown) / length;

		while (at > 0 && list[at - 1].weight < weight)
			at--;
		if (n_shown < WORDS_ALIKE || at == max || is_of_none(&known[i]))
			continue;
		n += n < max;
		memmove(list + at + 1, list + at, (n - at - 1) * sizeof(*list));
		list[at] = (struct likeness){known[i].cause, join_words(shown, n_shown, pool), weight};
	}
	return n;
}

double likeness_lead(const struct text_words *w)
{
	double length, best = 0, none = 0;
	bool any = false;

	prepare_known();
	length = length_of(w, &known[0]);
	for (size_t i = 1; length > 0 && i < n_known; i++) {
		struct word shown[WORDS_SHOWN];
		size_t n_shown;
		double weight = (double)compare(w, &known[i], shown, &n_shown) / length;

		if (is_of_none(&known[i])) {
			none = weight;
		} else if (n_shown >= WORDS_ALIKE && (!any || weight > best)) {
			best = weight;
			any = true;
		}
	}
	return any && w->n < LIKENESS_WORDS_MAX ? best - none : -INFINITY;
}
