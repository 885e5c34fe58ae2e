/* SPDX-License-Identifier: Apache-2.0
 * A process that waited too long for the GPU: `cuwhy run` noted it in the recording, and triggered a dump that
 * ended the kernel. The errors that follow from that belong to the same incident.
 */
#include <string.h>

#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

/* The wait as a failure, so that lines and suspects are looked up as for any other. */
static struct cw_failure *failure_of(const struct cw_hang *h, struct pool *pool)
{
	struct cw_failure *f = pool_alloc(pool, sizeof(*f));

	memset(f, 0, sizeof(*f));
	f->source = CW_SRC_WAIT;
	f->api = h->n ? h->thread[0].api : 0;
	f->tid = h->n ? h->thread[0].tid : 0;
	f->stack = h->n ? h->thread[0].stack : 0;
	f->mono_ns = h->mono_ns;
	f->ticks = f->last_ticks = UINT64_MAX;	/* it may have been waiting for any launch */
	f->count = 1;
	f->device = -1;
	memset(f->func_attr, 0xff, sizeof(f->func_attr));
	return f;
}

struct incident *incidents_hang(struct incidents *all, const struct trace *t, struct pool *pool)
{
	const struct cw_hang *h = &trace_header(t)->hang;
	struct incident *i = NULL;
	struct cw_failure *f;

	if (!h->mono_ns)
		return NULL;
	for (size_t k = 0; k < all->n && !i; k++)
		if (all->list[k].sticky)
			i = &all->list[k];
	if (i && i->lead->mono_ns < h->mono_ns)
		return NULL;
	if (!i) {
		i = &all->list[all->n++];	/* incidents_collect left room for it */
		*i = (struct incident){.sticky = true};
	}
	f = failure_of(h, pool);
	if (i->n == INCIDENT_FAILURES)
		i->n--;
	memmove(i->failure + 1, i->failure, i->n * sizeof(i->failure[0]));
	i->failure[0] = i->lead = f;
	i->n++;
	i->hang = true;
	for (size_t k = 0; k < all->n_python && i->code && i->n < INCIDENT_FAILURES; k++)
		i->failure[i->n++] = all->python[k];
	return i;
}

static const char *why_no_dump(const struct cw_header *h)
{
	if (h->hang.flags & CW_HANG_NO_PIPE)
		return "the driver did not respond to the dump request";
	if (h->hang.flags & CW_HANG_NO_DUMP)
		return "the driver wrote no dump";
	if (h->hang.flags & CW_HANG_TRIGGERED)
		return "the driver's dump cannot be read";
	return h->pipe_path[0] ? "there was a dump of an earlier fault" : reason_text(h->pipe_reason);
}

void fill_hang(struct casefile *f, const struct incident *i, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	bool dump = fact_text(f, FACT_fault_kind)[0] != '\0';
	struct place p = {0};

	fact_set_flag(f, FACT_hang_is, i->hang);
	if (!i->hang || !h->hang.n)
		return;
	fact_set_number(f, FACT_hang_seconds, (double)(h->hang.thread[0].waited_ns / 1000000000u));
	fact_set_text(f, FACT_hang_api, api_name(h->hang.thread[0].api));
	fact_set_number(f, FACT_hang_threads, h->hang.n);
	fact_set_flag(f, FACT_hang_polls, h->hang.thread[0].polls != 0);
	if (place_of_stack(t, h->hang.thread[0].stack, &p))
		fact_set_text(f, FACT_hang_line, pool_printf(f->pool, "%s:%u", file_shown(p.file, h->cwd), p.line));
	fact_set_flag(f, FACT_hang_dump, dump);
	if (!dump)
		fact_set_text(f, FACT_hang_no_dump, why_no_dump(h));
	fact_set_flag(f, FACT_hang_ended, (h->hang.flags & CW_HANG_END) != 0);
}
