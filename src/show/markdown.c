/* SPDX-License-Identifier: Apache-2.0
 * A verdict for an issue tracker: what failed, what it ran with, and the whole answer, which does not take the reader's time unless it is
 * opened.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/private.h"
#include "verdict/verdict.h"
#include "show/report.h"

/* Text in a cell or a paragraph: nothing in it is markup, since most of it was named by others. */
static void put_words(FILE *out, const char *said)
{
	char *shown = private_shown(said);

	for (const char *s = shown; *s; s++) {
		if (strchr("\\`*_{}[]<>#|~", *s))
			putc('\\', out);
		putc(*s == '\n' || *s == '\r' ? ' ' : *s, out);
	}
	free(shown);
}

static void put_row(FILE *out, const char *name, const char *value)
{
	if (!value || !value[0])
		return;
	fprintf(out, "| %s | ", name);
	put_words(out, value);
	fputs(" |\n", out);
}

static void put_table(FILE *out, const struct verdict *v)
{
	const struct line *where = &v->c.line[LINE_where];
	char *place = where->file ? xasprintf("%s:%u", where->shown, where->number) : NULL;

	fputs("| | |\n| --- | --- |\n", out);
	put_row(out, "cause", AT(v->cause->id));
	if (strcmp(AT(v->cause->id), "none") != 0)
		put_row(out, "confidence", certainty_word(v->sure));
	put_row(out, "where", place);
	put_row(out, "PyTorch", fact_text(&v->c, FACT_versions_torch));
	put_row(out, "CUDA", fact_text(&v->c, FACT_versions_cuda));
	put_row(out, "cuDNN", fact_text(&v->c, FACT_versions_cudnn));
	put_row(out, "NCCL", fact_text(&v->c, FACT_versions_nccl));
	put_row(out, "driver", fact_text(&v->c, FACT_versions_driver));
	put_row(out, "GPU", fact_text(&v->c, FACT_versions_gpu));
	put_row(out, "Python", fact_text(&v->c, FACT_versions_python));
	put_row(out, "system", fact_text(&v->c, FACT_versions_os));
	put_row(out, "cuwhy", CUWHY_VERSION);
	free(place);
}

/* A fence that is longer than any row of backticks in the text. */
static int fence_of(const char *text)
{
	int longest = 2, row = 0;

	for (; *text; text++) {
		row = *text == '`' ? row + 1 : 0;
		longest = row > longest ? row : longest;
	}
	return longest + 1;
}

static void put_fence(FILE *out, int n)
{
	while (n--)
		putc('`', out);
}

void report_markdown(FILE *out, const struct verdict *v, const char *text)
{
	int fence = fence_of(text);

	if (v) {
		fputs("**", out);
		put_words(out, v->title);
		fputs("**\n\n", out);
		put_table(out, v);
		putc('\n', out);
	}
	fputs("<details><summary>the whole answer</summary>\n\n", out);
	put_fence(out, fence);
	fprintf(out, "text\n%s%s", text, text[0] && text[strlen(text) - 1] == '\n' ? "" : "\n");
	put_fence(out, fence);
	fputs("\n\n</details>\n", out);
}
