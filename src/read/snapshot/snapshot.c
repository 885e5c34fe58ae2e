/* SPDX-License-Identifier: Apache-2.0
 * Opens a snapshot and gives access to what is in it (see snapshot.h).
 */
#include "read/snapshot/snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "formats/pickle.h"
#include "read/snapshot/snap_build.h"
#include "formats/pickle_input.h"

bool snap_is_snapshot(const void *head, size_t len)
{
	const uint8_t *b = head;

	/* other pickles start the same way; reading tells them apart */
	return len >= 3 && b[0] == 0x80 && b[1] >= 2 && b[1] <= 5;
}

#define CARD_MAX ((uint64_t)64 << 40)	/* far above any GPU */

static bool is_in_segment(const struct snap_block *b, const struct snap_segment *g)
{
	return b->addr >= g->addr && b->addr - g->addr <= g->size && b->size <= g->size - (b->addr - g->addr);
}

/* Leaves out what no card has, and blocks that are not in their segment. What a program asks for may be anything. */
static void check_figures(struct snapshot *s)
{
	for (size_t i = 0; i < s->n_segments; i++) {
		struct snap_segment *g = &s->segment[i];

		if (g->size > CARD_MAX) {
			s->impossible++;
			g->size = 0;
		}
		for (uint32_t k = 0; k < g->n; k++) {
			struct snap_block *b = &s->block[g->first + k];

			if (!is_in_segment(b, g)) {
				s->impossible++;
				*b = (struct snap_block){.addr = g->addr};
			}
		}
	}
	for (size_t i = 0; i < s->n_events; i++) {
		struct snap_event *e = &s->event[i];

		if (e->action == SNAP_OOM ? e->addr > CARD_MAX : e->size > CARD_MAX) {
			s->impossible++;
			*(e->action == SNAP_OOM ? &e->addr : &e->size) = 0;
		}
	}
}

/* Shrinks arrays that were grown by doubling: the analysis needs memory, too. */
static void *trim_array(void *array, size_t n, size_t *cap, size_t size)
{
	*cap = n ? n : 1;
	return xrealloc(array, *cap, size);
}

static struct snapshot *read_from(struct pickle_input *in, struct err *e)
{
	struct snapshot *s = xcalloc(1, sizeof(*s));
	struct snap_build b;
	int rc;

	intern_init(&s->text);
	intern_init(&s->frame);
	intern_init(&s->stack);
	intern_init(&s->pool);
	build_init(&b, s, e);
	rc = pickle_read(in, &build_sink, &b, e);
	build_release(&b);
	if (rc != 0) {
		snap_free(s);
		return NULL;
	}
	s->event = trim_array(s->event, s->n_events, &s->cap_events, sizeof(*s->event));
	s->block = trim_array(s->block, s->n_blocks, &s->cap_blocks, sizeof(*s->block));
	/* Before 2.1 blocks had no address: they follow one another. Sums of forged sizes may be anything. */
	for (size_t i = 0; i < s->n_segments; i++) {
		uint64_t addr = s->segment[i].addr;

		for (uint32_t k = 0; k < s->segment[i].n; k++) {
			struct snap_block *block = &s->block[s->segment[i].first + k];

			if (!block->addr)
				block->addr = addr;
			addr = block->addr + block->size;
		}
	}
	check_figures(s);
	/* It may be anywhere: a virtual environment, a folder in PYTHONPATH, its own source tree. */
	for (uint32_t i = 0; i < s->text.n && !s->torch_path[0]; i++) {
		const char *file = snap_text(s, i), *at = strstr(file, "/torch/nn/modules/");

		if (at && (size_t)(at - file) + sizeof("/torch/lib/libtorch.so") < sizeof(s->torch_path))
			snprintf(s->torch_path, sizeof(s->torch_path), "%.*s/torch/lib/libtorch.so", (int)(at - file),
				 file);
	}
	return s;
}

struct snapshot *snap_open(const char *path, struct err *e)
{
	struct snapshot *s = NULL;
	struct pickle_input in;
	struct err ours = {0};

	if (!e)
		e = &ours;
	if (input_open(&in, path, e) == 0)
		s = read_from(&in, e);
	input_close(&in);
	return s;
}

struct snapshot *snap_from_bytes(const void *bytes, size_t len, struct err *e)
{
	struct pickle_input in;
	struct err ours = {0};

	input_of_memory(&in, bytes, len, e ? e : &ours);
	return read_from(&in, e ? e : &ours);
}

void snap_free(struct snapshot *s)
{
	if (!s)
		return;
	free(s->segment);
	free(s->block);
	free(s->event);
	free(s->trace);
	intern_release(&s->text);
	intern_release(&s->frame);
	intern_release(&s->stack);
	intern_release(&s->pool);
	free(s);
}

const char *snap_text(const struct snapshot *s, uint32_t text)
{
	return intern_text(&s->text, text);
}

const struct snap_frame *snap_frame(const struct snapshot *s, uint32_t frame)
{
	return intern_get(&s->frame, frame < s->frame.n ? frame : 0, NULL);
}

const uint32_t *snap_stack(const struct snapshot *s, uint32_t stack, size_t *n)
{
	const uint32_t *frames = intern_get(&s->stack, stack, n);

	*n /= sizeof(*frames);
	return frames;
}

int snap_devices(const struct snapshot *s)
{
	int n = 0;

	for (size_t i = 0; i < s->n_traces; i++)
		if (s->trace[i].n)
			n = (int)i + 1;
	for (uint32_t i = 0; i < s->segments.n; i++)
		if (s->segment[s->segments.first + i].device >= n)
			n = s->segment[s->segments.first + i].device + 1;
	return n;
}

struct snap_range snap_trace(const struct snapshot *s, int device)
{
	return device >= 0 && (size_t)device < s->n_traces ? s->trace[device] : (struct snap_range){0};
}
