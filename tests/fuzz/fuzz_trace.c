/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as the recording of a process, read, judged and printed.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "show/pickle_write.h"
#include "find/fault/culprit.h"
#include "find/fault/address.h"
#include "find/fault/fault.h"
#include "find/fault/recall.h"
#include "show/chrometrace.h"
#include "show/page.h"
#include "show/torchsnap.h"
#include "verdict/verdict.h"
#include "show/report.h"
#include "compat/cuda_errors.h"
#include "base/buf.h"
#include "read/recording/copies.h"
#include "read/recording/damage.h"
#include "read/recording/event_log.h"
#include "find/memory/replay.h"
#include "find/memory/room_played.h"
#include "read/recording/events.h"
#include "read/recording/trace_memory.h"
#include "find/memory/turns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;	/* what was read must have been read */

static void use_stack(struct trace *t, uint32_t off)
{
	const struct cw_stack *s = trace_stack(t, off);
	uint32_t i;

	for (i = 0; s && i < s->n; i++)
		sink += strlen(trace_string(t, s->frame[i].file)) +
			strlen(trace_string(t, s->frame[i].function)) + s->frame[i].line;
}

static void use_failures(struct trace *t)
{
	const struct cw_failure *const *f;
	size_t i, n = trace_failures(t, &f);

	for (i = 0; i < n; i++) {
		use_stack(t, f[i]->stack);
		use_stack(t, f[i]->forward_stack);
		sink += strlen(f[i]->text) + strlen(f[i]->what) + strlen(f[i]->file) +
			strlen(trace_function_name(t, f[i]->func)) + strlen(api_name(f[i]->api)) +
			strlen(cuda_error_name(f[i]->code)) + trace_ns(t, f[i]->ticks);
	}
}

/* What was copied, and what the first launch would have found in its memory. */
static void use_copies(struct trace *t)
{
	const struct cw_launch *const *l;
	const struct cw_copy **c;
	size_t n = trace_copies(t, &c), launches = trace_launches(t, &l);
	struct recall *r = recall_open(t);
	struct recalled from;
	uint8_t bytes[16];

	recall_launch(r, launches ? l[launches - 1] : NULL, UINT64_MAX);
	for (size_t i = 0; i < n && i < 8; i++) {
		sink += trace_copied(t, c[i], 0, bytes, sizeof(bytes)) + recall_memory(r, c[i]->to, bytes, sizeof(bytes));
		recall_origin(r, c[i]->to, 8, &from);
		sink += from.made + from.copied;
	}
	recall_close(r);
	free(c);
}

static void use_lists(struct trace *t)
{
	const struct cw_launch *const *l;
	const struct cw_call *const *c;
	const struct cw_allocation *const *a;
	size_t i, n;

	n = trace_launches(t, &l);
	for (i = 0; i < n; i++) {
		use_stack(t, l[i]->stack);
		sink += strlen(trace_function_name(t, l[i]->func));
		sink += l[i]->params[CW_PARAM_BYTES - 1];
	}
	n = trace_calls(t, &c);
	for (i = 0; i < n; i++)
		sink += strlen(api_name(c[i]->api)) + c[i]->out + strlen(api_args(c[i]->api));
	n = trace_allocations(t, &a);
	for (i = 0; i < n; i++)
		sink += a[i]->addr + a[i]->size + a[i]->extra;
}

#define CARD_MAX ((uint64_t)64 << 40)

/* What is more than any card has was left out, and that is said. */
static void use_damage(struct trace *t)
{
	const struct cw_failure *const *f;
	const struct cw_allocation *const *a;
	struct pool pool = {0};
	const char *words;
	size_t i, n;

	n = trace_blocks(t, &a);
	for (i = 0; i < n; i++)
		if (a[i]->kind == CW_MEM_TORCH && a[i]->size > CARD_MAX)
			abort();
	n = trace_failures(t, &f);
	for (i = 0; i < n; i++)
		if (f[i]->torch_reserved > CARD_MAX || (f[i]->memory_known && f[i]->free_bytes > CARD_MAX))
			abort();
	words = damage_words(t, &pool);
	if (!words != !trace_is_damaged(t))
		abort();
	sink += words ? strlen(words) : 0;
	pool_release(&pool);
}

