/* SPDX-License-Identifier: Apache-2.0
 * Whose memory the address of a fault is (see address.h).
 *
 * The hardware raises an error for addresses that are not mapped on the device that runs the kernel. So what is
 * live on this device contradicts the fault; what was live before, is live elsewhere, or belongs to the host
 * explains it. Otherwise it lies outside of everything, and the question is which block it was to be in: the one
 * that a parameter of the kernel points into, before the one that happens to be nearest.
 */
#include "judge/address.h"

#include <string.h>

#include "input/dump/culprit.h"
#include "judge/address_look.h"
#include "judge/fault.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

/* ---- the kernel's parameters ------------------------------------------------------------------------- */

/* Which parameter the word is, is known only where the driver was asked in time. */
void look_found_param(struct look *l, size_t i)
{
	const struct cw_function *f = l->launch ? trace_function(l->trace, l->launch->func) : NULL;
	const struct cw_layout *y = trace_layout(l->trace, f);

	l->to->param_byte = (int)(i * 8);
	for (uint32_t k = 0; y && k < y->n; k++)
		if (i * 8 >= y->param[k].off && i * 8 - y->param[k].off < y->param[k].size)
			l->to->param = (int)k;
}

const struct piece *look_pointed(const struct look *l, uint64_t v)
{
	const struct piece *p = v ? pieces_at(&l->torch, v) : NULL;

	return p || !v ? p : pieces_at(&l->driver, v);
}

/* ---- what is found goes into the answer ---------------------------------------------------------------- */

static void fill(struct memory *m, const struct trace *t, const struct piece *p)
{
	*m = (struct memory){ .known = true, .addr = p->addr, .size = p->size, .device = p->device };
	if (!place_of_stack(t, p->stack, &m->made))
		place_of_stack(t, p->forward_stack, &m->made);
	place_of_stack(t, p->free_stack, &m->freed);
	m->freed_after = p->freed_after;
}

void look_found(struct look *l, const char *in, const struct piece *p)
{
	const struct piece *around;

	l->to->in = in;
	if (p->kind != CW_MEM_TORCH) {
		fill(&l->to->segment, l->trace, p);
		return;
	}
	fill(&l->to->block, l->trace, p);
	l->to->block.freed = (struct place){ 0 };	/* it lived when the kernel ran; what came later is no matter */
	around = pieces_at(&l->driver, p->addr);
	if (around)
		fill(&l->to->segment, l->trace, around);
}

/* ---- live, on another device -------------------------------------------------------------------------- */

static bool on_device(const struct piece *p)
{
	return p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_ASYNC || p->kind == CW_MEM_VMM || p->kind == CW_MEM_TORCH;
}

static bool elsewhere(const struct look *l, const struct piece *p)
{
	int mine = l->to->device;

	return on_device(p) && mine >= 0 && mine < CW_MAX_DEVICES && p->device >= 0 && p->device < CW_MAX_DEVICES &&
	       p->device != mine && !(trace_header(l->trace)->peers[mine] >> p->device & 1);
}

static bool is_live_here(const struct look *l, uint64_t address)
{
	const struct piece *d = pieces_at(&l->driver, address);

	return d && !elsewhere(l, d);
}

/* A warp fails as a whole: where the dump does not tell its lanes apart, those that stayed in bounds are innocent. */
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
	if (innocent < c->n_kept)	/* else nothing explains the fault: say what was seen */
		l->to->threads = c->n_lanes - innocent;
}

static bool find_live(struct look *l)
{
	const struct piece *p = pieces_at(&l->torch, l->address), *d = pieces_at(&l->driver, l->address);
	struct piece gone;

	/* a block may have lived when the kernel was launched, and have gone with its segment while it ran */
	if (!d && (!p || piece_freed_by_driver(l->trace, l->address, l->noticed, &gone)))
		return false;
	look_found(l, elsewhere(l, d ? d : p) ? "other-device" : "live", p ? p : d);
	for (size_t i = 0; i < look_words(l) && !l->to->param_sure; i++)
		if (look_pointed(l, look_word(l, i)) == (p ? p : d)) {
			look_found_param(l, i);
			l->to->param_sure = true;
		}
	return true;
}

/* The address could not be read out of the dump: a parameter that points to another device is what remains. */
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

/* ---- freed --------------------------------------------------------------------------------------------- */

/* A block that PyTorch took back is still mapped as long as PyTorch keeps its segment; here the segment is gone,
 * or the address would be live. A block that was cut from an earlier segment at this place is another story. */
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
		fill(&l->to->block, l->trace, &block);
	if (driver)
		fill(&l->to->segment, l->trace, &segment);
	return true;
}

/* ---- the host's own memory ------------------------------------------------------------------------------ */

/* Where the driver has put device memory, the whole range is the driver's. Pinned and registered memory is the host's,
 * and may lie in the midst of it. */
static bool is_drivers(const struct look *l, const struct cw_range *r)
{
	for (size_t i = 0; i < l->driver.n; i++) {
		const struct piece *p = &l->driver.list[i];

		if (p->kind != CW_MEM_REGISTERED && p->kind != CW_MEM_PINNED && p->addr >= r->start && p->addr < r->end)
			return true;
	}
	return false;
}

static const struct cw_range *range_of(const struct look *l, uint64_t address)
{
	const struct cw_range *r;
	size_t n = trace_ranges(l->trace, &r);

	for (size_t i = 0; i < n; i++)
		if (address >= r[i].start && address < r[i].end)
			return is_drivers(l, &r[i]) ? NULL : &r[i];
	return NULL;
}

/* An index that went astray can end anywhere: without a parameter that points to the same place, only a kernel that
 * was given no device memory at all is believed to have been given a host pointer. */
static bool find_host(struct look *l)
{
	const struct cw_range *r = range_of(l, l->address);
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

/* ---- all together ------------------------------------------------------------------------------------------ */

/* The dump has the parameters as the device saw them; the launch record at most the first 256 bytes. */
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
	if (!l->known)
		find_foreign_parameter(l);
	else if (!find_live(l) && !look_strayed(l) && !find_freed(l) && !find_host(l))
		look_near(l);
}

void address_find(struct address *a, struct trace *t, const struct culprit *c, const struct cw_failure *noticed,
		  const struct fault_launch *m)
{
	struct look l = { .to = a, .trace = t, .launch = m->newest, .noticed = noticed->ticks, .width = c->insn.width,
			  .origin = c->origin };

	*a = (struct address){ .in = "", .threads = c->n_lanes, .param = -1, .param_byte = -1, .device = -1 };
	if (c->space == SASS_SHARED || c->space == SASS_LOCAL)
		return;
	if (m->newest) {
		a->device = CW_LAUNCH_DEVICE(m->newest->flags);
		a->device_sure = a->device >= 0 && (unsigned)a->device == c->device;
	}
	look_params(&l, c);
	/* the pointers are those of the launch; of a captured one too, whose memory the graph keeps */
	pieces_of_torch(&l.torch, t, m->newest ? m->newest->ticks : noticed->ticks);
	pieces_of_driver(&l.driver, t);
	choose_lane(&l, c);
	look_around(&l);
	pieces_free(&l.torch);
	pieces_free(&l.driver);
}
