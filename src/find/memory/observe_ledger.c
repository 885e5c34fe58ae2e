/* SPDX-License-Identifier: Apache-2.0
 * Facts from the ledger: what tensors are for, fragmentation, what stays, who else uses the device.
 */
#include "find/failure/observe.h"

#include <string.h>

#include "base/str.h"
#include "case/module_groups.h"
#include "compat/cuda_errors.h"
#include "find/memory/batch_options.h"
#include "find/memory/pieces.h"
#include "find/memory/retention.h"
#include "find/memory/further.h"
#include "find/memory/kinds.h"
#include "find/memory/leftovers.h"
#include "find/memory/observe_gpus.h"
#include "find/memory/observe_growth.h"
#include "find/memory/room.h"
#include "find/memory/room_played.h"
#include "find/memory/replay.h"
#include "find/memory/smaller.h"
#include "find/memory/lines_run.h"
#include "probe/ram.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

static void set_line(struct casefile *f, enum fact_id id, const struct trace *t, const struct place *p)
{
	if (p->file)
		fact_set_text(f, id, pool_printf(f->pool, "%s:%u", file_shown(p->file, trace_header(t)->cwd), p->line));
}

static void set_bytes(struct casefile *f, enum fact_id id, uint64_t bytes)
{
	fact_set_number(f, id, (double)bytes);
}

static struct ledger *ledger_of_incident(const struct casefile *f, const struct incident *i, struct trace *t,
					 struct ledger_seen *seen)
{
	const struct cw_failure *at = incident_from(i, CW_SRC_TORCH_OOM);
	struct ledger *l;

	*seen = (struct ledger_seen){.known = false};
	if (!fact_true(f, FACT_oom_is) || fact_true(f, FACT_oom_host))
		return NULL;
	if (!at)
		at = i->lead;
	if (at->device < 0 || at->device >= CW_MAX_DEVICES)
		return NULL;
	ledger_seen_from(seen, i->usage, &trace_header(t)->device[at->device], trace_header(t)->pid, f->pool);
	l = pool_alloc(f->pool, sizeof(*l));
	ledger_build(l, t, at->device, LEDGER_OOM, at, seen, f->pool);
	return l;
}

static void fill_tensors(struct casefile *f, const struct trace *t, const struct ledger *l)
{
	static const enum fact_id kinds[] = {
		[KIND_PARAMETERS] = FACT_memory_parameters, [KIND_GRADIENTS] = FACT_memory_gradients,
		[KIND_OPTIMIZER] = FACT_memory_optimizer, [KIND_ACTIVATIONS] = FACT_memory_activations,
		[KIND_BACKWARD] = FACT_memory_backward, [KIND_GRAPHS] = FACT_memory_graphs,
		[KIND_WORKSPACES] = FACT_memory_workspaces, [KIND_LOADED] = FACT_memory_loaded,
		[KIND_OTHER] = FACT_memory_other,
	};
	bool any = false;

	for (size_t i = 0; i < l->n && !any; i++)
		any = l->line[i].part == PART_TENSORS && l->line[i].place.file;
	for (int k = 0; any && k < KIND_COUNT; k++)
		set_bytes(f, kinds[k], l->kind[k]);
	for (size_t i = 0; i < l->n; i++) {
		if (l->line[i].part != PART_TENSORS || !l->line[i].place.file)
			continue;
		set_line(f, FACT_memory_top_line, t, &l->line[i].place);
		set_bytes(f, FACT_memory_top_bytes, l->line[i].bytes);
		fact_set_text(f, FACT_memory_top_kind, ledger_kind_text(l->line[i].kind));
		break;
	}
}

#define NOTABLE	8u	/* a module is told if it has at least one in so many of the bytes */

