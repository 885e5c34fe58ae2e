/* SPDX-License-Identifier: Apache-2.0
 * Who holds a device's memory at one moment (see case/ledger.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "case/ledger.h"
#include "compat/cuda_errors.h"
#include "find/memory/kinds.h"
#include "find/memory/ledger_lines.h"
#include "find/memory/playback.h"
#include "find/memory/segments.h"
#include "read/recording/modules.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"
#include "probe/usage.h"

/* In a container, a single process that cannot be resolved on the GPU is this one; of several it could be any. */
static const struct gpu_holder *find_own(const struct gpu_state *g, uint32_t pid)
{
	const struct gpu_holder *stranger = NULL;
	size_t strangers = 0;

	for (size_t i = 0; i < g->n; i++) {
		const struct gpu_holder *h = &g->holder[i];

		if (h->state == HOLDER_OUTSIDE || h->state == HOLDER_UNKNOWN) {
			stranger = h;
			strangers++;
		} else if (h->pid == pid) {
			return h;
		}
	}
	return strangers == 1 ? stranger : NULL;
}

static bool all_known(const struct gpu_state *g)
{
	if (!g->holders_known)
		return false;
	for (size_t i = 0; i < g->n; i++)
		if (g->holder[i].bytes == USAGE_UNKNOWN)
			return false;
	return true;
}

void ledger_seen_from(struct ledger_seen *s, const struct gpu_usage *usage, const struct cw_device *d, uint32_t pid,
		      struct pool *pool)
{
	const struct gpu_state *g = usage ? usage_find(usage, d->uuid) : NULL;
	const struct gpu_holder *own = g && all_known(g) ? find_own(g, pid) : NULL;
	struct ledger_holder *list;

	*s = (struct ledger_seen){.known = own != NULL};
	if (!own)
		return;
	s->holder = list = pool_alloc(pool, (g->n + 1) * sizeof(*list));
	for (size_t i = 0; i < g->n; i++) {
		const struct gpu_holder *h = &g->holder[i];

		if (h == own || (h->pid == own->pid && h->state == own->state))
			s->own += h->bytes;
		else
			list[s->n++] = (struct ledger_holder){h->state == HOLDER_OUTSIDE ? 0 : h->pid,
							      pool_strdup(pool, h->command), h->bytes};
	}
}

static bool counts(const struct piece *p, int device)
{
	return (p->device == device || p->device < 0) &&
	       (p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_ASYNC || p->kind == CW_MEM_VMM);
}

static struct ledger_line line_of_piece(const struct piece *p, const struct about *a)
{
	return (struct ledger_line){
		.place = a->place, .bytes = p->size, .count = 1, .first_ticks = p->ticks, .last_ticks = p->ticks};
}

static void pieces_add_tensors(struct lines *to, const struct moment *m, struct kinds *k)
{
	for (size_t i = 0; i < m->torch.n; i++) {
		const struct piece *p = &m->torch.list[i];
		struct ledger_line one = line_of_piece(p, kinds_about(k, p));

		one.part = PART_TENSORS;
		one.kind = kinds_of(k, p);
		one.module = p->workspace ? 0 : trace_site_module(k->trace, p->site);
		lines_add(to, &one);
	}
}

/* libcublas.so.13; for a Python extension, the module: cupy_backends/cuda/api/runtime. */
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

static const char *library_of(struct kinds *k, const struct piece *p, struct pool *pool)
{
	uint32_t off = kinds_library(k, p);

	if (off != k->library)
		k->library_name = library_shown(trace_string(k->trace, off), pool);
	k->library = off;
	return k->library_name;
}

static void pieces_add_libraries(struct lines *to, const struct moment *m, struct kinds *k, struct pool *pool)
{
	for (size_t i = 0; i < m->driver.n; i++) {
		const struct piece *p = &m->driver.list[i];
		struct ledger_line one;

		if (p->segment || !counts(p, m->device))
			continue;
		one = line_of_piece(p, kinds_about(k, p));
		one.part = PART_LIBRARIES;
		one.library = library_of(k, p, pool);
		lines_add(to, &one);
	}
}

