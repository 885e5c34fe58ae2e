/* SPDX-License-Identifier: Apache-2.0
 * The lines of code that a verdict names, with their neighbors.
 */
#include "show/page_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "case/line.h"
#include "case/source.h"
#include "case/ledger.h"
#include "verdict/verdict.h"

#define NEIGHBORS	4
#define SOURCES_MAX	12
#define QUOTES_MAX	32
#define CALLERS_MAX	4

static const char *not_read(const struct source_book *from, const char *file)
{
	const char *why = source_unread(file);

	if (why)
		return why;
	return from->foreign ? "its text was not kept with the recording, and the file is not below this folder"
			     : "the file is not on this machine, or cannot be read";
}

/* The line and its neighbors, as many as there are without a gap. */
static void add_source_text(json_t *o, const char *file, uint32_t number, struct source_book *from, uint64_t since_ns)
{
	struct pool pool = {0};
	uint32_t first = number;
	bool now = false;
	json_t *text = json_array();
	const char *line = source_line(from, file, number, &pool, &now);

	while (line && first > 1 && number - first < NEIGHBORS && source_line(from, file, first - 1, &pool, NULL))
		first--;
	for (uint32_t at = first; line && at - number != NEIGHBORS + 1; at++)
		if ((line = source_line(from, file, at, &pool, NULL)) != NULL)
			json_array_append_new(text, json_text(line));
	if (json_array_size(text))
		JSON_ADD(o, J_INT("from", first),
			 J_BOOL("changed",
				now && since_ns && (uint64_t)source_written(from, file) > since_ns / 1000000000u),
			 J_SHARED("text", text));
	else
		JSON_ADD(o, J_TEXT("unread", source_line(from, file, 1, &pool, NULL) ? "the file is shorter than it was"
										     : not_read(from, file)));
	json_decref(text);
	pool_release(&pool);
}

static json_t *add_source(json_t *list, const char *role, const struct line *l, struct source_book *from,
			  uint64_t since_ns)
{
	json_t *o;

	if (!l->file || !l->number || json_array_size(list) >= SOURCES_MAX)
		return NULL;
	o = JSON_OF(J_TEXT("role", role), J_TEXT("file", l->file), J_TEXT("shown", file_shown(l->file, from->cwd)),
		    J_INT("line", l->number), J_TEXT("function", l->function ? function_base(l->function) : NULL),
		    J_TEXT("source", l->source));
	add_source_text(o, l->file, l->number, from, since_ns);
	json_array_append_new(list, o);
	return o;
}

/* The line that ran out of memory is rarely the one that holds most of it: show that one, too. */
static void add_holder_source(json_t *list, const struct ledger *l, struct source_book *from, uint64_t since_ns)
{
	const struct ledger_line *most = NULL;
	struct line line;
	json_t *o;

	for (size_t i = 0; l && i < l->n; i++)
		if (l->line[i].part == PART_TENSORS && (!most || l->line[i].bytes > most->bytes))
			most = &l->line[i];
	if (!most || most->bytes < l->total / 4)
		return;
	line = (struct line){.file = most->place.file, .number = most->place.line, .function = most->place.function};
	o = add_source(list, "holder", &line, from, since_ns);
	if (o)
		JSON_ADD(o, J_BYTES("bytes", most->bytes));
}

json_t *page_sources(const struct verdict *v, struct source_book *from, uint64_t since_ns)
{
	const struct {
		const char *role;
		const struct line *line;
	} lines[] = {
		{"where", &v->c.line[LINE_where]},
		{"asked", &v->c.line[LINE_asked]},
		{"noticed", &v->c.line[LINE_noticed]},
		{"forward", &v->c.line[LINE_forward]},
		{"backward", &v->c.line[LINE_backward]},
		{ "replay", &v->c.line[LINE_replay] }, { "capture", &v->c.line[LINE_capture] }, { "made", &v->c.block.made },
		{v->c.block.freed_after ? "freed_after" : "freed", &v->c.block.freed},
		{"segment", &v->c.segment.made},
	};
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		add_source(list, lines[i].role, lines[i].line, from, since_ns);
		if (!i)
			add_holder_source(list, v->c.ledger, from, since_ns);
	}
	for (size_t i = 0; i < v->c.n_or; i++)
		add_source(list, "or", &v->c.or[i], from, since_ns);
	for (size_t i = 0; !v->c.line[LINE_where].file && i < v->c.n_suspects; i++)
		add_source(list, "suspect", &v->c.suspects[i].line, from, since_ns);
	return list;
}

static const char *quoted(const char *file, uint32_t number, struct source_book *from, struct pool *pool)
{
	struct place at = {.file = file, .line = number};

	return place_source(&at, from, pool);
}

/* "made at train.py:30: …": the word before a colon and a number may be a file. */
static void quote_names(json_t *to, const char *text, struct source_book *book, struct pool *pool)
{
	for (const char *colon = strchr(text, ':'); colon; colon = strchr(colon + 1, ':')) {
		const char *from = colon, *key, *line;
		uint32_t number = (uint32_t)strtoul(colon + 1, NULL, 10);

		while (from > text && !strchr(" \"'(),;`", from[-1]))
			from--;
		if (!number || colon[1] < '0' || colon[1] > '9' || from == colon || json_object_size(to) >= QUOTES_MAX)
			continue;
		line = quoted(pool_printf(pool, "%.*s", (int)(colon - from), from), number, book, pool);
		key = pool_printf(pool, "%.*s:%u", (int)(colon - from), from, number);
		if (line)
			JSON_ADD(to, J_TEXT(key, line));
	}
}

json_t *page_quotes(const struct verdict *v, struct source_book *from)
{
	json_t *to = json_object();
	struct pool pool = {0};

	for (const struct said *s = v->why; s; s = s->next)
		quote_names(to, s->text, from, &pool);
	for (const struct said *s = v->fix; s; s = s->next)
		quote_names(to, s->text, from, &pool);
	pool_release(&pool);
	return to;
}

json_t *page_callers(const struct verdict *v, struct source_book *from)
{
	json_t *list = json_array();
	struct pool pool = {0};
	const struct line *l;

	for (size_t i = 0; i < CALLERS_MAX && (l = case_caller(&v->c, i)); i++)
		json_array_append_new(list,
				      JSON_OF(J_TEXT("shown", file_shown(l->file, from->cwd)), J_INT("line", l->number),
					      J_TEXT("function", l->function ? function_base(l->function) : NULL),
					      J_TEXT("source", quoted(l->file, l->number, from, &pool))));
	pool_release(&pool);
	return list;
}

void page_note_sources(const struct verdict *v, struct source_book *from)
{
	json_decref(page_sources(v, from, 0));
	json_decref(page_quotes(v, from));
	json_decref(page_callers(v, from));
}
