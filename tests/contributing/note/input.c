/* SPDX-License-Identifier: Apache-2.0
 * Notes as an input: what someone wrote down about a failure, "cuwhy-note" and then "fact = value" lines. It serves
 * tests/contributing/check.py, which puts it into a copy of the tree as src/find/input_note.c: all that a kind of input needs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "case/case.h"
#include "find/input.h"

#define NOTE_MAGIC "cuwhy-note\n"
#define NOTE_MAX   4096

static bool note_sniff(const struct sniffed *s)
{
	return !s->folder && s->n >= strlen(NOTE_MAGIC) && !memcmp(s->head, NOTE_MAGIC, strlen(NOTE_MAGIC));
}

static void *note_open(const char *path, struct err *e)
{
	struct buf b;

	buf_init(&b, NOTE_MAX);
	if (!fs_read(path, &b, e))
		return buf_take(&b);
	buf_release(&b);
	return NULL;
}

static void note_observe_line(struct casefile *c, const char *line)
{
	char name[64], value[256];
	int id;

	if (sscanf(line, "%63[a-z._] = %255[^\n]", name, value) != 2 || (id = fact_find(name, strlen(name))) < 0)
		return;
	switch (fact_type((enum fact_id)id)) {
	case TYPE_NUMBER: fact_set_number(c, (enum fact_id)id, strtod(value, NULL)); break;
	case TYPE_FLAG: fact_set_flag(c, (enum fact_id)id, !strcmp(value, "yes")); break;
	case TYPE_TEXT: fact_set_text(c, (enum fact_id)id, value); break;
	default: break;
	}
}

static void note_observe(void *it, struct casefile *c)
{
	const char *before = case_observer(c, "note");

	for (const char *line = it; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		note_observe_line(c, line);
	case_evidence(c, "note", "somebody wrote it down");
	case_observer(c, before);
}

const struct input input_note = {
	.name = "note",
	.what = "a note",
	.sniff = note_sniff,
	.open = note_open,
	.observe = note_observe,
	.close = free,
};