static uint64_t pieces_driver_sum(const struct moment *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->driver.n; i++)
		sum += counts(&m->driver.list[i], m->device) ? m->driver.list[i].size : 0;
	return sum;
}

static uint64_t pieces_host_sum(const struct moment *m)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < m->driver.n; i++)
		sum += m->driver.list[i].kind == CW_MEM_PINNED || m->driver.list[i].kind == CW_MEM_REGISTERED ?
			       m->driver.list[i].size : 0;
	return sum;
}

#define LINES_COUNTED 64

static void pieces_count_made(struct ledger *l, struct kinds *k)
{
	struct lines made = {0};

	for (size_t i = 1; i < k->n; i++) {
		const struct cw_site *s = &k->site[i];
		struct piece p = { .stack = s->stack, .forward_stack = s->forward_stack, .device = s->device,
				  .kind = s->kind,
				  .site = (uint32_t)i};
		struct ledger_line one = {
			.place = kinds_about(k, &p)->place, .made = s->total_count, .made_bytes = s->total};

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

/* The peak, or the moment of another epoch. */
struct peak {
	struct lines *lines;
	struct kinds *kinds;
	const struct cw_epoch *epochs;
	long epoch;			/* whose moment it is; -1 = none: the peak of an older recording */
	bool highest;			/* it is the peak, which sites know themselves */
	uint64_t ticks;
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

/* At most what is left of the site. */
static void site_line_add(struct peak *p, struct ledger_line *one, enum ledger_kind kind, uint64_t bytes, uint64_t *left)
{
	one->kind = kind;
	one->bytes = bytes < *left ? bytes : *left;
	*left -= one->bytes;
	if (one->bytes)
		lines_add(p->lines, one);
}

/* Whether backward's blocks are gradients comes from the epoch; without one, from when they were first allocated. */
static void site_at_peak(struct peak *p, size_t site)
{
	const struct cw_site *s = &p->kinds->site[site];
	struct piece all = piece_of_site(p->kinds, site);
	struct ledger_line one = { .part = PART_TENSORS, .place = kinds_about(p->kinds, &all)->place,
				  .first_ticks = s->first_ticks,
				  .last_ticks = s->last_ticks};
	enum ledger_kind kind = p->epoch < 0 ? kinds_of(p->kinds, &all) : kinds_of_site(p->kinds, site);
	uint64_t held[CW_EPOCHS], left;
	bool known = p->epoch >= 0 && trace_site_held(p->kinds->trace, site, held);

	left = p->highest ? trace_site_at_peak(p->kinds->trace, s) : known ? held[p->epoch] : 0;
	site_line_add(p, &one, KIND_WORKSPACES, p->workspaces[site], &left);
	one.module = trace_site_module(p->kinds->trace, site);
	if (known && kind == KIND_BACKWARD)
		site_line_add(p, &one, KIND_GRADIENTS, gradients_among(p->epochs, held, (size_t)p->epoch), &left);
	site_line_add(p, &one, kind, left, &left);
}

static void lines_of_sites(struct peak *p, const struct moment *m)
{
	/* PyTorch marks blocks as workspaces, not sites: live ones have been workspaces since they were allocated. */
	p->workspaces = xcalloc(p->kinds->n + 1, sizeof(*p->workspaces));
	for (size_t i = 0; i < m->torch.n; i++) {
		const struct piece *block = &m->torch.list[i];

		if (block->workspace && block->site < p->kinds->n && block->ticks <= p->ticks)
			p->workspaces[block->site] += block->size;
	}
	for (size_t i = 1; i < p->kinds->n; i++)
		if (p->kinds->site[i].kind == CW_MEM_TORCH && p->kinds->site[i].device == m->device)
			site_at_peak(p, i);
	free(p->workspaces);
}

static void lines_at_peak(struct lines *to, struct kinds *k, const struct moment *m)
{
	const struct cw_memory_now *now = trace_memory(k->trace, m->device);
	struct peak p = {.lines = to, .kinds = k, .highest = true, .ticks = now ? now->peak_ticks : 0};

	find_epoch(&p, k->trace, m->device);
	lines_of_sites(&p, m);
}

enum ledger_at ledger_moment(struct trace *t, int device)
{
	if (ledger_oom(t, device))
		return LEDGER_OOM;
	return trace_memory(t, device)->peak_allocated ? LEDGER_PEAK : LEDGER_END;
}

const struct cw_failure *ledger_oom(const struct trace *t, int device)
{
	const struct cw_failure *const *f;
	const struct cw_failure *driver = NULL;
	size_t n = trace_failures(t, &f);

	for (size_t i = n; i > 0; i--) {
		if (device >= 0 && f[i - 1]->device != device)
			continue;
		if (f[i - 1]->source == CW_SRC_TORCH_OOM)
			return f[i - 1];
		if (!driver && f[i - 1]->source == CW_SRC_DRIVER && f[i - 1]->code == CODE_OUT_OF_MEMORY &&
		    f[i - 1]->request_bytes && !failure_is_host(f[i - 1]))
			driver = f[i - 1];
	}
	return driver;
}

static uint64_t sum_of(const struct lines *l, enum ledger_part part)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < l->n; i++)
		if (l->list[i].part == part)
			sum += l->list[i].bytes;
	return sum;
}

/* When a total from elsewhere exceeds the sum of the lines, the difference has no line. */
static uint64_t settle(struct lines *l, enum ledger_part part, uint64_t known)
{
	uint64_t sum = sum_of(l, part);

	if (known > sum)
		lines_add(l, &(struct ledger_line){.part = part, .kind = KIND_OTHER, .bytes = known - sum});
	return known > sum ? known : sum;
}

/* Takes at most what is left of the card: figures from different moments must not exceed its total. */
static void take(struct ledger *l, enum ledger_part part, uint64_t bytes, uint64_t *left)
{
	if (l->total_known && bytes > *left)
		bytes = *left;
	l->part[part] = bytes;
	*left -= l->total_known ? bytes : 0;
}

/* What this process did not allocate: in parts when NVML was asked, else as one sum. */
static void divide_outside(struct ledger *l, struct lines *lines, const struct ledger_seen *seen, uint64_t *left)
{
	if (!l->free_known) {
		take(l, PART_UNMEASURED, *left, left);
	} else if (!seen || !seen->known) {
		take(l, PART_OUTSIDE, *left, left);
	} else {
		if (seen->own > l->driver)
			take(l, PART_CONTEXT, seen->own - l->driver, left);
		for (size_t i = 0; i < seen->n; i++)
			lines_add(lines, &(struct ledger_line){ .part = PART_PROCESSES, .pid = seen->holder[i].pid,
							       .command = seen->holder[i].command,
							       .bytes = seen->holder[i].bytes,
							       .count = 1});
		take(l, PART_PROCESSES, sum_of(lines, PART_PROCESSES), left);
		take(l, seen->own ? PART_REST : PART_OUTSIDE, *left, left);
	}
}

static void divide(struct ledger *l, struct lines *lines, uint64_t free_bytes, const struct ledger_seen *seen)
{
	uint64_t left = l->total, cache = l->reserved > l->allocated ? l->reserved - l->allocated : 0;
	uint64_t kept = l->segments.kept_free < cache ? l->segments.kept_free : cache;
	uint64_t whole = l->segments.free_whole < cache - kept ? l->segments.free_whole : cache - kept;

	if (l->free_known)
		take(l, PART_FREE, free_bytes, &left);
	take(l, PART_TENSORS, l->allocated, &left);
	take(l, PART_CACHE_USED, cache - kept - whole, &left);
	take(l, PART_CACHE_FREE, whole, &left);
	take(l, PART_POOLS, kept, &left);
	take(l, PART_LIBRARIES, sum_of(lines, PART_LIBRARIES), &left);
	if (l->total_known)
		divide_outside(l, lines, seen, &left);
}

static void ledger_add_kinds(struct ledger *l)
{
	uint64_t left = l->part[PART_TENSORS];

	for (size_t i = 0; i < l->n; i++) {
		uint64_t bytes = l->line[i].bytes < left ? l->line[i].bytes : left;

		if (l->line[i].part != PART_TENSORS)
			continue;
		l->kind[l->line[i].kind] += bytes;
		left -= bytes;
	}
}

/* The sample that covers the moment says how much was reserved around it. */
static void from_timeline(struct ledger *l, struct trace *t, uint64_t ticks)
{
	const struct cw_sample *s;
	size_t n;

	trace_timeline(t, l->device, &s, &n);
	for (size_t i = 0; i < n && s[i].ticks <= ticks; i++) {
		if (l->at == LEDGER_TIME)
			l->allocated = s[i].allocated;
		l->reserved = s[i].reserved;
		l->driver = s[i].driver;
	}
}

static void set_total(struct ledger *l, const struct trace *t, const struct cw_failure *f)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_memory_now *now = trace_memory(t, l->device);

	l->device_name = l->device >= 0 && l->device < CW_MAX_DEVICES ? h->device[l->device].name : "";
	l->total = f && f->memory_known ? f->total_bytes : 0;
	l->free_known = l->total > 0;
	if (!l->total && l->device_name[0])
		l->total = h->device[l->device].total_bytes;
	l->total_known = l->total > 0;
	if (now) {
		l->peak_allocated = now->peak_allocated;
		l->peak_reserved = now->peak_reserved;
	}
	l->pinned_peak = h->pinned_peak_bytes;
}

