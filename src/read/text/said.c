/* SPDX-License-Identifier: Apache-2.0
 * The lists of kb/log.def (see said.h).
 */
#include "read/text/said.h"

#include <string.h>

#include "base/phrases.h"

static struct phrase rows[] = {
#define LIST(list)
#define SAID(list, said) {.words = said, .exact = false, .means = SAID_##list},
#define WRITTEN(list, said) {.words = said, .exact = true, .means = SAID_##list},
#include "kb/log.def"
};

static struct phrases lists[SAID_LISTS];

static struct phrases *list_of(enum said_list list)
{
	if (!lists[0].n)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			struct phrases *p = &lists[rows[i].means];

			p->row = p->n ? p->row : &rows[i];
			p->n++;
		}
	return &lists[list];
}

bool says_in(const char *s, size_t len, enum said_list list)
{
	return phrase_in(list_of(list), s, len) != NULL;
}

bool says(const char *s, enum said_list list)
{
	return says_in(s, strlen(s), list);
}

const char *says_at(const char *s, enum said_list list, const char **after)
{
	return says_on(s, s, list, after);
}

const char *says_on(const char *s, const char *at, enum said_list list, const char **after)
{
	struct phrase_scan scan = phrase_scan(s, strlen(s));

	scan.at = at - 1;
	if (!phrase_next(list_of(list), &scan))
		return NULL;
	*after = scan.after;
	return scan.at;
}

bool says_just(const char *s, size_t len, enum said_list list)
{
	return phrase_whole(list_of(list), s, len) != NULL;
}

const char *says_before(const char *s, enum said_list list, size_t *i)
{
	return phrase_after(list_of(list), s, i);
}

const char *said_words(enum said_list list, size_t i)
{
	return list_of(list)->row[i].words;
}

size_t said_rows(enum said_list list)
{
	return list_of(list)->n;
}
