/* SPDX-License-Identifier: Apache-2.0
 * Which memory the address of a fault belongs to (see address.h).
 *
 * The hardware faults on addresses that are not mapped on the device that runs the kernel. So memory that is live
 * on this device contradicts the fault; memory that was freed, is live on another device or belongs to the host
 * explains it. Otherwise the address is outside of everything, and the question is which block the kernel meant:
 * the one that a kernel parameter points into is a better guess than the nearest one.
 */
#include "find/fault/address.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/mem.h"
#include "find/fault/culprit.h"
#include "find/fault/fault.h"
#include "find/failure/observe.h"
#include "find/memory/pieces.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"

struct look {
	struct address *to;
	struct trace *trace;
	struct pieces torch, driver;
	const struct cw_launch *launch;
	const uint8_t *params;
	size_t n_params;	/* bytes */
	bool known;		/* the address is known */
	bool guard;		/* PyTorch's blocks are in pages of their own, which come and go with them */
	uint64_t address, noticed;
	uint64_t ran;		/* when the graph did that the launch was captured into; 0 = it was not */
	uint64_t origin;	/* bit mask: parameter words that the code computed the address from */
	bool pointer_known;	/* the code, executed, or the sizes and strides that the kernel was given lead from one word to the address: */
	size_t pointer;		/* this one */
	unsigned width;
};

/* Every aligned word of the parameters may be a pointer: on its own, or in a struct passed by value. */
static size_t look_words(const struct look *l)
{
	return l->n_params / 8;
}

static uint64_t look_word(const struct look *l, size_t i)
{
	uint64_t v;

	memcpy(&v, l->params + i * 8, sizeof(v));
	return v;
}

/* Which parameter a word belongs to is known only if the driver was asked in time. */
static void look_found_param(struct look *l, size_t i)
{
	const struct cw_function *f = l->launch ? trace_function(l->trace, l->launch->func) : NULL;
	const struct cw_layout *y = trace_layout(l->trace, f);

	l->to->param_byte = (int)(i * 8);
	for (uint32_t k = 0; y && k < y->n; k++)
		if (i * 8 >= y->param[k].off && i * 8 - y->param[k].off < y->param[k].size)
			l->to->param = (int)k;
}

static const struct piece *look_pointed(const struct look *l, uint64_t v)
{
	const struct piece *p = v ? pieces_at(&l->torch, v) : NULL;

	return p || !v ? p : pieces_at(&l->driver, v);
}

static void memory_fill(struct memory *m, const struct trace *t, const struct piece *p)
{
	*m = (struct memory){.known = true, .addr = p->addr, .size = p->size, .device = p->device};
	if (!place_of_stack(t, p->stack, &m->made))
		place_of_stack(t, p->forward_stack, &m->made);
	place_of_stack(t, p->free_stack, &m->freed);
	m->freed_after = p->freed_after;
}

static void look_found(struct look *l, const char *in, const struct piece *p)
{
	const struct piece *around;

	l->to->in = in;
	if (p->kind != CW_MEM_TORCH) {
		memory_fill(&l->to->segment, l->trace, p);
		return;
	}
	memory_fill(&l->to->block, l->trace, p);
	l->to->block.freed = (struct place){ 0 };	/* it was live when the kernel ran; what happened later does not matter */
	around = pieces_at(&l->driver, p->addr);
	if (around)
		memory_fill(&l->to->segment, l->trace, around);
}

static bool piece_on_device(const struct piece *p)
{
	return p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_ASYNC || p->kind == CW_MEM_VMM || p->kind == CW_MEM_TORCH;
}

static bool elsewhere(const struct look *l, const struct piece *p)
{
	int mine = l->to->device;

	return piece_on_device(p) && mine >= 0 && mine < CW_MAX_DEVICES && p->device >= 0 && p->device < CW_MAX_DEVICES &&
	       p->device != mine && !(trace_header(l->trace)->peers[mine] >> p->device & 1);
}

/* Was memory allocated during a capture at the line that allocated this? It is in the graph's pool, and stays mapped as long as the graph
 * lives, freed or not. */
static bool is_captured_line(const struct look *l, const struct piece *p)
{
	const struct cw_site *site;
	size_t n = trace_sites(l->trace, &site);

	for (size_t i = 0; i < n; i++)
		if (site[i].flags & CW_SITE_CAPTURED && site[i].stack == p->stack)
			return true;
	return false;
}