static void set_sums(struct ledger *l, struct trace *t, const struct cw_failure *f, const struct moment *m)
{
	const struct cw_memory_now *now = trace_memory(t, l->device);

	l->driver = pieces_driver_sum(m);
	if (l->at == LEDGER_END && now) {
		l->allocated = now->allocated;
		l->reserved = now->reserved;
	} else if (l->at == LEDGER_PEAK && now) {
		l->allocated = now->peak_allocated;
		from_timeline(l, t, now->peak_ticks);
	} else if (f && f->source == CW_SRC_TORCH_OOM) {
		l->allocated = f->torch_allocated;
		l->reserved = f->torch_reserved;
	}
	if (f && f->live_device_bytes)
		l->driver = f->live_device_bytes;
}

static void keep_lines(struct ledger *l, struct lines *lines, struct pool *pool)
{
	l->n = lines->n;
	l->line = pool_alloc(pool, (lines->n + 1) * sizeof(*l->line));
	if (lines->n)
		memcpy(l->line, lines->list, lines->n * sizeof(*l->line));
	free(lines->list);
}

/* What has no line: PyTorch's sum and the driver's are exact, the tables may have lost some. */
static void settle_lines(struct ledger *l, struct lines *lines)
{
	uint64_t held;

	l->lines_complete = sum_of(lines, PART_TENSORS) >= l->allocated;
	l->allocated = settle(lines, PART_TENSORS, l->allocated);
	held = l->segments.free_used + l->segments.free_whole + l->segments.kept_free + l->allocated;
	if (!l->reserved && l->segments.n)
		l->reserved = held;
	if (l->reserved < l->allocated)
		l->reserved = l->allocated;
	if (l->at != LEDGER_PEAK && !l->of_epoch)
		settle(lines, PART_LIBRARIES, l->driver > l->reserved ? l->driver - l->reserved : 0);
	else if (l->driver > l->reserved)
		lines_add(lines, &(struct ledger_line){.part = PART_LIBRARIES, .bytes = l->driver - l->reserved});
}

