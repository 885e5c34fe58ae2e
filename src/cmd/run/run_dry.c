/* SPDX-License-Identifier: Apache-2.0
 * The end of a program that ran on a simulated GPU: does it fit, and on which values that were not computed does that depend?
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/format.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cmd/run/run.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

#define READS_PRINTED 5

static uint64_t fullness(uint64_t used, uint64_t reserved)
{
	return used ? used : reserved;
}

/* --- what is known of each process ------------------------------------------------------------ */

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

static void note_reads(struct dry_run *d, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);

	for (uint32_t i = 0; i < h->n_reads; i++) {
		struct dry_read *r;
		struct place p;

		place_of_stack(t, h->read[i].stack, &p);
		r = read_of(d, &p, h->cwd);
		r->count += h->read[i].count;
		if (doubt(h->read[i].why) < doubt(r->why))
			r->why = h->read[i].why;
	}
	d->lost_reads += h->lost_reads;
}

static void note_memory(struct dry_run *d, const struct cw_header *h)
{
	for (unsigned int i = 0; i < CW_MAX_DEVICES; i++) {
		const struct cw_memory_now *m = &h->memory[i];

		if (!m->peak_reserved)
			continue;
		d->n_devices++;
		if (fullness(h->sim_used_peak[i], m->peak_reserved) <= fullness(d->used, d->reserved))
			continue;
		str_copy(d->gpu, sizeof(d->gpu), h->device[i].name);
		d->total = h->device[i].total_bytes;
		d->allocated = m->peak_allocated;
		d->reserved = m->peak_reserved;
		d->used = h->sim_used_peak[i];
		d->device = i;
	}
}

void dry_run_note(struct dry_run *d, const struct trace *t)
{
	if (!trace_header(t)->sim)
		return;
	note_memory(d, trace_header(t));
	note_reads(d, t);
}

void dry_run_release(struct dry_run *d)
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

/* --- the answer ------------------------------------------------------------------------------- */

bool dry_run_took_place(const struct dry_run *d)
{
	return d->n_devices || d->n_reads;
}

void dry_run_print(const struct dry_run *d, FILE *out)
{
	char allocated[32], reserved[32], used[32], total[32];

	if (!d->n_devices)
		return;
	format_bytes(allocated, sizeof(allocated), (double)d->allocated);
	format_bytes(reserved, sizeof(reserved), (double)d->reserved);
	format_bytes(used, sizeof(used), (double)d->used);
	format_bytes(total, sizeof(total), (double)d->total);
	fprintf(out, "cuwhy: ran on ");
	if (d->n_devices > 1)
		fprintf(out, "%u simulated GPUs (%s); on the fullest one, ", d->n_devices, d->gpu);
	else
		fprintf(out, "a simulated %s: ", d->gpu);
	fprintf(out, "peak %s allocated, %s reserved", allocated, reserved);
	if (d->used)
		fprintf(out, ", %s of %s used", used, total);
	else
		fprintf(out, " of %s", total);
	fprintf(out, "; kernels computed nothing\n");
}

/* What may have had consequences comes first: what certainly differs, then by file and line. */
static int compare_reads(const void *a, const void *b)
{
	const struct dry_read *x = a, *y = b;
	int order = doubt(x->why) - doubt(y->why);

	if (!order)
		order = strcmp(x->file, y->file);
	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static void sort_reads(struct dry_run *d)
{
	if (d->n_reads)
		qsort(d->read, d->n_reads, sizeof(*d->read), compare_reads);
}

static void print_read(const struct dry_read *r, FILE *out)
{
	if (r->file[0])
		fprintf(out, "cuwhy: %s:%" PRIu32, r->shown, r->line);
	else
		fprintf(out, "cuwhy: code without a line of Python");
	if (r->why == CW_READ_DROPPED)
		fprintf(out, " reads back more than a simulated GPU keeps, and gets zeros");
	else
		fprintf(out, " %s a value that only a real GPU can compute",
			r->why == CW_READ_MAYBE ? "may read" : "reads");
	fprintf(out, "; what follows from it may differ\n");
}

void dry_run_print_reads(struct dry_run *d, FILE *out)
{
	size_t printed = d->n_reads < READS_PRINTED ? d->n_reads : READS_PRINTED, more = d->n_reads - printed;

	sort_reads(d);
	for (size_t i = 0; i < printed; i++)
		print_read(&d->read[i], out);
	if (more)
		fprintf(out, "cuwhy: %s%zu more %s (--json lists them all)\n", d->lost_reads ? "at least " : "", more,
			more == 1 ? "line reads such a value" : "lines read such values");
}

static json_t *reads_json(struct dry_run *d)
{
	static const char *const why[] = {"", "computed", "maybe computed", "too large"};
	json_t *list = json_array();

	sort_reads(d);
	for (size_t i = 0; i < d->n_reads; i++) {
		const struct dry_read *r = &d->read[i];

		json_array_append_new(list, JSON_OF(J_TEXT("file", r->file[0] ? r->file : NULL), J_INT("line", r->line),
						    J_TEXT("function", r->function[0] ? r->function : NULL),
						    J_TEXT("why", why[r->why % 4]), J_INT("count", r->count)));
	}
	return list;
}

json_t *dry_run_json(struct dry_run *d)
{
	if (!dry_run_took_place(d))
		return json_null();
	return JSON_OF(J_TEXT("gpu", d->gpu[0] ? d->gpu : NULL), J_INT("device", d->device),
		       J_INT("devices", d->n_devices), J_BYTES("total", d->total),
		       J_BYTES("peak_allocated", d->allocated), J_BYTES("peak_reserved", d->reserved),
		       J_VALUE("peak_used", d->used ? json_integer((json_int_t)d->used) : json_null()),
		       J_VALUE("unknown_reads", reads_json(d)));
}