/* In framework code all tensors come from the same lines. */
static void fill_modules(struct casefile *f, const struct ledger *l)
{
	struct module_group *g;
	size_t n = l->modules_known ? module_groups(&g, l, f->pool) : 0, i = 0;

	while (i < n && !g[i].name)
		i++;
	if (i == n || g[i].bytes < l->allocated / NOTABLE)
		return;
	fact_set_text(f, FACT_memory_module, g[i].name);
	set_bytes(f, FACT_memory_module_bytes, g[i].bytes);
	set_bytes(f, FACT_memory_module_count, g[i].modules);
	fact_set_text(f, FACT_memory_module_kinds, module_kinds_words(g[i].kind, f->pool));
}

/* What a model needs with any batch size; the rest may depend on it. */
static void fill_purpose(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l)
{
	struct piece asked = {.stack = i->lead->stack, .kind = CW_MEM_TORCH, .device = l->device};
	struct moment m;
	struct kinds k;
	enum ledger_kind kind;

	moment_init(&m, t, l->ticks, l->device);
	kinds_init(&k, t, &m, false, f->pool);
	kind = kinds_about(&k, &asked)->kind;
	fact_set_text(f, FACT_oom_for,
		      kind == KIND_PARAMETERS || kind == KIND_GRADIENTS || kind == KIND_OPTIMIZER || kind == KIND_LOADED
			      ? ledger_kind_id(kind)
			      : "");
	moment_free(&m);
}

static void fill_segments(struct casefile *f, const struct trace *t, const struct ledger *l)
{
	const struct ledger_segments *s = &l->segments;
	const struct ledger_line *pin = NULL;

	if (!s->n || !l->lines_complete)	/* unknown blocks would look like free ones */
		return;
	set_bytes(f, FACT_frag_free, s->free_used);
	set_bytes(f, FACT_frag_largest, s->largest);
	set_bytes(f, FACT_frag_segments, s->used);
	set_bytes(f, FACT_frag_held, s->pinned);
	for (size_t i = 0; i < s->n_pins; i++)	/* many small ones keep more segments alive than a large one does */
		if (s->pin[i].place.file && (!pin || s->pin[i].count > pin->count))
			pin = &s->pin[i];
	if (!pin)
		return;
	set_line(f, FACT_frag_line, t, &pin->place);
	set_bytes(f, FACT_frag_line_count, pin->count);
	set_bytes(f, FACT_frag_line_bytes, pin->bytes);
}

/* From a recording with turns: what earlier ones left is known. */
static void fill_leftovers(struct casefile *f, struct trace *t, const struct ledger *l, const struct leftovers *x)
{
	const struct cw_header *h = trace_header(t);
	const struct ledger_line *line = NULL;

	set_bytes(f, FACT_graph_nodes, h->n_nodes);
	set_bytes(f, FACT_graph_nodes_run, h->n_nodes_run);
	set_bytes(f, FACT_graph_rounds, x->graphs.turns + 1);
	set_bytes(f, FACT_graph_kept, x->graphs.bytes);
	fact_set_flag(f, FACT_graph_loop_run, x->graphs_in_training);
	set_line(f, FACT_graph_line, t, &x->last);
	fact_set_text(f, FACT_graph_via, place_callers(t, &x->last, f->pool));
	set_line(f, FACT_graph_most, t, &x->graphs.most);
	fact_set_flag(f, FACT_room_exact, x->exact && !x->graphs.over && !x->tensors.over);
	f->blamed[BLAMED_graphs] = line_with_callers(f, t, x->last.file ? &x->last : &x->try);
	set_bytes(f, FACT_oom_tried, x->tried);
	set_line(f, FACT_oom_try, t, &x->try);
	fact_set_flag(f, FACT_grow_is, x->tensors.bytes > 0);
	if (!x->tensors.bytes)
		return;
	for (size_t i = 0; i < l->n && !line; i++)
		if (l->line[i].part == PART_TENSORS && place_same(&l->line[i].place, &x->tensors.most))
			line = &l->line[i];
	set_line(f, FACT_grow_line, t, &x->tensors.most);
	set_bytes(f, FACT_grow_bytes, x->tensors.most_bytes);
	set_bytes(f, FACT_grow_count, x->tensors.most_blocks);
	if (line && line->made)
		set_bytes(f, FACT_grow_made, line->made);
	set_bytes(f, FACT_grow_turns, x->tensors.turns);
	fact_set_flag(f, FACT_grow_replaced, x->tensors.replaced);
	fact_set_flag(f, FACT_grow_built, x->tensors.built);
	set_bytes(f, FACT_grow_each, x->tensors.most_bytes / x->tensors.turns);
	f->blamed[BLAMED_growth] = line_with_callers(f, t, &x->tensors.most);
}

