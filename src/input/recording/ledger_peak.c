/* SPDX-License-Identifier: Apache-2.0
 * Lines of the ledger at the peak: no blocks are kept of it, but what each site had.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "input/recording/ledger_priv.h"
#include "input/recording/trace_memory.h"

struct peak {
	struct lines *lines;
	struct kinds *kinds;
	const struct cw_epoch *epochs;
	long epoch;			/* whose moment is the peak; -1 = none, in an older recording */
	uint64_t *workspaces;		/* bytes by site */
};

static void find_epoch(struct peak *p, struct trace *t, int device)
{
	const struct cw_memory_now *now = trace_memory(t, device);
	size_t n;

	p->epoch = -1;
	trace_epochs(t, device, &p->epochs, &n);
	for (size_t i = 0; now && i < n; i++)
		if (p->epochs[i].at == now->peak_ticks && p->epochs[i].allocated == now->peak_allocated)
			p->epoch = (long)i;
}

/* PyTorch says of a block that it is a workspace, not of a site: those that are live have been so since they were made. */
static void find_workspaces(struct peak *p, const struct moment *m)
{
	const struct cw_memory_now *now = trace_memory(p->kinds->trace, m->device);

	p->workspaces = xcalloc(p->kinds->n + 1, sizeof(*p->workspaces));
	for (size_t i = 0; now && i < m->torch.n; i++) {
		const struct piece *block = &m->torch.list[i];

		if (block->workspace && block->site < p->kinds->n && block->ticks <= now->peak_ticks)
			p->workspaces[block->site] += block->size;
	}
}

/* At most what is left of the site. */
static void add(struct peak *p, struct ledger_line *one, enum ledger_kind kind, uint64_t bytes, uint64_t *left)
{
	one->kind = kind;
	one->bytes = bytes < *left ? bytes : *left;
	*left -= one->bytes;
	if (one->bytes)
		lines_add(p->lines, one);
}

/* What backward made are gradients or not, as the epoch tells; without one, by when they were made first. */
static void add_site(struct peak *p, size_t site)
{
	const struct cw_site *s = &p->kinds->site[site];
	struct piece all = piece_of_site(p->kinds, site);
	struct ledger_line one = { .part = PART_TENSORS, .place = kinds_about(p->kinds, &all)->place,
				   .first_ticks = s->first_ticks, .last_ticks = s->last_ticks };
	enum ledger_kind kind = p->epoch < 0 ? kinds_of(p->kinds, &all) : kinds_of_site(p->kinds, site);
	uint64_t held[CW_EPOCHS], left = trace_site_at_peak(p->kinds->trace, s);

	add(p, &one, KIND_WORKSPACES, p->workspaces[site], &left);
	if (p->epoch >= 0 && kind == KIND_BACKWARD && trace_site_held(p->kinds->trace, site, held))
		add(p, &one, KIND_GRADIENTS, gradients_among(p->epochs, held, (size_t)p->epoch), &left);
	add(p, &one, kind, left, &left);
}

void lines_at_peak(struct lines *to, struct kinds *k, const struct moment *m)
{
	struct peak p = { .lines = to, .kinds = k };

	find_epoch(&p, k->trace, m->device);
	find_workspaces(&p, m);
	for (size_t i = 1; i < k->n; i++)
		if (k->site[i].kind == CW_MEM_TORCH && k->site[i].device == m->device)
			add_site(&p, i);
	free(p.workspaces);
}