/* Guard mode: a block that lived when the kernel was captured, and was freed before the graph ran. */
static bool is_freed_before_run(const struct look *l, const struct piece *p)
{
	return l->guard && p->kind == CW_MEM_TORCH && p->free_ticks && p->free_ticks < l->ran && p->stack &&
	       !is_captured_line(l, p);
}

static bool is_live_here(const struct look *l, uint64_t address)
{
	const struct piece *d = pieces_at(&l->driver, address), *p = pieces_at(&l->torch, address);

	return (d && !elsewhere(l, d)) || (l->guard && p && !is_freed_before_run(l, p));
}

/* A warp faults as a whole: if the dump does not tell its lanes apart, those that stayed in bounds are innocent. */
static void choose_lane(struct look *l, const struct culprit *c)
{
	size_t innocent = 0;

	l->to->threads = c->n_lanes;
	l->known = c->n_kept && c->lanes[0].address_known && !c->address_doubtful;
	if (!l->known)
		return;
	for (size_t i = c->n_kept; i > 0; i--) {
		if (!c->lanes[i - 1].address_known || is_live_here(l, c->lanes[i - 1].address))
			innocent++;
		else
			l->to->lane = i - 1;
	}
	l->address = c->lanes[l->to->lane].address;
	if (innocent < c->n_kept)	/* otherwise nothing explains the fault: keep what was seen */
		l->to->threads = c->n_lanes - innocent;
}

static bool find_live_piece(struct look *l)
{
	const struct piece *p = pieces_at(&l->torch, l->address), *d = pieces_at(&l->driver, l->address);
	const struct piece *one = p ? p : d;
	struct piece gone;

	/* a block may have been live when the kernel was launched and freed with its segment while it ran */
	if (!d && (!p || piece_freed_by_driver(l->trace, l->address, l->noticed, &gone)))
		return false;
	if (!d && l->guard && piece_freed_by_torch(l->trace, l->address, l->noticed, &gone))
		return false;
	look_found(l, elsewhere(l, d ? d : p) ? "other-device" : "live", one);
	for (size_t i = 0; i < look_words(l) && !l->to->param_sure; i++)
		if (look_pointed(l, look_word(l, i)) == one) {
			look_found_param(l, i);
			l->to->param_sure = true;
		}
	return true;
}

/* The address is not in the dump: all that is left is a parameter that points to another device. */
static void find_foreign_parameter(struct look *l)
{
	for (size_t i = 0; i < look_words(l); i++) {
		const struct piece *p = look_pointed(l, look_word(l, i));

		if (!p || !elsewhere(l, p))
			continue;
		look_found(l, "other-device", p);
		look_found_param(l, i);
		return;
	}
}

/* No pointer to memory is as small or as large. */
static bool is_no_pointer(uint64_t v)
{
	return v < (uint64_t)1 << 20 || v >> 57;
}

static bool is_freed_before(const struct look *l, uint64_t v, struct piece *freed)
{
	const struct piece *p = look_pointed(l, v);
	uint64_t before = l->launch ? l->launch->ticks : 0;

	if (p) {
		*freed = *p;
		return is_freed_before_run(l, p);
	}
	return piece_freed_by_torch(l->trace, v, before, freed) || piece_freed_by_driver(l->trace, v, before, freed);
}

/* Guard mode does not use addresses again: a pointer to what was freed before the kernel ran means that memory. */
static bool find_freed_parameter(struct look *l)
{
	struct piece p;

	for (size_t i = 0; i < look_words(l); i++) {
		uint64_t v = look_word(l, i);

		if (is_no_pointer(v) || !is_freed_before(l, v, &p))
			continue;
		l->to->in = "freed";
		memory_fill(p.kind == CW_MEM_TORCH ? &l->to->block : &l->to->segment, l->trace, &p);
		look_found_param(l, i);
		l->to->param_sure = true;
		return true;
	}
	return false;
}

/* If all pointers lead into one allocation, it is what the kernel left. */
static void find_only_parameter(struct look *l)
{
	const struct piece *only = NULL;
	size_t at = 0;

	for (size_t i = 0; i < look_words(l); i++) {
		const struct piece *p = look_pointed(l, look_word(l, i));

		if (!p || p == only)
			continue;
		if (only)
			return;
		only = p;
		at = i;
	}
	if (!only || !piece_on_device(only))
		return;
	look_found(l, "passed", only);
	look_found_param(l, at);
	l->to->param_sure = true;
}