/* From an older recording: guessed from what is there at the end. */
static void fill_retention(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l)
{
	const struct ledger_line *g;
	struct retention r;

	retention_find(&r, t, l, i->lead, f->pool);
	set_bytes(f, FACT_graph_nodes, r.nodes);
	set_bytes(f, FACT_graph_nodes_run, r.nodes_run);
	set_bytes(f, FACT_graph_rounds, r.rounds);
	set_bytes(f, FACT_graph_kept, r.kept);
	set_bytes(f, FACT_graph_kept_run, r.kept_run);
	set_line(f, FACT_graph_line, t, &r.last);
	fact_set_text(f, FACT_graph_via, place_callers(t, &r.last, f->pool));
	set_line(f, FACT_graph_most, t, &r.most);
	g = growth_find(l, t, &r);
	fact_set_flag(f, FACT_grow_is, g && g->bytes >= l->allocated / 4);
	if (!g)
		return;
	set_line(f, FACT_grow_line, t, &g->place);
	set_bytes(f, FACT_grow_bytes, g->bytes);
	set_bytes(f, FACT_grow_count, g->count);
	set_bytes(f, FACT_grow_made, g->made);
	set_bytes(f, FACT_grow_each, g->bytes / g->count);
}

/* Something that could have been freed, and what would have remained. `again`: every turn would leave as much. */
struct way { const char *name; enum fact_id fact; bool known; uint64_t frees; int64_t spare; bool again; };

/* If the loop has brought the program to more memory than ever before, what is freed once helps for some more turns, unless the loop was
 * about to end. */
static bool only_postpones(const struct way *w, const struct further *further)
{
	return !w->again && further->most_ever && (uint64_t)w->spare < further->added;
}

/* The program would have gone on for as long again as it has, or has been through all of this before. */
static bool lasts(const struct way *w, const struct further *further, uint64_t allocated)
{
	return w->again || !further->most_ever || (uint64_t)w->spare >= allocated;
}

/* What several earlier turns left (`again`) would come back at the same rate. Anything smaller that is freed only once would have helped
 * for fewer turns than the program has made. */
static void fill_ways(struct casefile *f, const struct way *way, size_t n, uint64_t left, uint64_t allocated,
		      const struct further *further)
{
	const struct way *first = NULL;
	const char *enough = "";
	uint64_t postponed = 0;
	double ways = 0;

	for (size_t i = 0; i < n; i++) {
		if (!way[i].known)
			continue;
		fact_set_number(f, way[i].fact, (double)way[i].spare);
		if (way[i].spare < 0 || (way[i].frees < left && !way[i].again))
			continue;
		if (only_postpones(&way[i], further)) {
			postponed = (uint64_t)way[i].spare > postponed ? (uint64_t)way[i].spare : postponed;
			fact_set_flag(f, FACT_room_postponed, true);
			continue;
		}
		ways++;
		enough = pool_printf(f->pool, "%s%s%s", enough, enough[0] ? " " : "", way[i].name);
		if (!first || lasts(&way[i], further, allocated) > lasts(first, further, allocated) ||
		    (lasts(&way[i], further, allocated) == lasts(first, further, allocated) &&
		     way[i].frees > first->frees))
			first = &way[i];
	}
	fact_set_number(f, FACT_room_ways, ways);
	fact_set_text(f, FACT_room_enough, enough);
	set_bytes(f, FACT_room_more, further->turn ? postponed / further->turn : 0);
	fact_set_text(f, FACT_room_first, first ? first->name : "");
}

