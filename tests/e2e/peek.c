/* SPDX-License-Identifier: Apache-2.0
 * Prints what the tests need to know about one recording file, one `key value` per line.
 *
 * It reads the file with the format's own header and none of cuwhy's code, so that a mistake in the
 * reader cannot hide one in the writer.
 */
#include "cuwhy/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *bytes;
static size_t size;

static const void *at(uint64_t off, uint64_t len)
{
	if (off > size || len > size - off) {
		printf("damaged %llu+%llu\n", (unsigned long long)off, (unsigned long long)len);
		exit(3);
	}
	return bytes + off;
}

static void load(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *copy;

	if (!file || fseek(file, 0, SEEK_END))
		exit(2);
	size = (size_t)ftell(file);
	rewind(file);
	copy = malloc(size + 1);
	if (!copy || fread(copy, 1, size, file) != size)
		exit(2);
	bytes = copy;
	fclose(file);
}

static unsigned long live_allocations(const struct cw_chunk *chunk)
{
	const struct cw_allocation *slot = at(chunk->off, chunk->len);
	unsigned long live = 0;

	for (size_t i = 0; i < chunk->len / sizeof(*slot); i++)
		live += slot[i].addr != 0;
	return live;
}

static unsigned long ring_head(const struct cw_chunk *chunk)
{
	const struct cw_ring *ring = at(chunk->off, sizeof(*ring));

	return (unsigned long)ring->head;
}

/* Sums over the sites, for each kind of memory that PyTorch or the driver allocated on device 0. */
static void print_nodes(const struct cw_header *h)
{
	unsigned long released = 0;

	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_chunk *chunk = &h->chunk[i];
		const struct cw_ring *r = chunk->kind == CW_CHUNK_NODES ? at(chunk->off, chunk->len) : NULL;
		const struct cw_node *node = r ? (const struct cw_node *)(r + 1) : NULL;

		for (uint32_t k = 0; r && k < r->n_slots; k++)
			released += (node[k].stack & CW_NODE_RELEASED) != 0;
	}
	printf("nodes_released %lu\n", released);
}

static void print_sites(const struct cw_header *h)
{
	unsigned long long live[2] = {0, 0}, count[2] = {0, 0}, at_peak[2] = {0, 0}, total[2] = {0, 0};
	unsigned long n = 0, backward = 0, gradient = 0, captured = 0, samples = 0;

	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_chunk *chunk = &h->chunk[i];
		const struct cw_timeline *l = chunk->kind == CW_CHUNK_TIMELINE ? at(chunk->off, sizeof(*l)) : NULL;
		const struct cw_site *s = chunk->kind == CW_CHUNK_SITES ? at(chunk->off, chunk->len) : NULL;

		samples += l && l->device == 0 ? l->n : 0;
		for (size_t k = 0; s && k < chunk->len / sizeof(*s); k++) {
			int torch = s[k].kind == CW_MEM_TORCH;

			n += s[k].kind != 0;
			backward += (s[k].flags & CW_SITE_BACKWARD) != 0;
			gradient += (s[k].flags & CW_SITE_GRADIENT) != 0;
			captured += (s[k].flags & CW_SITE_CAPTURED) != 0;
			if (!s[k].kind || s[k].device != 0)
				continue;
			live[torch] += s[k].live;
			count[torch] += s[k].live_count;
			total[torch] += s[k].total_count;
			at_peak[torch] += s[k].peak_generation == h->memory[0].peak_generation ? s[k].at_peak : s[k].live;
		}
	}
	printf("sites %lu\nsites_backward %lu\nsites_gradient %lu\nsites_captured %lu\nsamples %lu\n", n, backward,
	       gradient, captured, samples);
	printf("site_live %llu\nsite_count %llu\nsite_total %llu\nsite_at_peak %llu\n", live[1], count[1], total[1],
	       at_peak[1]);
	printf("site_driver_live %llu\nsite_driver_count %llu\n", live[0], count[0]);
}

static void print_chunks(const struct cw_header *h)
{
	unsigned long rings = 0, live = 0, launches = 0, captured = 0, blocks = 0, ranges = 0;

	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_chunk *chunk = &h->chunk[i];

		if (chunk->kind == CW_CHUNK_LAUNCHES) {
			rings++;
			launches += ring_head(chunk);
		} else if (chunk->kind == CW_CHUNK_GRAPHS) {
			captured += ring_head(chunk);
		} else if (chunk->kind == CW_CHUNK_ALLOCATIONS) {
			live += live_allocations(chunk);
		} else if (chunk->kind == CW_CHUNK_BLOCKS) {
			blocks += live_allocations(chunk);
		} else if (chunk->kind == CW_CHUNK_RANGES) {
			ranges += 1;
		}
	}
	printf("rings %lu\nring_launches %lu\nlive %lu\ncaptured %lu\n", rings, launches, live, captured);
	printf("blocks %lu\nrange_tables %lu\n", blocks, ranges);
}