void ledger_build(struct ledger *l, struct trace *t, int device, enum ledger_at at, const struct cw_failure *f,
		  const struct ledger_seen *seen, struct pool *pool)
{
	uint64_t when = at == LEDGER_OOM && f ? f->ticks : UINT64_MAX;
	struct module_sums modules;
	struct lines lines = {.modules = &modules};
	struct moment m;
	struct kinds k;

	*l = (struct ledger){.at = at, .device = device, .ticks = when};
	module_sums_begin(&modules, t);
	moment_init(&m, t, when, device);
	kinds_init(&k, t, &m, ledger_in_backward(t, at == LEDGER_OOM ? f : NULL), pool);
	set_total(l, t, f);
	set_sums(l, t, f, &m);
	if (at == LEDGER_PEAK) {
		l->ticks = trace_memory(t, device) ? trace_memory(t, device)->peak_ticks : 0;
		lines_at_peak(&lines, &k, &m);
	} else {
		segments_find(&l->segments, &m, &k, l->reserved, pool);
		if (at == LEDGER_OOM && f && f->source == CW_SRC_TORCH_OOM && !f->capturing)
			segments_keep(&l->segments, &m, &k);
		pieces_add_tensors(&lines, &m, &k);
		pieces_add_libraries(&lines, &m, &k, pool);
	}
	settle_lines(l, &lines);
	divide(l, &lines, f ? f->free_bytes : 0, seen);
	lines_join(&lines);
	keep_lines(l, &lines, pool);
	module_sums_end(&modules, l, t, pool);
	ledger_add_kinds(l);
	pieces_count_made(l, &k);
	l->pinned = at == LEDGER_PEAK ? 0 : pieces_host_sum(&m);
	moment_free(&m);
}