/* A freed PyTorch block stays mapped as long as PyTorch keeps its segment; here the segment has been freed too, or
 * the address would be live. A block from an earlier segment at the same address does not count. */
static bool find_freed(struct look *l)
{
	struct piece block, segment;
	bool driver = piece_freed_by_driver(l->trace, l->address, l->noticed, &segment);
	bool torch = piece_freed_by_torch(l->trace, l->address, l->noticed, &block);

	if (torch && driver && segment.ticks && block.ticks < segment.ticks)
		torch = false;
	if (!torch && !driver)
		return false;
	l->to->in = "freed";
	if (torch)
		memory_fill(&l->to->block, l->trace, &block);
	if (driver)
		memory_fill(&l->to->segment, l->trace, &segment);
	if (l->guard)
		l->to->freed_ticks = torch ? block.free_ticks : segment.free_ticks;
	return true;
}

/* A range where the driver has placed device memory belongs to the driver. Pinned and registered memory belongs to
 * the host and may be in the middle of it. */
static bool is_drivers(const struct look *l, const struct cw_range *r)
{
	for (size_t i = 0; i < l->driver.n; i++) {
		const struct piece *p = &l->driver.list[i];

		if (p->kind != CW_MEM_REGISTERED && p->kind != CW_MEM_PINNED && p->addr >= r->start && p->addr < r->end)
			return true;
	}
	return false;
}

static const struct cw_range *host_range_of(const struct look *l, uint64_t address)
{
	const struct cw_range *r;
	size_t n = trace_ranges(l->trace, &r);

	for (size_t i = 0; i < n; i++)
		if (address >= r[i].start && address < r[i].end)
			return is_drivers(l, &r[i]) ? NULL : &r[i];
	return NULL;
}

/* A wild index can end up anywhere: without a parameter that points to the same place, assume a host pointer only if
 * the kernel was given no device memory at all. */
static bool find_host_memory(struct look *l)
{
	const struct cw_range *r = host_range_of(l, l->address);
	bool device_pointers = false;

	if (!r)
		return false;
	for (size_t i = 0; i < look_words(l); i++) {
		if (look_word(l, i) >= r->start && look_word(l, i) < r->end) {
			l->to->in = "host";
			look_found_param(l, i);
			l->to->param_sure = true;
			return true;
		}
		device_pointers = device_pointers || look_pointed(l, look_word(l, i));
	}
	if (!device_pointers)
		l->to->in = "host";
	return !device_pointers;
}

#define WRAP_SMALL	((uint64_t)1 << 16)	/* elements: an index this close below zero may be intended */
#define WRAP_LARGE	((uint64_t)1 << 24)	/* an index this far below zero is not */
#define WRAP_TIMES	8

/* A signed 32-bit index is between -2^31 and 2^31: a larger one wraps to a negative value, too small by a multiple of
 * 2^32. It counts elements; a vector access covers several of them, and some code counts bytes. Two things must fit:
 * the distance of the address below the pointer, and the intended element must be in the block. */
static bool overflowed(const struct look *l, const struct piece *p, uint64_t base, uint64_t width, uint64_t *below)
{
	uint64_t meant = l->address;

	*below = (base - l->address) / width;
	if (l->address >= base || (base - l->address) % width || *below > (uint64_t)1 << 31 || *below < WRAP_SMALL)
		return false;
	for (int k = 0; k < WRAP_TIMES; k++) {
		meant += width << 32;
		if (piece_holds(p, meant))
			return true;
	}
	return false;
}

static bool wraps_below(struct look *l, const struct piece *p, uint64_t base, bool given)
{
	const uint64_t whole = l->width ? l->width : 1;
	uint64_t below;

	for (uint64_t width = whole; width >= (given ? 1 : whole); width /= 2) {
		if (!overflowed(l, p, base, width, &below))
			continue;
		l->to->wraps = true;
		l->to->wraps_sure = given && width == whole && below >= WRAP_LARGE;
		return true;
	}
	return false;
}