/* Activations wait for a backward; where none has ever run, this may be inference, which needs none of them. */
static bool *activations(struct trace *t, const struct moment *m, struct kinds *k, struct pool *pool)
{
	struct lines_run run;
	bool *gone = pool_alloc(pool, m->torch.n + 1);

	lines_run_find(&run, t);
	for (size_t i = 0; i < m->torch.n; i++)
		gone[i] = kinds_of(k, &m->torch.list[i]) == KIND_ACTIVATIONS &&
			  !lines_were_run(&run, kinds_about(k, &m->torch.list[i])->lines);
	lines_run_release(&run);
	return gone;
}

/* If the loop is over, the reason is whichever is larger: what it left or the request. */
static bool is_way(const struct left *l, uint64_t request)
{
	return l->bytes && (!l->over || l->bytes >= request);
}

static void fill_earlier(struct casefile *f, const struct incident *i, const struct trace *t)
{
	const struct cw_failure *const *all;
	const struct cw_failure *now = incident_from(i, CW_SRC_TORCH_OOM);
	uint64_t earlier = 0;

	for (size_t k = trace_failures(t, &all); k > 0; k--)
		earlier += now && all[k - 1]->source == CW_SRC_TORCH_OOM && all[k - 1]->ticks < now->ticks;
	set_bytes(f, FACT_oom_earlier, earlier);
}

static void fill_smaller(struct casefile *f, const struct trace *t, const struct replay *r)
{
	struct replay_question q = replay_same(r);
	struct smaller s;

	smaller_find(&s, r, &q);
	fact_set_text(f, FACT_oom_fits_words, smaller_words(&s, t, f->pool));
	if (s.batch)
		set_bytes(f, FACT_oom_batch, s.batch);
	if (s.known && s.batch)
		set_bytes(f, FACT_oom_fits_size, s.largest);
	if (s.known) {
		set_bytes(f, FACT_oom_fits_millionths, s.largest * 1000000 / smaller_whole(&s));
		set_bytes(f, FACT_oom_fits_percent, smaller_percent(&s));
		set_bytes(f, FACT_oom_fits_chunks, smaller_chunks(&s));
	}
}

static void fill_played(struct casefile *f, const struct per_turn_known *known, bool packed,
			const struct replay *requests)
{
	struct replay *r = room_open(known->trace, known->m->device);
	int64_t spare;

	if (r && packed && room_played(r, "expandable_segments:True", &spare))
		fact_set_number(f, FACT_room_expandable, (double)spare);
	if (r)
		fill_smaller(f, known->trace, r);
	if (r || requests)
		observe_growth(f, requests ? requests : r, known);
	replay_free(r);
}

