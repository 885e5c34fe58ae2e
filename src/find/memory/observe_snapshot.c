/* SPDX-License-Identifier: Apache-2.0
 * Facts from a PyTorch memory snapshot (see observe.h). Such a file does not contain the size of the GPU's memory.
 */
#include "find/memory/observe_snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "base/format.h"
#include "base/str.h"
#include "case/line.h"
#include "case/ledger.h"
#include "case/source.h"
#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "find/memory/leftovers.h"
#include "find/memory/snap_old.h"
#include "find/memory/snap_recording.h"
#include "find/memory/snap_steps.h"
#include "find/memory/replay.h"
#include "read/recording/trace.h"

/* C++ frames are mixed in. Python files end like this, or are not files at all. */
bool snapshot_is_python(const char *file)
{
	return str_ends(file, ".py") || str_ends(file, ".pyx") || file[0] == '<' || strstr(file, "/ipykernel_");
}

enum snap_owner snapshot_owner(const char *file, const char *torch_path)
{
	enum owner o = snapshot_is_python(file) ? frame_owner(file, torch_path) : OWNER_TORCH;

	if (o == OWNER_USER)
		return SNAP_OWN;
	return o < OWNER_TORCH && file[0] ? SNAP_LIBRARY : SNAP_PLUMBING;
}

const char *snapshot_line_text(const struct snapshot *s, const struct snap_lines *l, uint32_t line, struct pool *pool)
{
	const struct snap_line *at = snap_line(l, line);

	return at->file ? pool_printf(pool, "%s:%u", snap_text(s, at->file), at->line) : NULL;
}

static void fill_holders(struct casefile *f, const struct snapshot *s, const struct snap_lines *l,
			 const struct snap_device *d)
{
	struct snap_holder *h;
	size_t n = snap_holders(d, l, d->oom.event, &h);

	for (size_t i = 0; i < n; i++) {
		if (!h[i].line)
			continue;
		fact_set_text(f, FACT_snapshot_line, snapshot_line_text(s, l, h[i].line, f->pool));
		fact_set_number(f, FACT_snapshot_line_bytes, (double)h[i].bytes);
		break;
	}
	free(h);
}

static void fill_pieces(struct casefile *f, const struct snapshot *s, const struct snap_lines *l,
			const struct snap_device *d)
{
	fact_set_flag(f, FACT_snapshot_exact, d->oom.exact);
	if (!d->oom.exact)
		return;
	fact_set_number(f, FACT_snapshot_largest_free, (double)d->all.largest_free);
	if (!d->n_pins)
		return;
	fact_set_text(f, FACT_snapshot_pin_line, snapshot_line_text(s, l, d->pin[0].line, f->pool));
	fact_set_number(f, FACT_snapshot_pin_bytes, (double)d->pin[0].bytes);
	fact_set_number(f, FACT_snapshot_pin_kept, (double)d->pin[0].kept);
}

static struct trace *snapshot_recording(const struct snapshot *s, const struct snap_device *d, struct incident *i,
					struct snap_made *made)
{
	struct trace *t = snap_recording(s, d, made);
	const struct cw_failure *const *f;
	size_t n = t ? trace_failures(t, &f) : 0;

	if (n) {
		*i = (struct incident){.failure = {f[n - 1]}, .n = 1, .lead = f[n - 1], .code = f[n - 1]->code};
		return t;
	}
	trace_free(t);
	return NULL;
}

/* What would have let the program go on, found as in a recording. */
static void fill_proof(struct casefile *c, const struct snapshot *s, const struct snap_device *d)
{
	struct snap_made made;
	struct incident i;
	struct trace *t = snapshot_recording(s, d, &i, &made);
	struct replay *requests;
	struct ledger l;

	if (t) {
		requests = snap_steps(d, t, &made);
		ledger_build(&l, t, 0, LEDGER_OOM, i.lead, NULL, c->pool);
		snap_old_observe(c, t, i.lead);
		ledger_proof(c, &i, t, &l, requests);
		replay_free(requests);
		trace_free(t);
	}
	snap_made_release(&made);
}