static const struct piece *nearer(const struct look *l, const struct pieces *all, const struct piece *best, bool past)
{
	for (size_t i = 0; i < all->n; i++) {
		const struct piece *p = &all->list[i];

		if ((past ? p->addr > l->address : p->addr < l->address) && piece_on_device(p) &&
		    (!best || (past ? p->addr < best->addr : p->addr > best->addr)))
			best = p;
	}
	return best;
}

static void found_near(struct look *l, const struct piece *p)
{
	const struct piece *next;

	look_found(l, "near", p);
	l->to->past = l->address >= p->addr;
	l->to->distance = piece_distance(p, l->address);
	next = l->guard ? nearer(l, &l->driver, nearer(l, &l->torch, NULL, l->to->past), l->to->past) : NULL;
	if (next)
		memory_fill(&l->to->next, l->trace, next);
}

/* By the kernel's own pointers: the parameter words that `which` selects. */
static bool find_given(struct look *l, bool (*which)(const struct look *l, size_t word))
{
	const struct piece *best = NULL, *seen = NULL;
	size_t at = 0;

	for (size_t i = 0; i < look_words(l); i++) {
		const struct piece *p = which(l, i) ? look_pointed(l, look_word(l, i)) : NULL;

		if (!p || l->to->wraps || piece_holds(p, l->address))
			continue;
		l->to->several = l->to->several || (seen && seen != p);
		seen = p;
		if (wraps_below(l, p, look_word(l, i), true) || !best ||
		    piece_distance(p, l->address) < piece_distance(best, l->address)) {
			best = p;
			at = i;
		}
	}
	if (!best)
		return false;
	found_near(l, best);
	look_found_param(l, at);
	l->to->param_sure = true;
	return true;
}

/* By addresses alone: the parameters are not known, or contain no pointer to live memory. */
static void find_nearest(struct look *l)
{
	const struct piece *block = pieces_nearest(&l->torch, l->address);
	const struct piece *segment = pieces_nearest(&l->driver, l->address);
	const struct pieces *all[] = {&l->torch, &l->driver};

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < all[k]->n; i++)
			if (wraps_below(l, &all[k]->list[i], all[k]->list[i].addr, false)) {
				found_near(l, &all[k]->list[i]);
				return;
			}
	/* the driver's allocation is nearer if it contains no PyTorch block */
	if (block && (!segment || piece_holds(segment, block->addr)))
		found_near(l, block);
	else if (segment)
		found_near(l, segment);
}

static bool is_origin(const struct look *l, size_t word)
{
	return l->pointer_known ? word == l->pointer : word < 64 && l->origin >> word & 1;
}

static bool is_any(const struct look *l, size_t word)
{
	(void)l, (void)word;
	return true;
}

/* The dump has the parameters as the device saw them; the launch record has at most the first 256 bytes. */
static void look_params(struct look *l, const struct culprit *c)
{
	if (c->params.data && c->params.len) {
		l->params = c->params.data;
		l->n_params = c->params.len;
	} else if (l->launch) {
		l->params = l->launch->params;
		l->n_params = l->launch->n_param < CW_PARAM_BYTES ? l->launch->n_param : CW_PARAM_BYTES;
	}
}

static void look_around(struct look *l)
{
	if (!l->known) {
		find_foreign_parameter(l);
		if (!l->to->in[0] && l->guard && !find_freed_parameter(l))
			find_only_parameter(l);
		return;
	}
	if (l->guard && !is_live_here(l, l->address) && find_freed(l))
		return;		/* addresses are not used again: whatever pointer it came from, it was that block's */
	if (find_live_piece(l))
		return;
	l->to->traced = find_given(l, is_origin);
	if (!l->to->traced && !find_freed(l) && !find_host_memory(l) && !find_given(l, is_any))
		find_nearest(l);
}

void address_find(struct address *a, struct trace *t, const struct culprit *c, const struct cw_failure *noticed,
		  const struct fault_launch *m)
{
	struct look l = { .to = a, .trace = t, .launch = m->newest, .noticed = noticed->ticks, .ran = m->ran,
			 .width = c->insn.width, .origin = c->origin, .pointer_known = c->view.n || c->values.pointer_known,
			 .pointer = (c->view.n ? c->view.at : c->values.pointer) / 8,
			 .guard = trace_guard(t) != NULL};

	*a = (struct address){.in = "", .threads = c->n_lanes, .param = -1, .param_byte = -1, .device = -1};
	if (c->space == SASS_SHARED || c->space == SASS_LOCAL)
		return;
	if (m->newest) {
		a->device = CW_LAUNCH_DEVICE(m->newest->flags);
		a->device_sure = a->device >= 0 && (unsigned)a->device == c->device;
	}
	look_params(&l, c);
	/* the pointers are as of the launch, even of a captured one: the graph keeps its memory */
	pieces_of_torch(&l.torch, t, m->newest ? m->newest->ticks : noticed->ticks);
	pieces_of_driver(&l.driver, t);
	choose_lane(&l, c);
	look_around(&l);
	pieces_free(&l.torch);
	pieces_free(&l.driver);
}

