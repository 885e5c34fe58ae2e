/* SPDX-License-Identifier: Apache-2.0
 * Prints what the tests want to know of one recording file, one `key value` a line.
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

int main(int argc, char **argv)
{
	const struct cw_header *h;

	if (argc != 2)
		return 2;
	load(argv[1]);
	h = at(0, sizeof(*h));
	if (memcmp(h->magic, CW_MAGIC, 8) || h->major != CW_MAJOR)
		return 4;
#define SHOW(field) printf(#field " %llu\n", (unsigned long long)h->field)
	SHOW(pid);
	SHOW(ppid);
	SHOW(forked);
	SHOW(parent_recorded_pid);
	SHOW(sim);
	SHOW(off_because);
	SHOW(frames_off_because);
	SHOW(py_version);
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
#undef SHOW
	print_chunks(h);
	return 0;
}