/* Two of a kind may be a warm-up and the first step. */
#define KEPT_TURNS 3

bool snapshot_keeps(struct snap_keeps *k, const struct snapshot *s, const struct snap_device *d, struct pool *pool)
{
	struct incident i;
	struct trace *t = snapshot_recording(s, d, &i, NULL);
	const struct left *most;
	struct leftovers x;
	struct moment m;
	struct kinds kinds;

	*k = (struct snap_keeps){0};
	if (!t)
		return false;
	moment_init(&m, t, i.lead->ticks, 0);
	kinds_init(&kinds, t, &m, failure_in_backward(t, i.lead), pool);
	leftovers_find(&x, t, &m, &kinds, i.lead, pool);
	most = x.graphs.bytes > x.tensors.bytes ? &x.graphs : &x.tensors;
	if (x.known && most->turns >= KEPT_TURNS && most->most.file)
		*k = (struct snap_keeps){pool_printf(pool, "%s:%u", most->most.file, most->most.line), most->most_bytes,
					 most->most_blocks, most->turns};
	moment_free(&m);
	trace_free(t);
	return k->line != NULL;
}

static const char *settings(const struct snapshot *s, struct pool *pool)
{
	const char *conf = snap_text(s, s->conf);

	/* the program may have turned it on itself */
	if (!s->expandable || strstr(conf, "expandable_segments:True"))
		return conf;
	return pool_printf(pool, "%s%sexpandable_segments:True", conf, conf[0] ? "," : "");
}

#define MIB	(1ull << 20)

/* An oom event has the size of the block; what the driver is asked for is a whole segment. */
static uint64_t segment_for(uint64_t block)
{
	if (block <= MIB)
		return 2 * MIB;
	if (block < 10 * MIB)
		return 20 * MIB;
	return block > UINT64_MAX / 2 ? block : (block + 2 * MIB - 1) / (2 * MIB) * (2 * MIB);
}

#define STACK_MAX	128
#define HOLDERS_SAID	5

static struct line line_of_snap(struct casefile *c, const struct snapshot *s, uint32_t file, uint32_t function,
				uint32_t number)
{
	struct line l = {.file = pool_strdup(c->pool, snap_text(s, file)), .number = number};

	l.shown = l.file;
	l.function = pool_strdup(c->pool, snap_text(s, function));
	return l;
}

/* A recording of the same failure knows its lines better. */
static void observe_oom_line(struct casefile *c, const struct snapshot *s, const struct snap_lines *l,
			     const struct snap_device *d)
{
	const struct snap_line *at = snap_line(l, d->oom.line);
	struct line *where = &c->line[LINE_where];
	struct source_book book = {.cwd = ".", .foreign = true};
	const uint32_t *frames;
	struct place p;
	size_t n;

	if (where->file)
		return;
	frames = snap_stack(s, d->replay.event[d->oom.event].stack, &n);
	c->n_stack = 0;
	c->stack = pool_alloc(c->pool, (n < STACK_MAX ? n + 1 : STACK_MAX) * sizeof(*c->stack));
	for (size_t i = 0; i < n && i < STACK_MAX; i++) {
		const struct snap_frame *f = snap_frame(s, frames[i]);

		c->stack[c->n_stack++] = line_of_snap(c, s, f->file, f->function, f->line);
	}
	if (!at->file) {
		c->no_lines = n ? "no Python line was on the stack"
			      : l->table.n > 1
				      ? "the request came from a thread without Python code, as those of backward are"
				      : "the history was recorded without stacks";
		return;
	}
	*where = line_of_snap(c, s, at->file, at->function, at->line);
	where->library = at->library != 0;
	p = (struct place){.file = where->file, .line = at->line};
	where->source = place_source(&p, &book, c->pool);
	fact_set_text(c, FACT_where_noticed, pool_printf(c->pool, "%s:%u", where->file, where->number));
	fact_set_text(c, FACT_where_source, where->source);
}

