/* SPDX-License-Identifier: Apache-2.0
 * Explains many texts in one process, so that each of them can be tried in every kind of clothes: reads names of files, one per line (files of
 * one text are separated by tabs), writes the causes of each, the likeliest first; with --json, the whole answer.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "input/input.h"
#include "input/text/input.h"
#include "input/text/log.h"
#include "judge/source.h"
#include "judge/verdict.h"
#include "write/report.h"

static void print_causes(const struct verdict *v)
{
	fputs(v->n_candidates ? "" : verdict_cause(v), stdout);
	for (size_t i = 0; i < v->n_candidates; i++)
		printf("%s%s", i ? " " : "", v->candidates[i].cause->id);
	putchar('\n');
}

static void explain(char *paths, bool json)
{
	struct text_source *s = text_source_new();
	struct verdict *v;
	struct err e = {0};
	char *save = NULL;

	for (char *path = strtok_r(paths, "\t", &save); path; path = strtok_r(NULL, "\t", &save))
		if (text_source_read(s, path, &e))
			fprintf(stderr, "%s\n", e.msg);
	log_finish(s->log);
	v = verdict_of_text(s->log);
	if (json)
		report_json(stdout, v, false);
	else
		print_causes(v);
	fflush(stdout);
	verdict_free(v);
	input_text.close(s);
}

int main(int argc, char **argv)
{
	static char line[65536];
	bool json = argc > 1 && !strcmp(argv[1], "--json");

	source_prepare();
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		explain(line, json);
	}
	return 0;
}