static void use_blocks(struct trace *t)
{
	const struct cw_allocation *const *a;
	const struct cw_freed *const *f;
	const struct cw_range *r;
	size_t i, n;

	n = trace_blocks(t, &a);
	for (i = 0; i < n; i++)
		sink += a[i]->addr + a[i]->size + a[i]->extra;
	n = trace_freed(t, &f);
	for (i = 0; i < n; i++)
		sink += f[i]->addr + f[i]->size + f[i]->free_stack;
	n = trace_ranges(t, &r);
	for (i = 0; i < n; i++)
		sink += r[i].end - r[i].start;
}

static void use_memory(struct trace *t)
{
	const struct cw_site *s;
	const struct cw_sample *p;
	const struct trace_node *node;
	const struct cw_epoch *epoch;
	uint64_t held[CW_EPOCHS] = {0};
	size_t i, n = trace_sites(t, &s);
	int device;

	for (i = 0; i < n; i++) {
		use_stack(t, s[i].stack);
		sink += strlen(trace_string(t, s[i].library)) + trace_site_at_peak(t, &s[i]);
	}
	for (i = 0; i < n; i++)
		sink += trace_site_held(t, i, held) ? held[0] + held[CW_EPOCHS - 1] : 0;
	for (device = -1; device <= CW_MAX_DEVICES; device++) {
		trace_epochs(t, device, &epoch, &n);
		for (i = 0; i < n; i++)
			sink += epoch[i].at + epoch[i].driver;
		trace_timeline(t, device, &p, &n);
		for (i = 0; i < n; i++)
			sink += p[i].ticks + p[i].driver;
	}
	n = trace_nodes(t, &node);
	for (i = 0; i < n; i++)
		use_stack(t, node[i].stack);
}

static void use_turns(struct trace *t)
{
	const struct cw_failure *const *f;
	const struct cw_allocation *const *block;
	const struct cw_launch *const *l;
	struct turn turns[CW_LOOP_TURNS];
	size_t failures = trace_failures(t, &f), blocks = trace_blocks(t, &block), launches = trace_launches(t, &l),
	       n = 0;
	struct pool pool = {0};
	struct site_turns s;

	for (size_t i = 0; i < failures; i++) {
		n = turns_of_failure(t, f[i], turns);
		sink += strlen(turns_in_words(t, turns, n, &pool)) + (turn_to_name(turns, n) ? 1 : 0);
	}
	for (size_t i = 0; i < blocks; i++) {
		n = turns_of_block(t, block[i], turns);
		site_turns_of(t, block[i]->site, n ? turns[n - 1].number : 1, &s);
		sink += s.n + s.bytes;
		site_turns_release(&s);
	}
	for (size_t i = 0; i < launches; i++)
		sink += turns_of_launch(t, l[i], turns);
	pool_release(&pool);
}

/* A kernel that failed at, or was passed, some address in the recording. */
static void use_address(struct trace *t)
{
	const struct cw_failure *const *f;
	const struct cw_allocation *const *a;
	const struct cw_launch *const *l;
	size_t failures = trace_failures(t, &f), launches = trace_launches(t, &l), n = trace_allocations(t, &a);
	uint64_t word = n ? a[n / 2]->addr : 0x7000000;
	struct culprit_lane lane = {.address_known = true, .address = word - 4096};
	struct culprit c = {.lanes = &lane, .n_lanes = 1, .n_kept = 1, .space = SASS_GLOBAL,
			    .insn = {.kind = SASS_LOAD, .width = 8}, .params = {(const uint8_t *)&word, sizeof(word)}};
	struct fault_launch m = {.newest = launches ? l[0] : NULL};
	struct address found;

	if (!failures)
		return;
	address_find(&found, t, &c, f[0], &m);
	lane.address = word;
	c.params.data = NULL;
	address_find(&found, t, &c, f[0], &m);
	sink += found.distance + found.block.size;
}