static void tell_holders(struct casefile *c, const struct snapshot *s, const struct snap_lines *l,
			 const struct snap_device *d)
{
	const struct snap_oom *o = &d->oom;
	struct snap_holder *h;
	char size[32];
	size_t n = snap_holders(d, l, o->event, &h);

	case_evidence(
		c, SNAPSHOT_OBSERVER,
		      pool_printf(c->pool, "event %u of %zu on device %d is an out-of-memory error", o->event + 1,
				  d->replay.n, d->device));
	if (o->later)
		case_evidence(c, SNAPSHOT_OBSERVER,
			      pool_printf(c->pool, "the program went on: %u allocation%s came after it", o->later,
					  o->later == 1 ? "" : "s"));
	for (size_t i = 0; i < n && i < HOLDERS_SAID; i++) {
		const char *line = snapshot_line_text(s, l, h[i].line, c->pool);

		case_evidence(c, SNAPSHOT_OBSERVER,
			      pool_printf(c->pool, "%s held %s in %u block%s", line ? line : "unknown lines",
					  format_bytes(size, sizeof(size), (double)h[i].bytes), h[i].blocks,
					  h[i].blocks == 1 ? "" : "s"));
	}
	free(h);
}

const char *snapshot_damage(const struct snapshot *s, struct pool *pool)
{
	if (!s->impossible)
		return NULL;
	return pool_printf(pool, "the snapshot is damaged: %llu figure%s in it cannot be true and %s left out",
			   (unsigned long long)s->impossible, s->impossible == 1 ? "" : "s",
			   s->impossible == 1 ? "was" : "were");
}

void snapshot_observe(struct casefile *c, const struct snapshot *s, const struct snap_lines *l,
		      const struct snap_device *d)
{
	const struct snap_oom *o = &d->oom;
	double allocated = o->now.allocated > 0 ? (double)o->now.allocated : 0;
	double reserved = o->now.reserved > 0 ? (double)o->now.reserved : 0;
	const char *before = case_observer(c, SNAPSHOT_OBSERVER);

	fact_set_text(c, FACT_snapshot_damaged, snapshot_damage(s, c->pool));
	if (fact_known(c, FACT_error_code)) {	/* a recording has all of this and more: only who held what adds something */
		tell_holders(c, s, l, d);
		case_observer(c, before);
		return;
	}
	fact_set_number(c, FACT_error_code, 0);
	fact_set_text(c, FACT_error_string, "out of memory");
	fact_set_text(c, FACT_error_source, SNAPSHOT_OBSERVER);
	fact_set_text(c, FACT_error_text, "");
	fact_set_number(c, FACT_error_count, o->count);
	fact_set_flag(c, FACT_error_async, false);
	fact_set_flag(c, FACT_snapshot_is, true);
	fact_set_flag(c, FACT_oom_is, true);
	fact_set_flag(c, FACT_oom_by_torch, true);
	fact_set_flag(c, FACT_oom_host, false);
	fact_set_flag(c, FACT_others_known, false);
	if (o->request) {
		fact_set_number(c, FACT_oom_request, (double)segment_for(o->request));
		fact_set_number(c, FACT_snapshot_block, (double)o->request);
	}
	fact_set_number(c, FACT_oom_free, (double)o->free);
	fact_set_number(c, FACT_oom_torch_allocated, allocated);
	fact_set_number(c, FACT_oom_torch_reserved, reserved);
	fact_set_number(c, FACT_oom_cache, reserved > allocated ? reserved - allocated : 0);
	fact_set_number(c, FACT_snapshot_seen, (double)o->seen);
	fact_set_flag(c, FACT_torch_loaded, true);
	if (s->settings_known)
		fact_set_text(c, FACT_torch_alloc_conf, settings(s, c->pool));
	fill_holders(c, s, l, d);
	fill_pieces(c, s, l, d);
	observe_oom_line(c, s, l, d);
	fill_proof(c, s, d);
	tell_holders(c, s, l, d);
	case_observer(c, before);
}