/* The GPU maps memory in pages of 2 MiB (cuMemGetAllocationGranularity): what shares one with live memory does not fault. */
#define PAGE	((uint64_t)2 << 20)
#define NULL_PAGE ((uint64_t)1 << 16)	/* nothing is mapped there */

#define PAGES_SEEN 64

struct page_seen {
	uint64_t page, base;
	bool known;
	enum stray how;
};

struct stray_around {
	struct look l;
	struct address to;
	bool doubt;
	struct page_seen seen[PAGES_SEEN];
};

struct stray_around *stray_around_open(struct trace *t, const struct culprit *c, const struct cw_failure *noticed,
				       const struct cw_launch *l)
{
	struct stray_around *a = xcalloc(1, sizeof(*a));

	a->to = (struct address){.in = "", .device = CW_LAUNCH_DEVICE(l->flags)};
	a->l = (struct look){ .to = &a->to, .trace = t, .launch = l, .noticed = noticed->ticks, .width = c->insn.width,
			     .guard = trace_guard(t) != NULL};
	pieces_of_torch(&a->l.torch, t, l->ticks);
	pieces_of_driver(&a->l.driver, t);
	a->l.params = a->l.launch->params;
	a->l.n_params = a->l.launch->n_param < CW_PARAM_BYTES ? a->l.launch->n_param : CW_PARAM_BYTES;
	return a;
}

bool stray_around_freed(struct stray_around *a)
{
	return a->l.guard && find_freed_parameter(&a->l);
}

void stray_around_close(struct stray_around *a)
{
	if (!a)
		return;
	pieces_free(&a->l.torch);
	pieces_free(&a->l.driver);
	free(a);
}

bool stray_around_doubt(const struct stray_around *a)
{
	return a->doubt;
}

/* Is anything live in the page of this address? */
static bool page_is_live(const struct look *l, const struct pieces *all, uint64_t address)
{
	uint64_t page = address & ~(PAGE - 1);
	const struct piece *p = pieces_touching(all, page, page + PAGE);

	return p && !elsewhere(l, p);
}

/* Live at the launch, freed before the failure was noticed: it may have been gone when the kernel ran. */
static bool freed_since(const struct look *l, uint64_t address)
{
	struct piece p;

	return (piece_freed_by_torch(l->trace, address, l->noticed, &p) && p.free_ticks > l->launch->ticks) ||
	       (piece_freed_by_driver(l->trace, address, l->noticed, &p) && p.free_ticks > l->launch->ticks);
}

/* Does the pointer lead to memory that we know of, now or once? For others, a module's variables for example, we do not know
 * where they end. */
static bool is_known_pointer(const struct look *l, uint64_t v)
{
	struct piece p;

	return look_pointed(l, v) || piece_freed_by_torch(l->trace, v, l->noticed, &p) ||
	       piece_freed_by_driver(l->trace, v, l->noticed, &p);
}

/* Around a block that guard mode gave a mapping of its own, and where one was, there is nothing. */
static bool is_hole(const struct look *l, const struct sass_access *a)
{
	const struct piece *p = pieces_at(&l->torch, a->base);
	struct piece gone;

	if (!l->guard)
		return false;
	if (piece_freed_by_torch(l->trace, a->address, l->launch->ticks, &gone))
		return true;
	return p && !pieces_at(&l->driver, p->addr) && a->address + PAGE >= (p->addr & ~(PAGE - 1)) &&
	       a->address < ((p->addr + p->size - 1) | (PAGE - 1)) + 1 + PAGE;
}

/* In a page that nothing is in. */
static enum stray stray_in_page(struct stray_around *s, const struct sass_access *a)
{
	const struct look *l = &s->l;

