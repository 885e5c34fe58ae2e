/* SPDX-License-Identifier: Apache-2.0
 * Lines of the ledger from the pieces of memory of one moment, and from the sites that asked for them (see ledger_priv.h).
 */
#include <stdlib.h>
#include <string.h>

#include "input/recording/ledger_priv.h"
#include "input/recording/trace_memory.h"

static bool counts(const struct piece *p, int device)
{
	return (p->device == device || p->device < 0) &&
	       (p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_ASYNC || p->kind == CW_MEM_VMM);
}

static struct ledger_line line_of_piece(const struct piece *p, const struct about *a)
{
	return (struct ledger_line){ .place = a->place, .bytes = p->size, .count = 1, .first_ticks = p->ticks,
				     .last_ticks = p->ticks };
}

void pieces_add_tensors(struct lines *to, const struct moment *m, struct kinds *k)
{
	for (size_t i = 0; i < m->torch.n; i++) {
		const struct piece *p = &m->torch.list[i];
		struct ledger_line one = line_of_piece(p, kinds_about(k, p));

		one.part = PART_TENSORS;
		one.kind = kinds_of(k, p);
		lines_add(to, &one);
	}
}

/* libcublas.so.13; of a Python extension the module: cupy_backends/cuda/api/runtime. */
static const char *library_shown(const char *path, struct pool *pool)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
	const char *tag = strstr(base, ".cpython-"), *packages = strstr(path, "-packages/");

	tag = tag ? tag : strstr(base, ".abi3.so");
	if (!path[0] || !tag)
		return path[0] ? base : NULL;
	path = packages ? packages + strlen("-packages/") : base;
	return pool_copy(pool, path, (size_t)(tag - path));
}

static const char *library_of(struct kinds *k, const struct piece *p, const struct about *a, struct pool *pool)
{
	uint32_t off = p->library ? p->library : a->asked ? a->asked->library : 0;

	if (off != k->library)
		k->library_name = library_shown(trace_string(k->trace, off), pool);
	k->library = off;
	return k->library_name;
}

void pieces_add_libraries(struct lines *to, const struct moment *m, struct kinds *k, struct pool *pool)
{
	for (size_t i = 0; i < m->driver.n; i++) {
		const struct piece *p = &m->driver.list[i];
		struct ledger_line one;

		if (p->segment || !counts(p, m->device))
			continue;
		one = line_of_piece(p, kinds_about(k, p));
		one.part = PART_LIBRARIES;
		one.library = library_of(k, p, kinds_about(k, p), pool);
		lines_add(to, &one);
	}
}

uint64_t pieces_driver_sum(const struct moment *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->driver.n; i++)
		sum += counts(&m->driver.list[i], m->device) ? m->driver.list[i].size : 0;
	return sum;
}

uint64_t pieces_host_sum(const struct moment *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->driver.n; i++)
		sum += m->driver.list[i].kind == CW_MEM_PINNED || m->driver.list[i].kind == CW_MEM_REGISTERED ?
			       m->driver.list[i].size : 0;
	return sum;
}

#define LINES_COUNTED 64

void pieces_count_made(struct ledger *l, struct kinds *k)
{
	struct lines made = { 0 };

	for (size_t i = 1; i < k->n; i++) {
		const struct cw_site *s = &k->site[i];
		struct piece p = { .stack = s->stack, .forward_stack = s->forward_stack, .device = s->device,
				   .kind = s->kind, .site = (uint32_t)i };
		struct ledger_line one = { .place = kinds_about(k, &p)->place, .made = s->total_count,
					   .made_bytes = s->total };

		if (s->kind == CW_MEM_TORCH && s->device == l->device && one.place.file)
			lines_add(&made, &one);
	}
	lines_join(&made);
	for (size_t i = 0; i < l->n && i < LINES_COUNTED; i++)
		for (size_t j = 0; l->line[i].part == PART_TENSORS && j < made.n; j++)
			if (place_same(&l->line[i].place, &made.list[j].place)) {
				l->line[i].made = made.list[j].made;
				l->line[i].made_bytes = made.list[j].made_bytes;
			}
	free(made.list);
}