static void fill_room(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l,
		      const struct moment *m, struct kinds *k, const struct leftovers *x, const struct replay *requests)
{
	struct further further;
	const struct cw_failure *torch = incident_from(i, CW_SRC_TORCH_OOM);
	uint64_t library = (uint64_t)fact_number(f, FACT_library_bytes, 0);
	struct room r = {.segments = &l->segments, .blocks = &m->torch, .free = l->part[PART_FREE]};
	uint64_t others = l->part[PART_PROCESSES], left = 0;

	if (l->segments.kept_free) {
		set_bytes(f, FACT_pool_bytes, l->segments.kept_free);
		set_line(f, FACT_pool_line, t, &l->segments.kept_line.place);
		set_bytes(f, FACT_pool_segments, l->segments.kept_line.count);
		f->blamed[BLAMED_pools] = line_with_callers(f, t, &l->segments.kept_line.place);
	}
	fact_set_flag(f, FACT_room_known, torch && l->segments.n && l->lines_complete && l->free_known);
	fact_set_flag(f, FACT_room_proven, fact_true(f, FACT_room_known) && x->known);
	if (!fact_true(f, FACT_room_known))
		return;
	r.request = torch->request_bytes;
	further_find(&further, t, m, i->lead, l->allocated, r.request);
	fact_set_flag(f, FACT_room_most_ever, further.most_ever);
	fact_set_flag(f, FACT_room_postponed, false);
	set_bytes(f, FACT_room_turn, further.turn);
	set_bytes(f, FACT_room_turns, further.turns);
	if (further.turn)
		set_line(f, FACT_room_loop, t, &further.loop);
	set_bytes(f, FACT_room_again, x->run_again);
	set_bytes(f, FACT_room_built, x->built);
	set_bytes(f, FACT_room_grown, x->grown.turns);
	fact_set_flag(f, FACT_room_rising, x->rising);
	set_bytes(f, FACT_room_grown_first, x->grown.first);
	fact_set_flag(f, FACT_room_grown_alone, x->grown.alone);
	struct way way[] = {
		{"graphs", FACT_room_graphs, is_way(&x->graphs, r.request), x->graphs.bytes,
		 room_without(&r, x->graphs.gone, 0), x->graphs.again},
		{"growth", FACT_room_grow, is_way(&x->tensors, r.request), x->tensors.bytes,
		 room_without(&r, x->tensors.gone, 0), x->tensors.again},
		{"gaps", FACT_room_packed, true, l->segments.free_used, room_packed(&r), false},
		{"others", FACT_room_others, fact_known(f, FACT_others_bytes) && others, others,
		 room_without(&r, NULL, others), false},
		{"pools", FACT_room_pools, l->segments.kept_free > 0, l->segments.kept_free,
		 room_without(&r, NULL, l->segments.kept), true},
		{"library", FACT_room_library, library > 0, library, room_without(&r, NULL, library), false},
	};
	for (size_t n = 0; n < 2; n++)
		if (way[n].known && way[n].spare >= 0 && way[n].frees > left)
			left = way[n].frees;
	fill_ways(f, way, sizeof(way) / sizeof(way[0]), left, l->allocated, &further);
	fill_played(f, &(struct per_turn_known){t, m, i->lead, x}, room_packed(&r) >= 0, requests);
	if (fact_number(f, FACT_graph_nodes, 0) > 0 &&
	    (fact_number(f, FACT_graph_nodes_run, 1) <= 0 ||
	     (fact_true(f, FACT_graph_evaluates) && fact_number(f, FACT_room_ways, 1) <= 0)))
		fact_set_number(f, FACT_room_no_grad, (double)room_without(&r, activations(t, m, k, f->pool), 0));
	fact_set_flag(f, FACT_room_alone,
		      fact_number(f, FACT_room_ways, 0) == 1 && fact_number(f, FACT_room_no_grad, -1) < 0);
}

static void fill_others(struct casefile *f, const struct trace *t, const struct ledger *l, const struct ledger_seen *seen)
{
	const struct ledger_holder *most = NULL;
	size_t same = 0;

	for (size_t i = 0; i < seen->n; i++) {
		const struct ledger_holder *h = &seen->holder[i];

		if (!most || h->bytes > most->bytes)
			most = h;
		same += h->command && h->command[0] && !strcmp(h->command, trace_header(t)->cmdline);
	}
	set_bytes(f, FACT_others_bytes, l->part[PART_PROCESSES]);
	set_bytes(f, FACT_others_count, seen->n);
	set_bytes(f, FACT_others_same, same);
	if (seen->own)
		set_bytes(f, FACT_context_bytes, l->part[PART_CONTEXT]);
	if (!most)
		return;
	set_bytes(f, FACT_others_most, most->bytes);
	fact_set_text(f, FACT_others_command, most->command && most->command[0] ? most->command : NULL);
	if (most->pid)
		fact_set_number(f, FACT_others_pid, most->pid);
}