/* Innermost frame first; `cut` when the outermost ones were left out. */
static void print_stack(uint32_t off)
{
	const struct cw_stack *s = off ? at(off, sizeof(*s)) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++) {
		const struct cw_frame *f = at(off + sizeof(*s) + i * sizeof(*f), sizeof(*f));
		const struct cw_string *file = at(f->file, sizeof(*file)), *function = at(f->function, sizeof(*function));

		printf(" %s:%s:%u", file->text, function->text, f->line);
	}
	printf("%s\n", s && (s->flags & CW_STACK_CUT) ? " cut" : "");
}

/* Every launch that is still in a ring: its grid's first dimension, which identifies it, and its stack. */
static void print_launches(const struct cw_header *h)
{
	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_chunk *chunk = &h->chunk[i];
		const struct cw_ring *ring = chunk->kind == CW_CHUNK_LAUNCHES ? at(chunk->off, chunk->len) : NULL;
		const struct cw_launch *slot = (const void *)(ring + 1);

		for (uint32_t k = 0; ring && k < ring->n_slots; k++) {
			if (!slot[k].seq)
				continue;
			printf("%u", slot[k].grid[0]);
			print_stack(slot[k].stack);
		}
	}
}

/* Every live block of PyTorch's: its address, and the turns of the loops in which it was allocated, innermost first. */
static void print_turns(const struct cw_header *h)
{
	const struct cw_loop *loops = NULL;

	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++)
		if (h->chunk[i].kind == CW_CHUNK_LOOPS)
			loops = at(h->chunk[i].off, h->chunk[i].len);
	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_chunk *chunk = &h->chunk[i];
		const struct cw_allocation *slot = chunk->kind == CW_CHUNK_BLOCKS ? at(chunk->off, chunk->len) : NULL;

		for (size_t k = 0; slot && k < chunk->len / sizeof(*slot); k++) {
			if (!slot[k].addr)
				continue;
			printf("%llu", (unsigned long long)slot[k].addr);
			for (uint32_t off = (uint32_t)(slot[k].extra >> 32); off && loops;) {
				const struct cw_turn *t = at(off, sizeof(*t));
				const struct cw_loop *l = &loops[t->at.loop];
				const struct cw_string *file = at(l->frame.file, sizeof(*file));

				printf(" %s:%u:%u:%s%s", file->text, l->frame.line, t->at.turn,
				       t->at.flags & CW_TURN_EXACT ? "exact" : "about",
				       l->flags & CW_LOOP_CALLS ? "-calls" : "");
				off = t->up;
			}
			printf("\n");
		}
	}
}

/* Every launch that is still in a ring: its grid's first dimension, and the line and turn of the loops it was in. */
static void print_launch_turns(const struct cw_header *h)
{
	const struct cw_loop *loops = NULL;

	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++)
		if (h->chunk[i].kind == CW_CHUNK_LOOPS)
			loops = at(h->chunk[i].off, h->chunk[i].len);
	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_ring *log =
			h->chunk[i].kind == CW_CHUNK_TURN_LOG ? at(h->chunk[i].off, h->chunk[i].len) : NULL;
		const struct cw_turned *e = (const void *)(log + 1);
		const struct cw_ring *ring = log ? at(log->thread_key, sizeof(*ring)) : NULL;
		const struct cw_launch *slot = (const void *)(ring + 1);

		for (uint32_t k = 0; ring && k < ring->n_slots; k++) {
			uint32_t depth = CW_UNKNOWN;

			if (!slot[k].seq)
				continue;
			printf("%u", slot[k].grid[0]);
			for (uint64_t n = log->head; n > 0 && depth; n--) {
				const struct cw_turned *x = &e[(n - 1) % log->n_slots];

				if (x->seq != n || x->launch > slot[k].seq || x->depth >= depth)
					continue;
				depth = x->depth;
				if (x->at.loop)
					printf(" %u:%u", loops[x->at.loop].frame.line, x->at.turn);
			}
			printf("\n");
		}
	}
}

static const char *text_at(uint32_t off)
{
	return off ? ((const struct cw_string *)at(off, sizeof(struct cw_string)))->text : "";
}

