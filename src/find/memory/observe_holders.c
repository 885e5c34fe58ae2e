/* SPDX-License-Identifier: Apache-2.0
 * What kept the tensors alive, by the names that the program has for it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/private.h"
#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "read/recording/kept_by.h"
#include "read/recording/trace.h"

static struct line frame_line(struct casefile *c, const struct trace *t, const struct cw_holder *h)
{
	struct place p = {.file = h->file, .function = h->function, .line = h->line};

	return h->line && h->file[0] ? line_of_place(c, t, &p) : (struct line){0};
}

static struct line made_line(struct casefile *c, const struct trace *t, uint32_t stack)
{
	struct place p;

	return stack && place_of_stack(t, stack, &p) ? line_of_place(c, t, &p) : (struct line){0};
}

/* Names may be keys of somebody's: what stands around them in a sentence would hide some. */
static const char *path_shown(struct casefile *c, const struct cw_holder *h)
{
	char *shown = private_shown(h->path);
	const char *kept = pool_strdup(c->pool, shown);

	free(shown);
	return kept;
}

static void take(struct casefile *c, const struct trace *t, const struct cw_holder *h)
{
	c->holders[c->n_holders++] = (struct holder_seen){
		.path = path_shown(c, h), .kind = pool_strdup(c->pool, h->kind), .length = h->length,
							  .bytes = h->bytes,
							  .graph = h->graph,
							  .gradients = h->gradients,
							  .used = h->used,
							  .tensors = h->tensors,
							  .blocks = h->blocks,
							  .of = frame_line(c, t, h),
							  .made = made_line(c, t, h->stack)};
}

static bool was_made_at(const struct casefile *c, const struct holder_seen *h, const char *line)
{
	return h->made.file && line[0] && !strcmp(pool_printf(c->pool, "%s:%u", h->made.shown, h->made.number), line);
}

/* The one that has what the line to blame has allocated; where graphs are left, the one that has most of those; else the largest. NULL: none
 * of them may be to blame. */
static const struct holder_seen *main_holder(const struct casefile *c, uint64_t all)
{
	const struct holder_seen *largest = &c->holders[0], *best = NULL;
	bool grows = fact_true(c, FACT_grow_is), graphs = fact_number(c, FACT_graph_kept, 0) > 0;

	for (size_t i = 0; grows && i < c->n_holders; i++)
		if (was_made_at(c, &c->holders[i], fact_text(c, FACT_grow_line)))
			return &c->holders[i];
	for (size_t i = 0; graphs && i < c->n_holders; i++)
		if (c->holders[i].graph > (best ? best->graph : 0))
			best = &c->holders[i];
	if (best)
		return best;
	return (grows || graphs) && largest->bytes < all / 2 ? NULL : largest;
}

static const char *kind_words(const struct casefile *c, const struct holder_seen *h)
{
	const char *article = strchr("AEIOUaeiou", h->kind[0]) ? "an" : "a";

	if (!h->kind[0])
		return "";
	if (!strcmp(h->kind, "Tensor"))
		return ", a tensor";
	return h->length ? pool_printf(c->pool, ", %s %s of %llu", article, h->kind, (unsigned long long)h->length)
			 : pool_printf(c->pool, ", %s %s", article, h->kind);
}

/* "`trainer.metrics.history`, a list of 131 (`trainer` is a variable of main(), train.py:88)," */
const char *holder_words(const struct casefile *c, const struct holder_seen *h)
{
	const char *first = pool_copy(c->pool, h->path, strcspn(h->path, ".[ ")), *kind = kind_words(c, h), *of = "";
	const char *place = h->of.file ? pool_printf(c->pool, "a variable of %s(), %s:%u", h->of.function, h->of.shown, h->of.number)
				       : NULL;

	if (place && !strcmp(first, h->path))
		of = pool_printf(c->pool, " (%s)", place);
	else if (place)
		of = pool_printf(c->pool, " (`%s` is %s)", first, place);
	return pool_printf(c->pool, "`%s`%s%s%s", h->path, kind, of, *kind ? "," : "");
}

static const char *unheld_what(uint32_t flags)
{
	if (flags & CW_UNHELD_WORKSPACE)
		return "workspace";
	if (flags & CW_SITE_CAPTURED)
		return "cuda-graph";
	if (flags & CW_SITE_GRADIENT)
		return "gradients";
	return flags & CW_SITE_BACKWARD ? "backward" : "other";
}

static void take_unheld(struct casefile *c, const struct trace *t, const struct cw_unheld *u)
{
	c->unheld[c->n_unheld++] = (struct unheld_seen){
		.what = unheld_what(u->flags), .bytes = u->bytes, .blocks = u->blocks, .made = made_line(c, t, u->stack)};
}

void holders_seen(struct casefile *c, const struct trace *t, const struct cw_holders *found)
{
	c->holders = pool_alloc(c->pool, (found->n + 1) * sizeof(*c->holders));
	c->unheld = pool_alloc(c->pool, CW_UNHELD * sizeof(*c->unheld));
	c->holders_whole = found->whole;
	for (uint32_t i = 0; i < found->n; i++)
		take(c, t, &found->list[i]);
	for (uint32_t i = 0; i < CW_UNHELD && found->unheld[i].bytes; i++)
		take_unheld(c, t, &found->unheld[i]);
	c->unheld_bytes = found->live_bytes > found->bytes ? found->live_bytes - found->bytes : 0;
	c->unheld_blocks = found->live_blocks > found->blocks ? found->live_blocks - found->blocks : 0;
}

/* Most of the memory, although all objects were looked at. */
static void note_unheld(struct casefile *c, uint64_t all)
{
	const struct unheld_seen *u = c->n_unheld ? &c->unheld[0] : NULL;
	const char *line = u && u->made.file ? pool_printf(c->pool, "%s:%u", u->made.shown, u->made.number) : NULL;

	if (!c->holders_whole || !u || c->unheld_bytes <= all / 2)
		return;
	fact_set_number(c, FACT_holder_unheld, (double)c->unheld_bytes);
	if (line && u->bytes > c->unheld_bytes / 2)
		fact_set_text(c, FACT_holder_unheld_line, line);
}

void observe_holders(struct casefile *c, const struct trace *t)
{
	const struct holder_seen *h;
	struct cw_holders found;

	if (c->holders || !fact_true(c, FACT_oom_is) || !trace_holders(t, &found) || found.why[0])
		return;
	holders_seen(c, t, &found);
	note_unheld(c, found.live_bytes);
	if (!found.n)
		return;
	h = main_holder(c, found.live_bytes);
	if (!h)
		return;
	fact_set_flag(c, FACT_holder_is, true);
	fact_set_text(c, FACT_holder_path, h->path);
	fact_set_text(c, FACT_holder_named, holder_words(c, h));
	fact_set_number(c, FACT_holder_bytes, (double)h->bytes);
	fact_set_number(c, FACT_holder_tensors, h->tensors);
	fact_set_number(c, FACT_holder_graph, (double)h->graph);
	fact_set_number(c, FACT_holder_gradients, (double)h->gradients);
	if (h->used)
		fact_set_number(c, FACT_holder_used, (double)h->used);
}