/* Lines of one library belong together. */
static void fill_library(struct casefile *f, const struct trace *t, const struct ledger *l)
{
	const struct ledger_line *best = NULL;
	uint64_t most = 0;

	for (size_t i = 0; i < l->n; i++) {
		uint64_t sum = 0;

		if (l->line[i].part != PART_LIBRARIES || !l->line[i].library)
			continue;
		for (size_t j = 0; j < l->n; j++)
			if (l->line[j].part == PART_LIBRARIES && l->line[j].library &&
			    !strcmp(l->line[j].library, l->line[i].library))
				sum += l->line[j].bytes;
		if (sum > most) {	/* the first of them is the line that has the most */
			most = sum;
			best = &l->line[i];
		}
	}
	if (!best)
		return;
	set_bytes(f, FACT_library_bytes, most);
	fact_set_text(f, FACT_library_name, best->library);
	set_line(f, FACT_library_line, t, &best->place);
	f->blamed[BLAMED_library] = line_with_callers(f, t, &best->place);
}

/* Statuses that these libraries return when an allocation fails, among other reasons. */
static const char *const statuses[] = {
	"CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED",
	"CUSPARSE_STATUS_ALLOC_FAILED", "CUFFT_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED",
	"CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_INTERNAL_ERROR", "CUSOLVER_STATUS_INTERNAL_ERROR",
	"CUFFT_INTERNAL_ERROR", "unable to find an engine to execute this computation",
	"Unable to find a valid cuDNN algorithm", "CUBLAS_STATUS_INTERNAL_ERROR", NULL,
};

#define BEFORE_NS 2000000000ull

static void fill_masked(struct casefile *f, const struct incident *i, const struct trace *t)
{
	const char *text = fact_text(f, FACT_error_text), *status = NULL;
	const struct cw_failure *const *all;
	size_t n = trace_failures(t, &all);
	bool refused = false;

	for (size_t k = 0; statuses[k] && !status; k++)
		if (strstr(text, statuses[k]))
			status = statuses[k];
	fact_set_text(f, FACT_masked_status, status ? status : "");
	for (size_t k = 0; status && k < n; k++) {
		uint64_t ticks = all[k]->last_ticks > all[k]->ticks ? all[k]->last_ticks : all[k]->ticks;

		if (all[k]->code != CODE_OUT_OF_MEMORY || all[k]->source != CW_SRC_DRIVER ||
		    ticks > i->lead->last_ticks || trace_ns(t, i->lead->ticks) > trace_ns(t, ticks) + BEFORE_NS)
			continue;
		refused = true;
		if (all[k]->memory_known)
			set_bytes(f, FACT_masked_free, all[k]->free_bytes);
		if (all[k]->request_bytes)
			set_bytes(f, FACT_oom_request, all[k]->request_bytes);
	}
	fact_set_flag(f, FACT_masked_oom, refused);
}

static bool stack_loads(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		if (str_ends(trace_string(t, s->frame[i].file), "torch/serialization.py") ||
		    strstr(trace_string(t, s->frame[i].file), "safetensors/"))
			return true;
	return false;
}

static void set_limit(struct casefile *f, enum fact_id id, uint64_t bytes)
{
	if (bytes < RAM_UNLIMITED)
		set_bytes(f, id, bytes);
}

static void fill_ram(struct casefile *f, const struct ram_state *r, const struct cw_header *h)
{
	double request = fact_number(f, FACT_oom_request, -1);
	uint64_t pinned = (uint64_t)fact_number(f, FACT_pinned_bytes, 0), room = 0;
	enum ram_limit limit;

	set_limit(f, FACT_ram_total, r->total);
	set_limit(f, FACT_ram_available, r->available);
	set_limit(f, FACT_ram_cgroup_limit, r->group_limit);
	set_limit(f, FACT_ram_cgroup_used, r->group_used);
	set_limit(f, FACT_ram_lock_limit, r->lock_limit);
	fact_set_flag(f, FACT_ram_wsl, r->wsl);
	if (request < 0 || !fact_true(f, FACT_oom_host))
		return;
	limit = ram_limit_of(r, (uint64_t)request, pinned, h->pinned_peak_bytes, &room);
	fact_set_text(f, FACT_ram_limit, ram_limit_id(limit));
	if (limit)
		set_bytes(f, FACT_ram_room, room);
}

