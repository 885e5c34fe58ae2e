/* SPDX-License-Identifier: Apache-2.0
 * Reads Python into statements (see statements.h).
 */
#include "find/code/statements.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define DEEP 64			/* blocks in each other */
#define STATEMENTS_MAX 100000

struct reader {
	const char *s, *end;
	uint32_t line;
	char *raw, *text;		/* of the statement that is read; as large as the file */
	size_t n;
	int depth;			/* of brackets */
	bool good;
};

static void put(struct reader *r, char raw, char text)
{
	r->raw[r->n] = raw;
	r->text[r->n++] = text;
}

/* A string literal, from its quote on. Its lines count, what it says does not. */
static void read_string(struct reader *r)
{
	char quote = *r->s;
	bool triple = r->end - r->s >= 3 && r->s[1] == quote && r->s[2] == quote, raw = false;
	size_t skip = triple ? 3 : 1;

	for (const char *p = r->s; r->n && isalpha((unsigned char)p[-1]); p--)
		raw |= p[-1] == 'r' || p[-1] == 'R';
	for (size_t i = 0; i < skip; i++)
		put(r, quote, quote);
	for (r->s += skip; r->s < r->end; r->s++) {
		if (*r->s == '\\' && r->s + 1 < r->end && !raw) {
			put(r, *r->s++, ' ');
			r->line += *r->s == '\n';
			put(r, *r->s == '\n' ? ' ' : *r->s, ' ');
			continue;
		}
		if (*r->s == quote && (!triple || (r->end - r->s >= 3 && r->s[1] == quote && r->s[2] == quote))) {
			for (size_t i = 0; i < skip; i++)
				put(r, quote, quote);
			r->s += skip;
			return;
		}
		if (*r->s == '\n') {
			if (!triple)
				break;
			r->line++;
		}
		put(r, *r->s == '\n' ? ' ' : *r->s, ' ');
	}
	r->good = false;
}

/* To the end of a logical line, or to a semicolon. */
static bool read_statement(struct reader *r)
{
	r->n = 0;
	r->depth = 0;
	while (r->s < r->end) {
		char c = *r->s;

		if (c == '"' || c == '\'') {
			read_string(r);
			continue;
		}
		if (c == '#') {
			while (r->s < r->end && *r->s != '\n')
				r->s++;
			continue;
		}
		r->s++;
		if (c == '\\' && r->s < r->end && *r->s == '\n') {
			r->s++;
			r->line++;
			c = ' ';
		} else if (c == '\n') {
			r->line++;
			if (!r->depth)
				return false;
			c = ' ';
		} else if (c == ';' && !r->depth) {
			return true;
		}
		r->depth += strchr("([{", c) != NULL;
		r->depth -= strchr(")]}", c) != NULL;
		r->good &= r->depth >= 0;
		put(r, c, c);
	}
	return false;
}

bool code_begins(const struct statement *s, const char *word)
{
	size_t n = strlen(word);

	return !strncmp(s->text, word, n) && !isalnum((unsigned char)s->text[n]) && s->text[n] != '_';
}

/* Where a compound statement's block begins, if it is on the same line. */
static bool has_inline_block(const struct statement *s)
{
	static const char *const words[] = {"if",  "elif",   "else",	"for", "while", "with",
					    "try", "except", "finally", "def", "class", "async"};
	bool compound = false;
	size_t n = strlen(s->text);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		compound |= code_begins(s, words[i]);
	return compound && n && s->text[n - 1] != ':';
}

static const char *name_of_def(const struct statement *s, struct pool *pool)
{
	const char *p = s->text + (code_begins(s, "async") ? strlen("async") : 0);

	p += strspn(p, " ");
	if (strncmp(p, "def ", 4))
		return NULL;
	p += 4 + strspn(p + 4, " ");
	return pool_copy(pool, p, strcspn(p, " (["));
}

static void place_statement(struct code *c, int i, int *open, int *n_open, struct pool *pool)
{
	struct statement *s = &c->statement[i];
	const char *name;

	while (*n_open && c->statement[open[*n_open - 1]].indent >= s->indent)
		--*n_open;
	s->around = *n_open ? open[*n_open - 1] : -1;
	s->function = s->around >= 0 ? c->statement[s->around].function : -1;
	for (int f = c->n_functions - 1; f >= 0 && s->around >= 0; f--)
		if (c->function[f].def == s->around)
			s->function = f;
	if (*n_open < DEEP)
		open[(*n_open)++] = i;
	if ((name = name_of_def(s, pool)) != NULL)
		c->function[c->n_functions++] = (struct function){name, i, s->function};
	if (has_inline_block(s))
		s->alone = false;
}

bool code_read(struct code *c, const char *file, const char *text, size_t len, struct pool *pool)
{
	struct reader r = {.s = text,
			   .end = text + len,
			   .line = 1,
			   .raw = xcalloc(1, len + 1),
			   .text = xcalloc(1, len + 1),
			   .good = true};
	size_t lines = 2;
	int open[DEEP], n_open = 0;
	bool more = false;

	for (const char *s = text; s < r.end; s++)
		lines += *s == '\n' || *s == ';';
	*c = (struct code){.file = file};
	if (lines < STATEMENTS_MAX) {
		c->statement = pool_alloc(pool, lines * sizeof(*c->statement));
		c->function = pool_alloc(pool, lines * sizeof(*c->function));
	}
	while (c->statement && r.good && r.s < r.end) {
		struct statement s = {.line = r.line, .alone = !more};
		const char *begin = r.s;
		size_t first;

		more = read_statement(&r);
		s.last = r.line - (r.s > begin && r.s[-1] == '\n');
		for (first = 0; first < r.n && isspace((unsigned char)r.raw[first]); first++)
			s.indent += 1;
		while (r.n > first && isspace((unsigned char)r.raw[r.n - 1]))
			r.n--;
		if (r.n == first)
			continue;
		if (!s.alone)
			s.indent = c->n ? c->statement[c->n - 1].indent : 0;
		s.alone = s.alone && !more && s.line == s.last;
		s.raw = pool_copy(pool, r.raw + first, r.n - first);
		s.text = pool_copy(pool, r.text + first, r.n - first);
		c->statement[c->n] = s;
		place_statement(c, c->n, open, &n_open, pool);
		c->n++;
	}
	free(r.raw);
	free(r.text);
	return c->statement && r.good && !r.depth;
}

int code_at(const struct code *c, uint32_t line)
{
	for (int i = 0; i < c->n; i++)
		if (c->statement[i].line <= line && line <= c->statement[i].last)
			return i;
	return -1;
}

bool code_within(const struct code *c, int i, int around)
{
	while (i >= 0 && i != around)
		i = c->statement[i].around;
	return i >= 0;
}

int code_loop(const struct code *c, int i)
{
	int function = c->statement[i].function;

	for (int k = c->statement[i].around; k >= 0 && c->statement[k].function == function; k = c->statement[k].around)
		if (code_begins(&c->statement[k], "for") || code_begins(&c->statement[k], "while"))
			return k;
	return -1;
}
