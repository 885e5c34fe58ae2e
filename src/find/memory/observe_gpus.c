/* SPDX-License-Identifier: Apache-2.0
 * When memory ran out on one GPU: had another one of this machine room for the program?
 */
#include "find/memory/observe_gpus.h"

#include <string.h>

#include "probe/usage.h"
#include "read/recording/trace.h"

/* Everything on the card that is not other processes', and the request. What the program would have asked for after that is not known. */
static uint64_t needed(const struct casefile *c)
{
	double used = fact_number(c, FACT_oom_total, -1) - fact_number(c, FACT_oom_free, 0) -
		      fact_number(c, FACT_others_bytes, 0);

	return used > 0 ? (uint64_t)(used + fact_number(c, FACT_oom_request, 0)) : 0;
}

/* The number by which the program sees it; -1: it does not. */
static int seen_as(const struct trace *t, const struct gpu_usage *u, const struct gpu_state *g)
{
	const struct cw_header *h = trace_header(t);

	for (uint32_t d = 0; d < h->device_count && d < CW_MAX_DEVICES; d++)
		if (usage_find(u, h->device[d].uuid) == g)
			return (int)d;
	return -1;
}

/* Code for one card runs on another of its model, and within the same major capability on later ones. */
static bool runs_code_of(const struct gpu_state *g, const struct cw_device *failed)
{
	if (!strcmp(g->card.name, failed->name))
		return true;
	return g->details.cc_major >= 0 && g->details.cc_major == failed->attr[CW_DEV_cc_major] &&
	       g->details.cc_minor >= failed->attr[CW_DEV_cc_minor];
}

static bool is_open(const struct gpu_state *g)
{
	return !g->card.mig && g->details.compute_mode <= 0 && !(g->details.remap_failed > 0);
}

/* A program that has spread over it already gains nothing. */
static bool is_in_use(const struct trace *t, int device)
{
	return device >= 0 &&
	       (trace_header(t)->memory[device].driver_peak || trace_header(t)->memory[device].peak_reserved);
}

void observe_other_gpus(struct casefile *c, const struct gpu_usage *u, const struct trace *t, int device)
{
	const struct cw_header *h = trace_header(t);
	const struct gpu_state *failed = u ? usage_find(u, h->device[device].uuid) : NULL, *most = NULL;
	uint64_t need = needed(c);
	int seen;

	if (!failed || !need || (h->world_size != CW_UNKNOWN && h->world_size > 1))	/* other ranks have the other GPUs */
		return;
	for (size_t i = 0; i < u->n; i++) {
		const struct gpu_state *g = &u->gpu[i];

		if (g == failed || g->card.free == USAGE_UNKNOWN || g->card.free < need || !is_open(g) ||
		    !runs_code_of(g, &h->device[device]) || is_in_use(t, seen_as(t, u, g)))
			continue;
		most = !most || g->card.free > most->card.free ? g : most;
	}
	if (!most)
		return;
	seen = seen_as(t, u, most);
	fact_set_number(c, FACT_spare_index, most->card.index);
	fact_set_text(c, FACT_spare_name, pool_printf(c->pool, "%s", most->card.name));
	fact_set_number(c, FACT_spare_free, (double)most->card.free);
	fact_set_number(c, FACT_spare_need, (double)need);
	if (seen >= 0)
		fact_set_number(c, FACT_spare_device, seen);
}