/* As of the failure. What was freed since then is in the table of freed memory, as far back as that goes. */
static uint64_t pinned_then(struct trace *t, uint64_t ticks)
{
	uint64_t sum = 0, now = trace_header(t)->pinned_bytes;
	struct pieces p;

	pieces_of_driver_at(&p, t, ticks);
	for (size_t i = 0; i < p.n; i++)
		sum += p.list[i].kind == CW_MEM_PINNED || p.list[i].kind == CW_MEM_REGISTERED ? p.list[i].size : 0;
	pieces_free(&p);
	return sum > now ? sum : now;
}

static void fill_process(struct casefile *f, const struct incident *i, struct trace *t)
{
	const struct cw_header *h = trace_header(t);

	fact_set_number(f, FACT_process_local_rank, h->local_rank == CW_UNKNOWN ? -1.0 : h->local_rank);
	if (h->rank != CW_UNKNOWN)
		fact_set_number(f, FACT_process_rank, h->rank);
	if (h->world_size != CW_UNKNOWN)
		fact_set_number(f, FACT_process_world_size, h->world_size);
	fact_set_flag(f, FACT_load_is, stack_loads(t, i->lead->stack));
	set_bytes(f, FACT_pinned_bytes, fact_true(f, FACT_oom_host) ? pinned_then(t, i->lead->ticks) : h->pinned_bytes);
	set_bytes(f, FACT_pinned_peak, h->pinned_peak_bytes);
	if (i->ram)
		fill_ram(f, i->ram, h);
}

/* What would have let the program go on. */
void ledger_proof(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l,
		  const struct replay *requests)
{
	struct leftovers x;
	struct moment m;
	struct kinds k;

	fill_segments(f, t, l);
	moment_init(&m, t, l->ticks, l->device);
	kinds_init(&k, t, &m, failure_in_backward(t, i->lead), f->pool);
	leftovers_find(&x, t, &m, &k, i->lead, f->pool);
	if (!fact_true(f, FACT_snapshot_cut))	/* else it may have had others before */
		fact_set_flag(f, FACT_turn_first, x.known && x.in_loop && !x.turned);
	fact_set_flag(f, FACT_turn_first_pass, x.known && x.first_pass);
	if (x.known)
		fill_leftovers(f, t, l, &x);
	else
		fill_retention(f, i, t, l);
	observe_uses(f, i, t, x.known && x.last.file ? &x.last : NULL);
	fill_earlier(f, i, t);
	fill_room(f, i, t, l, &m, &k, &x, requests);
	moment_free(&m);
}

void ledger_facts(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l,
		  const struct ledger_seen *seen)
{
	double request = fact_number(f, FACT_oom_request, -1), left = fact_number(f, FACT_oom_free, -1);

	fill_masked(f, i, t);
	fill_process(f, i, t);
	fact_set_flag(f, FACT_others_known, l && seen->known);
	fact_set_flag(f, FACT_grow_is, false);
	fact_set_flag(f, FACT_room_known, false);
	fact_set_flag(f, FACT_room_proven, false);
	fact_set_number(f, FACT_graph_nodes, 0);
	if (request >= 0 && left >= 0)
		fact_set_number(f, FACT_oom_missing, request > left ? request - left : 0);
	if (!l)
		return;
	fill_tensors(f, t, l);
	fill_modules(f, l);
	fill_purpose(f, i, t, l);
	fill_library(f, t, l);
	if (seen->known)
		fill_others(f, t, l, seen);
	observe_other_gpus(f, i->usage, t, l->device);
	ledger_proof(f, i, t, l, NULL);
	observe_batch_options(f, t, i->lead);
}

void observe_ledger(struct casefile *c, const struct incident *i, struct trace *t)
{
	struct ledger_seen seen;
	struct ledger *l = ledger_of_incident(c, i, t, &seen);

	ledger_facts(c, i, t, l, &seen);
	if (!l)
		return;
	ledger_own(l, trace_header(t)->cwd, c->pool);
	c->ledger = l;
}
