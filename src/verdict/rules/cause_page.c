/* SPDX-License-Identifier: Apache-2.0
 * A cause without a failure (see cause_page.h).
 */
#include "verdict/rules/cause_page.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "case/case.h"
#include "verdict/rules/expr.h"
#include "verdict/rules/template.h"

void samples_observe(struct casefile *c)
{
#define SAMPLE_TEXT(fact, value)   fact_set_text(c, FACT_##fact, value);
#define SAMPLE_NUMBER(fact, value) fact_set_number(c, FACT_##fact, value);
#include "kb/samples.def"
}

static struct casefile *case_of_samples(struct pool *pool)
{
	struct casefile *c = xcalloc(1, sizeof(*c));

	case_init(c, pool);
	samples_observe(c);
	return c;
}

static struct said *find_text(struct said *list, const char *text)
{
	while (list && strcmp(list->text, text) != 0)
		list = list->next;
	return list;
}

/* Are these all of the lines, or some of them? */
static bool has_lines(const char *all, const char *lines)
{
	size_t len = strlen(lines);

	for (const char *at = all; (at = strstr(at, lines)) != NULL; at++)
		if ((at == all || at[-1] == '\n') && (at[len] == '\0' || at[len] == '\n'))
			return true;
	return false;
}

static struct said *find_command(struct said *list, const char *command)
{
	while (list && !(list->command && command && has_lines(list->command, command)))
		list = list->next;
	return list;
}

static void said_add(struct said **list, struct said s, struct pool *pool)
{
	while (*list)
		list = &(*list)->next;
	*list = pool_alloc(pool, sizeof(**list));
	**list = s;
}

struct said *cause_reasons(const struct cause *c, struct pool *pool)
{
	static const char *const words[] = {"possible", "likely", "certain"};
	struct casefile *f = case_of_samples(pool);
	struct said *list = NULL;

	for (int sure = KB_CERTAIN; sure >= KB_POSSIBLE; sure--)
		for (const struct when *w = AT(c->when); w; w = AT(w->next)) {
			char *text = AT(w->because) && (int)w->sure == sure ? template_expand(AT(w->because), f, pool)
									    : NULL;

			if (text && !find_text(list, text))
				said_add(&list, (struct said){.source = words[sure], .text = text}, pool);
		}
	free(f);
	return list;
}

/* Is it said when nothing is known? Then it is the general version of its command. */
static bool fix_is_general(const struct advice *a, const struct casefile *nothing)
{
	struct value v = AT(a->guard) ? expr_eval(AT(a->guard), nothing) : value_flag(true);

	return v.known && v.number != 0;
}

/* A page has no "or" before its first fix. */
static const char *without_or(const char *text)
{
	return str_starts(text, "or ") ? text + 3 : str_starts(text, "and ") ? text + 4 : text;
}

struct said *cause_fixes(const struct cause *c, struct pool *pool)
{
	struct casefile *f = case_of_samples(pool), *nothing = xcalloc(1, sizeof(*nothing));
	struct said *list = NULL;

	case_init(nothing, pool);
	for (const struct advice *a = AT(c->fix); a; a = AT(a->next)) {
		const char *text = template_expand(AT(a->text), f, pool);
		const char *command = AT(a->command) ? template_expand(AT(a->command), f, pool) : NULL;
		struct said *same;

		if (!text || (AT(a->command) && !command))
			continue;
		text = list ? text : without_or(text);
		if ((same = find_command(list, command)) != NULL) {
			if (fix_is_general(a, nothing) && !strchr(same->command, '\n'))
				same->text = same == list ? without_or(text) : text;
		} else if ((same = find_text(list, text)) != NULL) {	/* for another kind of container, say */
			if (command)
				same->command =
					same->command ? pool_printf(pool, "%s\n%s", same->command, command) : command;
		} else {
			said_add(&list, (struct said){.text = text, .command = command}, pool);
		}
	}
	free(nothing);
	free(f);
	return list;
}
