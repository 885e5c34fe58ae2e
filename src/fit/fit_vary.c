/* SPDX-License-Identifier: Apache-2.0
 * Which values of an option fit: the program's words for each, and the search for the largest.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "fit/fit.h"

#define PLACEHOLDER "{}"

int fit_vary_parse(struct fit_vary *v, const char *text, struct err *e)
{
	const char *is = strchr(text, '='), *dots = is ? strstr(is, "..") : NULL;
	char *from = dots ? xasprintf("%.*s", (int)(dots - is - 1), is + 1) : NULL;
	bool good = dots && is > text && str_u64(from, &v->from) && str_u64(dots + 2, &v->to) && v->from > 0 &&
		    v->to >= v->from;

	free(from);
	if (!good) {
		err_set(e, -EINVAL, "--vary takes a name and two numbers, not '%s'", text);
		return err_hint(e, "for example --vary batch-size=4..64");
	}
	text += strspn(text, "-");
	v->name = xasprintf("%.*s", (int)(is - text), text);
	return 0;
}

/* The same option: "--batch_size" is "batch-size". Its length in the word, 0: another one. */
static size_t names_option(const char *word, const char *name)
{
	size_t dashes = strspn(word, "-"), i = 0;

	for (; name[i]; i++) {
		char a = word[dashes + i], b = name[i];

		if ((a == '_' ? '-' : a) != (b == '_' ? '-' : b))
			return 0;
	}
	return dashes + i;
}

static char *with_value(const char *word, uint64_t value)
{
	const char *at = strstr(word, PLACEHOLDER);

	if (!at)
		return xstrdup(word);
	return xasprintf("%.*s%" PRIu64 "%s", (int)(at - word), word, value, at + strlen(PLACEHOLDER));
}

static bool has_placeholder(char *const *words)
{
	for (; *words; words++)
		if (strstr(*words, PLACEHOLDER))
			return true;
	return false;
}

/* "--name VALUE", "--name=VALUE" and "name=VALUE" become the new value. True: word `i` has it. */
static bool replace_value(char **out, size_t i, const struct fit_vary *v, uint64_t value)
{
	size_t len = names_option(out[i], v->name);
	char *old = out[i];

	if (len && old[len] == '=') {
		out[i] = xasprintf("%.*s=%" PRIu64, (int)len, old, value);
	} else if (len && !old[len] && old[0] == '-' && out[i + 1]) {
		old = out[i + 1];
		out[i + 1] = xasprintf("%" PRIu64, value);
	} else {
		return false;
	}
	free(old);
	return true;
}

char **fit_vary_words(const struct fit_vary *v, char *const *words, uint64_t value)
{
	size_t n = 0;
	char **out;
	bool found = has_placeholder(words);

	while (words[n])
		n++;
	out = xcalloc(n + 3, sizeof(*out));
	for (size_t i = 0; i < n; i++)
		out[i] = with_value(words[i], value);
	for (size_t i = 1; i < n && !found; i++)
		found = replace_value(out, i, v, value);
	if (!found) {
		out[n] = xasprintf("--%s", v->name);
		out[n + 1] = xasprintf("%" PRIu64, value);
	}
	return out;
}

void fit_words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

#define REFUSED 2			/* values that a program may fail with for another reason: batch normalization needs two samples */

/* What is known: the largest value that fits, and the smallest that does not. 0: none yet. */
struct bracket {
	uint64_t good, bad;
	uint64_t first;			/* that was tried, and with which the program ran */
	unsigned tries, guesses;
	unsigned wrong;			/* two for each guess that was outside of what was known by then */
};

static uint64_t half_way(const struct fit_vary *v, const struct bracket *b)
{
	if (b->bad)
		return b->good + (b->bad - b->good) / 2;
	return b->good > v->to / 2 ? v->to : 2 * b->good;
}

/* Near a guess that is refuted already: the first step beyond is 1, which ends the search if the guess was right, each further one goes farther. */
static uint64_t beside(const struct fit_vary *v, struct bracket *b, bool above)
{
	uint64_t middle = half_way(v, b), far = 1ull << b->wrong;

	b->wrong += b->wrong < 32 ? 2 : 0;
	if (above)
		return b->good + far < middle ? b->good + far : middle;
	return middle + far < b->bad ? b->bad - far : middle;
}

/* Every third guess is half of the way instead, in case what is expected is far off. */
static uint64_t next_value(const struct fit_vary *v, const struct fit_search *s, struct bracket *b)
{
	uint64_t last = b->bad ? b->bad - 1 : v->to, guess;

	if (!b->tries)
		return b->first;
	guess = b->tries > 1 ? s->guess(s->of, v->to) : 0;
	if (guess && guess <= b->good)
		return beside(v, b, true);
	if (guess > last)
		return beside(v, b, false);
	if (!guess || ++b->guesses % 3 == 0)
		guess = half_way(v, b);
	return guess <= b->good ? b->good + 1 : guess > last ? last : guess;
}

int fit_vary_largest(const struct fit_vary *v, const struct fit_search *s, uint64_t *largest)
{
	struct bracket b = {.first = v->from};
	unsigned refused = 0;
	int rc = 0;

	while (rc >= 0 && b.good < v->to && b.bad != b.first && b.good + 1 != b.bad) {
		uint64_t value = next_value(v, s, &b);
		bool fits = false;

		rc = s->ask(s->of, value, &fits);
		if (rc >= 0) {
			*(fits ? &b.good : &b.bad) = value;
			b.tries++;
		} else if (!b.tries && value <= v->to / 2 && refused++ < REFUSED) {
			b.first = 2 * value;
			rc = 0;
		}
	}
	*largest = b.good ? b.good : v->from - 1;
	return rc < 0 ? rc : 0;
}