/* The bytes that the failed call was asked for, and what would have caught an exception: "frame kind does branches lines types", separated by ";". */
static void print_handlers(const struct cw_header *h)
{
	const struct cw_failure *f = NULL;
	const struct cw_failure_handlers *e = NULL;

	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		if (h->chunk[i].kind == CW_CHUNK_FAILURES)
			f = at(h->chunk[i].off, h->chunk[i].len);
		if (h->chunk[i].kind == CW_CHUNK_HANDLERS)
			e = at(h->chunk[i].off, h->chunk[i].len);
	}
	for (uint32_t i = 0; f && e && i < CW_MAX_FAILURES; i++) {
		if (!f[i].seq || e[i].seq != f[i].seq)
			continue;
		printf("%llu", (unsigned long long)f[i].request_bytes >> 30);
		for (uint32_t k = 0; k < e[i].n && k < CW_HANDLERS; k++)
			printf(";%s %s%s %u-%u %s", e[i].at[k].kind == CW_HANDLER_WITH ? "with" : "except",
			       ((const char *[]){"goes-on", "raises", "exits", "?"})[e[i].at[k].does & 3],
			       e[i].at[k].flags & CW_HANDLER_BRANCHES ? "?" : "", e[i].at[k].first_line,
			       e[i].at[k].last_line, text_at(e[i].at[k].types));
		printf("\n");
	}
}

static void print_line(const char *kind, const struct cw_printed_line *l)
{
	printf("%s %llu %u [%u,%u,%u] [%u,%u,%u] %s\n", kind, (unsigned long long)l->count, l->stream, l->block[0],
	       l->block[1], l->block[2], l->thread[0], l->thread[1], l->thread[2], l->text);
}

/* What was printed: kind, times, descriptor, first block and thread, the line. */
static void print_printed(const struct cw_header *h)
{
	for (uint32_t i = 0; i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
		const struct cw_printed *p =
			h->chunk[i].kind == CW_CHUNK_PRINTED ? at(h->chunk[i].off, sizeof(*p)) : NULL;

		if (!p)
			continue;
		printf("redirected %u\nlost %llu\n", p->redirected, (unsigned long long)p->lost);
		for (uint32_t k = 0; k < CW_PRINTED_LINES; k++) {
			if (p->assertion[k].count)
				print_line("assertion", &p->assertion[k]);
			if (p->other[k].count)
				print_line("other", &p->other[k]);
		}
		for (int k = 0; k < 2; k++)
			if (p->open[k].length)
				print_line("open", &p->open[k]);
	}
}

int main(int argc, char **argv)
{
	const struct cw_header *h;

	if (argc < 2)
		return 2;
	load(argv[1]);
	h = at(0, sizeof(*h));
	if (memcmp(h->magic, CW_MAGIC, 8) || h->major != CW_MAJOR)
		return 4;
	if (argc > 2 && strcmp(argv[2], "turns") == 0) {
		print_turns(h);
		return 0;
	}
	if (argc > 2 && strcmp(argv[2], "launch-turns") == 0) {
		print_launch_turns(h);
		return 0;
	}
	if (argc > 2 && strcmp(argv[2], "handlers") == 0) {
		print_handlers(h);
		return 0;
	}
	if (argc > 2 && strcmp(argv[2], "printed") == 0) {
		print_printed(h);
		return 0;
	}
	if (argc > 2) {		/* any other word: the launches instead of the numbers */
		print_launches(h);
		return 0;
	}
#define SHOW(field) printf(#field " %llu\n", (unsigned long long)h->field)
	SHOW(pid);
	SHOW(ppid);
	SHOW(forked);
	SHOW(parent_recorded_pid);
	SHOW(sim);
	SHOW(off_because);
	SHOW(frames_off_because);
	SHOW(py_version);
	SHOW(clock0.mono_ns);
	SHOW(exit_known);
	SHOW(exit_status);
	SHOW(n_failures);
	SHOW(n_allocs);
	SHOW(n_frees);
	SHOW(lost_stacks);
	SHOW(lost_threads);
	SHOW(lost_allocations);
	SHOW(inexact_since_ns);
	SHOW(live_device_bytes);
	SHOW(n_blocks);
	SHOW(n_blocks_freed);
	SHOW(lost_blocks);
	SHOW(blocks_inexact_since_ns);
	SHOW(used);
	SHOW(lost_sites);
	SHOW(pinned_bytes);
	SHOW(pinned_peak_bytes);
	SHOW(n_nodes);
	SHOW(n_nodes_run);
	SHOW(memory[0].allocated);
	SHOW(memory[0].reserved);
	SHOW(memory[0].peak_allocated);
	SHOW(memory[0].peak_reserved);
	SHOW(memory[0].driver);
	SHOW(memory[0].driver_peak);
	SHOW(memory[0].n_oom);
	SHOW(n_looks);
	SHOW(n_false_looks);
	SHOW(lost_looks);
	SHOW(exit_mono_ns);
#undef SHOW
	print_nodes(h);
	print_sites(h);
	print_chunks(h);
	return 0;
}
