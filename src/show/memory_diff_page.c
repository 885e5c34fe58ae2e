/* SPDX-License-Identifier: Apache-2.0
 * The comparison of two moments as a page: tables that any browser shows, light or dark, wide or narrow (see memory_diff.h).
 */
#include <stdlib.h>

#include "base/private.h"
#include "cuwhy/format.h"
#include "base/format.h"
#include "show/memory_diff.h"

static const char style[] =
	":root{color-scheme:light dark}body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:72rem;padding:0 1rem}"
	"table{border-collapse:collapse;width:100%}caption{text-align:left;padding:1rem .6rem .3rem}.wide{overflow-x:auto}"
	"th,td{padding:.25rem .6rem;text-align:left;border-bottom:1px solid #8886}"
	"td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
	"code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}.bar{height:.6rem;min-width:1px;background:#d62}"
	"td.b{width:8rem}.new{font-weight:700}h2{margin-top:2.5rem}"
	/* narrow: the line below its figures */
	"@media(max-width:640px){.rows tr{display:grid;grid-template-columns:repeat(3,1fr)}.rows td,.rows th{border:0}"
	".rows :is(td,th):nth-child(4){display:none}.rows :is(td,th):nth-child(5){grid-column:1/-1;border-bottom:1px solid #8886}}";

/* Names are others': nothing in them is markup, and secrets stay out. */
static void put_text(FILE *out, const char *text)
{
	char *shown = private_shown(text);

	for (const char *c = shown; *c; c++)
		switch (*c) {
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '&': fputs("&amp;", out); break;
		case '"': fputs("&quot;", out); break;
		default: putc(*c, out);
		}
	free(shown);
}

static void put_bytes(FILE *out, uint64_t bytes)
{
	char text[32];

	fprintf(out, "<td class=n>%s", format_bytes(text, sizeof(text), (double)bytes));
}

static void put_known(FILE *out, uint64_t bytes, bool known)
{
	if (known)
		put_bytes(out, bytes);
	else
		fputs("<td class=n>-", out);
}

static void put_growth(FILE *out, uint64_t before, uint64_t after)
{
	double growth = (double)after - (double)before;
	char text[32];

	fputs("<td class=n>", out);
	if (growth)
		fputs(growth > 0 ? "+" : "−", out);
	fputs(format_bytes(text, sizeof(text), growth < 0 ? -growth : growth), out);
}

static void put_side(FILE *out, const char *label, const struct memory_side *s)
{
	fprintf(out, "<tr><th scope=row>%s<td><code>", label);
	put_text(out, s->path);
	fputs("</code>", out);
	if (s->pid)
		fprintf(out, ", process %u", s->pid);
	if (s->rank != CW_UNKNOWN)
		fprintf(out, ", rank %u", s->rank);
	fputs("<td>", out);
	put_text(out, s->ledger ? s->when : "the GPU was not used");
}

static void put_parts(FILE *out, const struct memory_diff *d)
{
	fputs("<div class=wide tabindex=0><table><caption>what the process holds</caption>\n"
	      "<tr><th class=n>before<th class=n>after<th class=n>growth<th>part\n", out);
	for (int p = 0; p < PART_COUNT; p++) {
		uint64_t a = d->before.ledger ? d->before.ledger->part[p] : 0,
			 b = d->after.ledger ? d->after.ledger->part[p] : 0;

		if ((!a && !b) || p == PART_FREE || p == PART_UNMEASURED || p == PART_REST)
			continue;
		fputs("<tr>", out);
		put_known(out, a, memory_part_known(&d->before, (enum ledger_part)p));
		put_known(out, b, memory_part_known(&d->after, (enum ledger_part)p));
		if (memory_part_known(&d->before, (enum ledger_part)p) &&
		    memory_part_known(&d->after, (enum ledger_part)p))
			put_growth(out, a, b);
		else
			fputs("<td class=n>", out);
		fprintf(out, "<td>%s\n", ledger_part_text((enum ledger_part)p));
	}
	fputs("</table></div>\n", out);
}

static uint64_t change_of(const struct memory_change *c)
{
	return c->before > c->after ? c->before - c->after : c->after - c->before;
}

static uint64_t largest_change(const struct memory_diff *d)
{
	uint64_t most = 1;

	for (size_t i = 0; i < d->n; i++)
		most = change_of(&d->row[i]) > most ? change_of(&d->row[i]) : most;
	return most;
}

static void put_row(FILE *out, const struct memory_change *c, uint64_t most)
{
	fputs("<tr>", out);
	put_bytes(out, c->before);
	put_bytes(out, c->after);
	put_growth(out, c->before, c->after);
	fprintf(out, "<td class=b><div class=bar style=\"width:%.1f%%\"></div><td><code>",
		(double)change_of(c) * 100 / (double)most);
	put_text(out, c->name);
	fprintf(out, "</code>%s", c->is_new ? " <span class=new>NEW</span>" : c->is_gone ? " (gone)" : "");
	if (c->was_line)
		fprintf(out, " (was line %u)", c->was_line);
	putc('\n', out);
}

static void put_rows(FILE *out, const struct memory_diff *d)
{
	static const char *const titles[] = {"line", "function", "kind", "library"};
	uint64_t most = largest_change(d);

	if (!d->n) {
		fputs("<p>Every line holds what it held before.\n", out);
		return;
	}
	fprintf(out,
		"<div class=wide tabindex=0><table class=rows><caption>by %s, what grew most first</caption>\n"
		"<tr><th class=n>before<th class=n>after<th class=n>growth<th>change<th>%s\n",
		titles[d->by], titles[d->by]);
	for (size_t i = 0; i < d->n; i++)
		put_row(out, &d->row[i], most);
	fputs("</table></div>\n", out);
}

static void put_device(FILE *out, const struct memory_diff *d)
{
	struct pool pool = {0};
	const char *gpus = memory_diff_gpus(d, &pool);

	fprintf(out, "<h2>Device %d%s", d->device, gpus[0] ? ", " : "");
	put_text(out, gpus);
	pool_release(&pool);
	fputs("</h2>\n<div class=wide tabindex=0><table>\n", out);
	put_side(out, "before", &d->before);
	put_side(out, "after", &d->after);
	fputs("</table></div>\n", out);
	put_parts(out, d);
	put_rows(out, d);
}

void memory_diff_page(FILE *out, const struct memory_diff *list, size_t n)
{
	fprintf(out,
		"<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">"
		"<title>cuwhy: memory, before and after</title><style>%s</style>\n<main><h1>Memory, before and after</h1>\n", style);
	for (size_t i = 0; i < n; i++)
		put_device(out, &list[i]);
	fputs(n ? "</main>\n" : "<p>No memory of a GPU was used at that moment.</main>\n", out);
}
