/* SPDX-License-Identifier: Apache-2.0
 * Lines that read values which a simulated GPU did not compute: what follows from them may differ on a real one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/run.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define PRINTED 5

static char *clean(const char *text)
{
	char *copy = xstrdup(text);

	str_make_line(copy);
	return copy;
}

/* How sure it is that a real GPU would have returned something else: the lower, the surer. */
static int doubt(uint32_t why)
{
	return why == CW_READ_MAYBE;
}

static struct dry_read *read_of(struct dry_run *d, const struct place *p, const char *cwd)
{
	const char *file = p->file ? p->file : "";
	struct dry_read *r;

	for (size_t i = 0; i < d->n_reads; i++)
		if (d->read[i].line == p->line && !strcmp(d->read[i].file, file))
			return &d->read[i];
	d->read = xgrow(d->read, d->n_reads, &d->cap_reads, sizeof(*d->read));
	r = &d->read[d->n_reads++];
	*r = (struct dry_read){.file = xstrdup(file),
			       .shown = clean(file_shown(file, cwd)),
			       .function = xstrdup(p->function ? p->function : ""),
			       .line = p->line, .why = CW_READ_MAYBE};
	return r;
}

void dry_reads_note(struct dry_run *d, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);

	for (uint32_t i = 0; i < h->n_reads; i++) {
		struct dry_read *r;
		struct place p;

		place_of_stack(t, h->read[i].stack, &p);
		r = read_of(d, &p, h->cwd);
		r->count += h->read[i].count;
		if (h->read[i].why == CW_READ_TURNED) {
			r->turned = true;
			continue;
		}
		if (doubt(h->read[i].why) < doubt(r->why))
			r->why = h->read[i].why;
	}
	d->lost_reads += h->lost_reads;
}

/* What may have had consequences comes first: loops that were ended, what certainly differs, then by file and line. */
static int compare_reads(const void *a, const void *b)
{
	const struct dry_read *x = a, *y = b;
	int order = y->turned - x->turned;

	if (!order)
		order = doubt(x->why) - doubt(y->why);
	if (!order)
		order = strcmp(x->file, y->file);
	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void sort_reads(struct dry_run *d)
{
	xsort(d->read, d->n_reads, sizeof(*d->read), compare_reads);
}

static void print_read(const struct dry_read *r, FILE *out)
{
	if (r->file[0])
		fprintf(out, "cuwhy: %s:%" PRIu32, r->shown, r->line);
	else
		fprintf(out, "cuwhy: code without a line of Python");
	if (r->turned)
		fprintf(out, " asks the GPU again and again whether something is true; after %u equal answers it got the other one",
			CW_READ_PATIENCE);
	else if (r->why == CW_READ_DROPPED)
		fprintf(out, " reads back more than a simulated GPU keeps, and gets zeros");
	else
		fprintf(out, " %s a value that only a real GPU can compute",
			r->why == CW_READ_MAYBE ? "may read" : "reads");
	fprintf(out, "; what follows from it may differ\n");
}

void dry_reads_print(struct dry_run *d, FILE *out)
{
	size_t printed = d->n_reads < PRINTED ? d->n_reads : PRINTED, more = d->n_reads - printed;

	sort_reads(d);
	for (size_t i = 0; i < printed; i++)
		print_read(&d->read[i], out);
	if (more)
		fprintf(out, "cuwhy: %s%zu more %s (--json lists them all)\n", d->lost_reads ? "at least " : "", more,
			more == 1 ? "line reads such a value" : "lines read such values");
}

json_t *dry_reads_json(struct dry_run *d)
{
	static const char *const why[] = {"", "computed", "maybe computed", "too large"};
	json_t *list = json_array();

	sort_reads(d);
	for (size_t i = 0; i < d->n_reads; i++) {
		const struct dry_read *r = &d->read[i];

		json_array_append_new(list, JSON_OF(J_TEXT("file", r->file[0] ? r->file : NULL), J_INT("line", r->line),
						    J_TEXT("function", r->function[0] ? r->function : NULL),
						    J_TEXT("why", why[r->why % 4]), J_INT("count", r->count),
						    J_BOOL("turned", r->turned)));
	}
	return list;
}

void dry_reads_release(struct dry_run *d)
{
	for (size_t i = 0; i < d->n_reads; i++) {
		free(d->read[i].file);
		free(d->read[i].shown);
		free(d->read[i].function);
	}
	free(d->read);
	d->read = NULL;
	d->n_reads = d->cap_reads = 0;
}
