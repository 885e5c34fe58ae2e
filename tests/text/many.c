/* SPDX-License-Identifier: Apache-2.0
 * Explains many texts in one process, so that each of them can be tried in every kind of clothes: reads names of files, one per line (files of
 * one text are separated by tabs), writes the causes of each, the likeliest first; with --json, the whole answer. With --used, the
 * pieces of knowledge that it used (case/knowledge.h), separated by tabs; with --without, the first file of each is a list of those to
 * do without, one a line; with --words FILE, these words instead of kb/words.def: "cause word weight ..." a line. With --rules, reads
 * nothing, and prints the rules that only words can fulfill.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "case/knowledge.h"
#include "find/input.h"
#include "find/input_text.h"
#include "find/words/likeness.h"
#include "knowledge/compile/compile.h"
#include "find/words/log.h"
#include "verdict/source.h"
#include "verdict/verdict.h"
#include "show/report.h"

#define WITHHELD_MAX (1u << 20)
#define WORDS_MAX    (1u << 24)
#define ROWS_MAX     1024

static char *withheld;	/* "kind of name" a line; NULL: nothing */

static bool allow(const char *kind, const char *of, const char *name)
{
	char *piece, *at;
	bool listed = false;

	if (asprintf(&piece, "\n%s %s %s\n", kind, of, name) < 0)
		abort();
	for (at = piece + 1; at[1]; at++)	/* a sign's words may have a line break */
		if (*at == '\n' || *at == '\t')
			*at = ' ';
	listed = withheld && strstr(withheld, piece);
	free(piece);
	return !listed;
}

static bool print_use(const char *kind, const char *of, const char *name)
{
	printf("%s %s ", kind, of);
	for (; *name; name++)
		putchar(*name == '\n' || *name == '\t' ? ' ' : *name);
	putchar('\t');
	return true;
}

static void print_causes(const struct verdict *v)
{
	fputs(v->n_candidates ? "" : verdict_cause(v), stdout);
	for (size_t i = 0; i < v->n_candidates; i++)
		printf("%s%s", i ? " " : "", AT(v->candidates[i].cause->id));
	putchar('\n');
}

enum { CAUSES, JSON, USED };

static void withhold(const char *path)
{
	struct err e = {0};
	struct buf list;

	free(withheld);
	buf_init(&list, WITHHELD_MAX);
	buf_adds(&list, "\n");
	if (fs_read(path, &list, &e))
		fprintf(stderr, "%s\n", e.msg);
	buf_adds(&list, "\n");
	withheld = buf_take(&list);
}

/* The rows refer to the text, which stays until the program ends. */
static void learn(const char *path)
{
	static struct likeness_row rows[ROWS_MAX];
	static struct arena arena;
	struct err e = {0};
	struct buf text;
	size_t n = 0;
	char *next, *line;

	buf_init(&text, WORDS_MAX);
	if (fs_read(path, &text, &e)) {
		fprintf(stderr, "%s\n", e.msg);
		exit(1);
	}
	next = buf_take(&text);
	while (n < ROWS_MAX && (line = strsep(&next, "\n")) != NULL)
		if (line[0]) {
			rows[n].cause = strsep(&line, " ");
			rows[n++].words = line ? line : "";
		}
	arena_init(&arena);
	likeness_learned(likeness_make(&arena, rows, n));
}

static void explain(char *paths, int how, bool without)
{
	struct text_source *s = text_source_new();
	struct verdict *v;
	struct err e = {0};
	char *save = NULL, *path = strtok_r(paths, "\t", &save);

	if (without) {
		withhold(path);
		path = strtok_r(NULL, "\t", &save);
	}
	for (; path; path = strtok_r(NULL, "\t", &save))
		if (text_source_read(s, path, &e))
			fprintf(stderr, "%s\n", e.msg);
	log_finish(s->log);
	v = verdict_of_text(s->log);
	if (how == JSON)
		report_json(stdout, v, false);
	else if (how == USED)
		putchar('\n');
	else
		print_causes(v);
	fflush(stdout);
	verdict_free(v);
	input_text.close(s);
}

static int print_rules_about_words(void)
{
	for (const struct cause *c = AT(kb_get()->first); c; c = AT(c->next))
		for (const struct when *w = AT(c->when); w; w = AT(w->next))
			if (expr_only_of_words(AT(w->expr)))
				printf("%s/%s\n", AT(c->id), AT(w->id));
	return 0;
}

int main(int argc, char **argv)
{
	static char line[65536];
	bool without = false;
	int how = CAUSES;

	if (argc == 2 && !strcmp(argv[1], "--rules"))
		return print_rules_about_words();
	for (int i = 1; i < argc; i++) {
		how = !strcmp(argv[i], "--json") ? JSON : !strcmp(argv[i], "--used") ? USED : how;
		without |= !strcmp(argv[i], "--without");
		if (!strcmp(argv[i], "--words") && i + 1 < argc)
			learn(argv[++i]);
	}
	knowledge_watch(how == USED ? print_use : without ? allow : NULL);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		explain(line, how, without);
	}
	return 0;
}