	if (freed_since(l, a->address) || host_range_of(l, a->address))
		return STRAY_PERHAPS;
	if (a->base && is_known_pointer(l, a->base))
		return is_hole(l, a) ? STRAY_OUTSIDE : STRAY_BEYOND;
	return STRAY_INSIDE;
}

/* What was freed is searched for in a list, and thousands of threads may access the same page. */
static enum stray stray_in_cached(struct stray_around *s, const struct sass_access *a)
{
	uint64_t page = a->address & ~(PAGE - 1);
	struct page_seen *seen = &s->seen[(page / PAGE) % PAGES_SEEN];

	if (!seen->known || seen->page != page || seen->base != a->base)
		*seen = (struct page_seen){.page = page, .base = a->base, .known = true, .how = stray_in_page(s, a)};
	return seen->how;
}

enum stray stray_around_at(void *around, const struct sass_access *a)
{
	struct stray_around *s = around;
	const struct look *l = &s->l;
	const struct piece *p = l->guard ? pieces_at(&l->torch, a->address) : NULL;
	enum stray how;

	if (a->address < NULL_PAGE)
		return STRAY_OUTSIDE;
	if (p && p->free_ticks && p->free_ticks < l->noticed)	/* since the launch: it was live then */
		return STRAY_PERHAPS;
	if (page_is_live(l, &l->driver, a->address) || (l->guard && page_is_live(l, &l->torch, a->address)))
		return STRAY_INSIDE;
	how = stray_in_cached(s, a);
	s->doubt = s->doubt || how == STRAY_INSIDE;
	return how;
}

static void set_address_line(struct casefile *f, enum fact_id id, const struct trace *t, const struct place *p)
{
	if (p->file)
		fact_set_text(f, id, pool_printf(f->pool, "%s:%u", file_shown(p->file, trace_header(t)->cwd), p->line));
}

static const char *away_text(struct casefile *f, const struct address *a)
{
	char bytes[32];

	if (!a->distance && a->past)
		return "right behind";
	return pool_printf(f->pool, "%s %s", format_bytes(bytes, sizeof(bytes), (double)a->distance),
			   a->past ? "past the end of" : "before");
}

void address_facts(struct casefile *f, const struct trace *t, const struct address *a)
{
	const struct memory *m = a->block.known ? &a->block : &a->segment;

	fact_set_text(f, FACT_address_in, a->in);
	fact_set_flag(f, FACT_address_wraps, a->wraps);
	fact_set_flag(f, FACT_address_wraps_sure, a->wraps_sure);
	fact_set_flag(f, FACT_address_given, a->param_sure);
	fact_set_flag(f, FACT_address_several, a->several);
	fact_set_flag(f, FACT_address_traced, a->traced);
	if (a->param >= 0)
		fact_set_number(f, FACT_address_param, a->param);
	if (a->param_byte >= 0)
		fact_set_number(f, FACT_address_param_byte, a->param_byte);
	if (a->device >= 0) {
		fact_set_number(f, FACT_fault_device, a->device);
		fact_set_flag(f, FACT_fault_device_sure, a->device_sure);
	}
	if (!m->known)
		return;
	fact_set_flag(f, FACT_address_torch, a->block.known);
	fact_set_number(f, FACT_address_size, (double)m->size);
	set_address_line(f, FACT_address_made, t, &m->made);
	set_address_line(f, FACT_address_freed, t, &m->freed);
	fact_set_flag(f, FACT_address_freed_after, m->freed_after);
	if (m->device >= 0)
		fact_set_number(f, FACT_address_device, m->device);
	if (a->block.known && a->segment.known) {
		fact_set_number(f, FACT_address_segment_size, (double)a->segment.size);
		set_address_line(f, FACT_address_segment_made, t, &a->segment.made);
		set_address_line(f, FACT_address_segment_freed, t, &a->segment.freed);
	}
	if (!strcmp(a->in, "near")) {
		fact_set_text(f, FACT_address_side, a->past ? "past the end of" : "before");
		fact_set_number(f, FACT_address_distance, (double)a->distance);
		fact_set_text(f, FACT_address_away, away_text(f, a));
	}
	if (a->next.known) {
		fact_set_number(f, FACT_address_next_size, (double)a->next.size);
		set_address_line(f, FACT_address_next_made, t, &a->next.made);
	}
}
