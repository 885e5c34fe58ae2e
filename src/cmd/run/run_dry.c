/* SPDX-License-Identifier: Apache-2.0
 * The end of a program that ran on a simulated GPU: does it fit?
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/format.h"
#include "base/json.h"
#include "base/str.h"
#include "cmd/run/run.h"
#include "input/recording/trace.h"

static uint64_t fullness(uint64_t used, uint64_t reserved)
{
	return used ? used : reserved;
}

/* Processes that use the same GPU are not GPUs of their own. */
static void count_device(struct dry_run *d, const uint8_t uuid[16])
{
	unsigned int i = 0;

	d->n_users++;
	while (i < d->n_devices && memcmp(d->uuid[i], uuid, sizeof(d->uuid[i])) != 0)
		i++;
	if (i == d->n_devices && i < CW_MAX_DEVICES)
		memcpy(d->uuid[d->n_devices++], uuid, sizeof(d->uuid[i]));
}

static void note_memory(struct dry_run *d, const struct cw_header *h)
{
	for (unsigned int i = 0; i < CW_MAX_DEVICES; i++) {
		const struct cw_memory_now *m = &h->memory[i];

		if (!m->peak_reserved)
			continue;
		count_device(d, h->device[i].uuid);
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
	dry_reads_note(d, t);
}

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
		fprintf(out, "%u simulated GPUs (%s)", d->n_devices, d->gpu);
	else
		fprintf(out, "a simulated %s", d->gpu);
	if (d->n_users > d->n_devices)	/* see docs/dry-run.md: each has the whole GPU */
		fprintf(out, ", in %u processes that are not added up", d->n_users);
	fprintf(out, "%s", d->n_users > 1 ? "; the fullest: " : ": ");
	fprintf(out, "peak %s allocated, %s reserved", allocated, reserved);
	if (d->used)
		fprintf(out, ", %s of %s used", used, total);
	else
		fprintf(out, " of %s", total);
	fprintf(out, "; kernels computed nothing\n");
}

json_t *dry_run_json(struct dry_run *d)
{
	if (!dry_run_took_place(d))
		return json_null();
	return JSON_OF(J_TEXT("gpu", d->gpu[0] ? d->gpu : NULL), J_INT("device", d->device),
		       J_INT("devices", d->n_devices), J_INT("users", d->n_users), J_BYTES("total", d->total),
		       J_BYTES("peak_allocated", d->allocated), J_BYTES("peak_reserved", d->reserved),
		       J_VALUE("peak_used", d->used ? json_integer((json_int_t)d->used) : json_null()),
		       J_VALUE("unknown_reads", dry_reads_json(d)));
}