static void use_snapshot(struct trace *t)
{
	struct torchsnap s;
	struct pickle p;

	torchsnap_build(&s, t, NULL);
	pickle_begin(&p, 1 << 24);
	torchsnap_write(&s, t, &p);
	pickle_end(&p);
	sink += p.out.len;
	pickle_release(&p);
	torchsnap_release(&s);
}

static void print(const struct verdict *v)
{
	struct text_style style = {.color = true, .width = 80, .recording = "r"};
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return;
	report_text(out, v, &style);
	style.verbose = true;
	report_text(out, v, &style);
	report_line(out, v, NULL);
	report_json(out, v, false);
	fclose(out);
	sink += len;
	free(text);
}

static void judge(struct trace *t, int status)
{
	struct process_end end = {.pid = 1, .status_known = true, .exit = status};
	struct verdict *v[2] = {verdict_of_process(t, &end), verdict_of_process(t, &end)}, *all;

	print(v[0]);
	all = verdict_join(v, 2);
	print(all);
	verdict_free(all);
}

/* The data of the report; the address is that of a kernel that failed. */
/* Whatever was recorded, the trace is JSON. */
static void use_chrometrace(struct trace *t)
{
	struct process_end end = {.status_known = true, .exit = 1};
	struct verdict *v = verdict_of_process(t, &end);
	struct chrometrace c;
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	json_t *j;

	if (!out)
		abort();
	chrometrace_begin(&c, out, "r");
	chrometrace_process(&c, t, v);
	chrometrace_end(&c);
	fclose(out);
	j = json_loadb(text, len, 0, NULL);
	if (!j)
		abort();
	json_decref(j);
	free(text);
	verdict_free(v);
}

static void use_page(struct trace *t)
{
	struct culprit_lane lane = {.address_known = true, .address = 0x7000000};
	struct culprit c = {
		.lanes = &lane, .n_lanes = 1, .n_kept = 1, .fault = FAULT_ILLEGAL_ADDRESS, .address_known = true};
	struct process_end end = {.pid = 1, .status_known = true, .exit = 1, .fault = &c};
	struct verdict *v = verdict_of_process(t, &end);
	struct page *p = page_new("recording", "r");

	page_add_process(p, t, &end, v, NULL, true);
	page_set_verdict(p, v, NULL);
	sink += json_object_size(page_data(p));
	page_free(p);
	verdict_free(v);
}

static bool use_events(const uint8_t *data, size_t size)
{
	struct events r;
	struct event e;

	if (events_begin(&r, data, size, NULL) != 0)
		return false;
	while (events_next(&r, &e))
		sink += e.addr + e.size + e.site + e.lost;
	return true;
}

static void use_event_log(struct trace *t)
{
	int64_t spare = 0;
	struct replay *r;
	struct buf b;

	buf_init(&b, (size_t)64 << 20);
	if (event_log_pack(&b, t) == 0)
		use_events((const uint8_t *)b.data, b.len);
	buf_release(&b);
	r = room_open(t, 0);
	if (r)
		room_played(r, "expandable_segments:True", &spare);
	replay_free(r);
	sink += (uint64_t)spare;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *copy = malloc(size ? size : 1);
	struct trace *t;

	if (!copy)
		abort();
	memcpy(copy, data, size);
	if (use_events(copy, size)) {
		free(copy);
		return 0;
	}
	t = trace_from_bytes(copy, size, NULL);
	if (!t)
		return 0;
	use_failures(t);
	use_copies(t);
	use_lists(t);
	use_damage(t);
	use_blocks(t);
	use_memory(t);
	use_event_log(t);
	use_turns(t);
	use_address(t);
	use_snapshot(t);
	use_page(t);
	use_chrometrace(t);
	judge(t, 1);
	judge(t, 0);
	trace_free(t);
	return 0;
}
