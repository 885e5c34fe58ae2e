/* SPDX-License-Identifier: Apache-2.0
 * The end of a program that ran on a simulated GPU: does it fit?
 */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/format.h"
#include "base/json.h"
#include "base/str.h"
#include "run/run.h"
#include "read/recording/trace.h"

/* Processes that use the same GPU are not GPUs of their own. NULL: there are too many. */
static struct dry_gpu *gpu_of(struct dry_run *d, const uint8_t uuid[16])
{
	unsigned int i = 0;

	while (i < d->n_devices && memcmp(d->gpu[i].uuid, uuid, sizeof(d->gpu[i].uuid)) != 0)
		i++;
	if (i == CW_MAX_DEVICES)
		return NULL;
	if (i == d->n_devices)
		memcpy(d->gpu[d->n_devices++].uuid, uuid, sizeof(d->gpu[i].uuid));
	return &d->gpu[i];
}

static void note_use(struct dry_gpu *g, const struct cw_header *h, unsigned int device)
{
	const struct cw_memory_now *m = &h->memory[device];

	if (h->sim_used_peak[device] > g->used)
		g->used = h->sim_used_peak[device];
	if (m->peak_reserved <= g->reserved)
		return;
	str_copy(g->name, sizeof(g->name), h->device[device].name);
	g->index = device;
	g->total = h->device[device].total_bytes;
	g->allocated = m->peak_allocated;
	g->reserved = m->peak_reserved;
}

static void note_memory(struct dry_run *d, const struct cw_header *h)
{
	for (unsigned int i = 0; i < CW_MAX_DEVICES; i++) {
		struct dry_gpu *g = h->memory[i].peak_reserved ? gpu_of(d, h->device[i].uuid) : NULL;

		d->n_users += h->memory[i].peak_reserved > 0;
		if (g)
			note_use(g, h, i);
	}
}

static uint64_t fullness(const struct dry_gpu *g)
{
	return g->used ? g->used : g->reserved;
}

const struct dry_gpu *dry_run_fullest(const struct dry_run *d)
{
	const struct dry_gpu *fullest = d->gpu;

	for (unsigned int i = 1; i < d->n_devices; i++)
		if (fullness(&d->gpu[i]) > fullness(fullest))
			fullest = &d->gpu[i];
	return fullest;
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
	const struct dry_gpu *g = dry_run_fullest(d);
	bool together = d->n_users > d->n_devices;
	char allocated[32], reserved[32], used[32], total[32];

	if (!d->n_devices)
		return;
	format_bytes(allocated, sizeof(allocated), (double)g->allocated);
	format_bytes(reserved, sizeof(reserved), (double)g->reserved);
	format_bytes(used, sizeof(used), (double)g->used);
	format_bytes(total, sizeof(total), (double)g->total);
	fprintf(out, "cuwhy: ran on ");
	if (d->n_devices > 1)
		fprintf(out, "%u simulated GPUs (%s)", d->n_devices, g->name);
	else
		fprintf(out, "a simulated %s", g->name);
	if (together)
		fprintf(out, ", in %u processes", d->n_users);
	fprintf(out, "%s", d->n_devices > 1 ? "; the fullest: " : ": ");
	fprintf(out, "peak %s allocated, %s reserved%s", allocated, reserved, together ? " by one process" : "");
	if (g->used)
		fprintf(out, ", %s of %s used%s", used, total, together ? " by all together" : "");
	else
		fprintf(out, " of %s", total);
	fprintf(out, "; kernels computed nothing\n");
}

json_t *dry_run_json(struct dry_run *d, const struct run_writes *writes)
{
	const struct dry_gpu *g = dry_run_fullest(d);

	return JSON_OF(J_TEXT("gpu", g->name[0] ? g->name : NULL), J_INT("device", g->index),
		       J_INT("devices", d->n_devices), J_INT("users", d->n_users), J_BYTES("total", g->total),
		       J_BYTES("peak_allocated", g->allocated), J_BYTES("peak_reserved", g->reserved),
		       J_VALUE("peak_used", g->used ? json_integer((json_int_t)g->used) : json_null()),
		       J_VALUE("unknown_reads", dry_reads_json(d)),
		       J_VALUE("writes", writes ? run_writes_json(writes) : NULL));
}