/* What PyTorch had reserved is the sum of its segments; the timeline only helps to find those that no event names. */
static void read_playback(struct ledger *l, struct lines *lines, struct kinds *k, struct moment *m, struct pool *pool)
{
	segments_find(&l->segments, m, k, l->reserved, pool);
	pieces_add_tensors(lines, m, k);
	pieces_add_libraries(lines, m, k, pool);
	l->driver = pieces_driver_sum(m);
	l->allocated = sum_of(lines, PART_TENSORS);
	l->reserved = 0;
	l->pinned = pieces_host_sum(m);
}

void ledger_build_at(struct ledger *l, struct trace *t, int device, uint64_t ticks, const struct playback *play,
		     struct pool *pool)
{
	struct module_sums modules;
	struct lines lines = {.modules = &modules};
	struct moment m;
	struct kinds k;

	*l = (struct ledger){.at = LEDGER_TIME, .device = device, .ticks = ticks, .sampled = !play};
	module_sums_begin(&modules, t);
	set_total(l, t, NULL);
	from_timeline(l, t, ticks);
	if (play) {
		moment_from(&m, play, device);
		kinds_from(&k, t, play, device, pool);
		read_playback(l, &lines, &k, &m, pool);
		l->missing = play->lost;
		moment_free(&m);
	}
	settle_lines(l, &lines);
	divide(l, &lines, 0, NULL);
	lines_join(&lines);
	keep_lines(l, &lines, pool);
	module_sums_end(&modules, l, t, pool);
	if (play)
		ledger_add_kinds(l);
	else
		l->n = l->n_modules = 0;	/* only sums */
}

/* The epoch that a moment is in; -1 = it is before the first one. */
static long epoch_at(const struct cw_epoch *e, size_t n, uint64_t ticks)
{
	long found = -1;

	for (size_t i = 0; i < n && e[i].begin <= ticks; i++)
		found = (long)i;
	return found;
}

bool ledger_build_epoch(struct ledger *l, struct trace *t, int device, uint64_t ticks, struct pool *pool)
{
	const struct cw_epoch *e;
	struct module_sums modules;
	struct lines lines = {.modules = &modules};
	struct moment m;
	struct kinds k;
	struct peak p;
	size_t n;

	p = (struct peak){.lines = &lines, .kinds = &k};
	trace_epochs(t, device, &p.epochs, &n);
	p.epoch = epoch_at(p.epochs, n, ticks);
	if (p.epoch < 0)
		return false;
	e = &p.epochs[p.epoch];
	p.ticks = e->at;
	*l = (struct ledger){.at = LEDGER_TIME, .device = device, .ticks = e->at, .of_epoch = true, .sampled = true,
			     .allocated = e->allocated, .reserved = e->reserved, .driver = e->driver};
	module_sums_begin(&modules, t);
	moment_init(&m, t, UINT64_MAX, device);
	kinds_init(&k, t, &m, ledger_in_backward(t, NULL), pool);
	set_total(l, t, NULL);
	lines_of_sites(&p, &m);
	settle_lines(l, &lines);
	divide(l, &lines, 0, NULL);
	lines_join(&lines);
	keep_lines(l, &lines, pool);
	module_sums_end(&modules, l, t, pool);
	ledger_add_kinds(l);
	moment_free(&m);
	return true;
}
