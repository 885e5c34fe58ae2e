/* SPDX-License-Identifier: Apache-2.0
 * Plays back to our model of PyTorch's allocator what the real one was asked for, and compares every answer.
 *
 * Reads lines from standard input (tests/torch/allocator.py writes them). What the real allocator did comes before the request
 * that made it do so:
 *
 *	init MAJOR MINOR TOTAL FREE	a new allocator, on a card with that many bytes, and so many free
 *	A addr size | F addr size	cudaMalloc that succeeded, cudaFree
 *	M addr size | U addr size	memory mapped into an expandable segment, and unmapped
 *	C addr				a deleted block became free
 *	a addr size stream p q		a request for the pool (p, q) and its answer; 0: out of memory
 *	d addr				deleted
 *	r addr stream			record_stream
 *	e p q				empty_cache
 *	s text | l fraction		settings; memory fraction
 *	pu p q kind | pb p q | pe p q | pd p q	use, begin, end, drop of a pool
 *	cb | ce				from here on, the current stream is captured; is not
 *	h stream | u stream		from here on, no event that is recorded on the stream is passed; all are
 *	P segment size addr size requested stream p q state small expandable	a block of the snapshot
 *	S				the blocks above are all there are
 *	K name value			a counter
 *	G free				free bytes of the card
 *
 * Prints the first difference with both sides and exits with 1; else how many lines there were.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocator/allocator.h"
#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

struct done {
	char what;			/* A F M U C */
	bool met;			/* by the model */
	uint64_t addr, size;
};

struct live {
	uint64_t addr;
	struct allocator_block *block;
};

struct stream {
	uint64_t handle, recorded, passed;
	bool held;
};

struct reserved {
	uint64_t addr, size;
};

static struct replay {
	char *text, *rest;		/* all lines; the next one */
	uint64_t line, total, free;
	const struct allocator_release *release;
	struct allocator_settings settings;
	struct allocator *a;
	struct done *done;
	size_t n_done, cap_done;
	struct allocator_piece *piece;
	size_t n_pieces, cap_pieces;
	struct live *live;
	size_t n_live, cap_live;
	struct map map;
	struct stream *stream;
	size_t n_streams, cap_streams;
	struct reserved *reserved;
	size_t n_reserved, cap_reserved;
	uint64_t allocs, deletes, driver_calls, reordered, snapshots;
	struct allocator_pool_id pool;	/* of the request */
	char op[256];
} r;

static void show_state(void)
{
	struct allocator_piece *list;
	size_t n = allocator_snapshot(r.a, &list);

	printf("the model has %zu blocks, %" PRIu64 " bytes reserved; the card has %" PRIu64 " free\n", n,
	       allocator_counters(r.a)->reserved.now, r.free);
	for (size_t i = 0; i < n && i < 400; i++)
		printf("  %s%" PRIx64 " %" PRIu64 " asked %" PRIu64 " stream %" PRIx64 " pool %" PRIu64 ",%" PRIu64
		       " %s %s%s\n",
		       list[i].segment == list[i].addr ? "" : "    ", list[i].addr, list[i].size, list[i].requested,
		       list[i].stream, list[i].pool.first, list[i].pool.second, list[i].small ? "small" : "large",
		       list[i].state == ALLOCATOR_FREE	    ? "free"
		       : list[i].state == ALLOCATOR_PENDING ? "pending"
							    : "allocated",
		       list[i].expandable ? " expandable" : "");
	free(list);
}

static void differ(const char *what, uint64_t real, uint64_t ours)
{
	printf("line %" PRIu64 ": %s: %s: PyTorch %" PRIu64 " (%" PRIx64 "), the model %" PRIu64 " (%" PRIx64 ")\n",
	       r.line, r.op, what, real, real, ours, ours);
	for (size_t i = 0; i < r.n_done; i++)
		if (!r.done[i].met)
			printf("  PyTorch did, the model did not yet: %c %" PRIx64 " %" PRIu64 "\n", r.done[i].what,
			       r.done[i].addr, r.done[i].size);
	show_state();
	exit(1);
}

static void compare(const char *what, uint64_t real, uint64_t ours)
{
	if (real != ours)
		differ(what, real, ours);
}

/* The next thing that the real allocator did with the driver; NULL: nothing more. */
static struct done *done_next(void)
{
	for (size_t i = 0; i < r.n_done; i++)
		if (!r.done[i].met && r.done[i].what != 'C')
			return &r.done[i];
	return NULL;
}

static void done_find(char what, uint64_t addr, uint64_t size, const char *name)
{
	struct done *next = done_next();

	r.driver_calls++;
	if (next && (next->what != what || next->addr != addr || next->size != size))
		for (size_t i = 0; i < r.n_done; i++)
			if (!r.done[i].met && r.done[i].what == what && r.done[i].addr == addr && r.done[i].size == size) {
				next = &r.done[i];
				r.reordered++;
				break;
			}
	if (!next || next->what != what)
		differ(name, 0, addr);
	compare(name, next->addr, addr);
	compare(name, next->size, size);
	next->met = true;
}

static uint64_t card_round(uint64_t size)
{
	uint64_t page = (uint64_t)2 << 20;

	return (size + page - 1) / page * page;
}

static uint64_t card_alloc(void *of, uint64_t size, uint64_t stream)
{
	struct done *next = done_next();

	(void)of;
	(void)stream;
	if (card_round(size) > r.free)
		return 0;
	r.driver_calls++;
	if (!next || next->what != 'A')
		differ("cudaMalloc", 0, size);
	compare("size of cudaMalloc", next->size, size);
	next->met = true;
	r.free -= card_round(size);
	return next->addr;
}

static void card_free(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	done_find('F', addr, size, "cudaFree");
	r.free += card_round(size);
}

static bool is_reserved(uint64_t addr)
{
	for (size_t i = 0; i < r.n_reserved; i++)
		if (addr >= r.reserved[i].addr && addr - r.reserved[i].addr < r.reserved[i].size)
			return true;
	return false;
}

/* The real address shows when it is mapped first: in this request, perhaps after others were unmapped, or in a later one of the
 * same stream and pool, when this one runs out of memory. A small request maps one page of 2 MiB, a large one never just that. */
static uint64_t reserved_later(uint64_t page, uint64_t stream)
{
	uint64_t map = 0, addr, size, on;
	struct allocator_pool_id of;

	for (size_t i = 0; i < r.n_done; i++)
		if (!r.done[i].met && r.done[i].what == 'M' && !is_reserved(r.done[i].addr))
			return r.done[i].addr;
	for (const char *s = r.rest; *s && strncmp(s, "init ", 5); s = strchr(s, '\n') + 1) {
		if (*s == 'M' && sscanf(s, "M %" SCNu64 " %" SCNu64, &addr, &size) == 2) {
			if (!map && !is_reserved(addr) && (size == 2 << 20) == (page == 2 << 20))
				map = addr;
		} else if (*s == 'a' && sscanf(s, "a %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &addr,
					       &size, &on, &of.first, &of.second) == 5) {
			if (map && on == stream && of.first == r.pool.first && of.second == r.pool.second)
				return map;
			map = 0;
		}
	}
	return 0;
}

static uint64_t card_reserve(void *of, uint64_t size, uint64_t page, uint64_t stream)
{
	uint64_t addr = reserved_later(page, stream);

	(void)of;
	if (!addr)
		addr = ((uint64_t)1 << 60) + r.n_reserved * ((uint64_t)1 << 44);
	r.reserved = xgrow(r.reserved, r.n_reserved, &r.cap_reserved, sizeof(*r.reserved));
	r.reserved[r.n_reserved++] = (struct reserved){addr, size};
	return addr;
}

static void card_unreserve(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	(void)size;
	for (size_t i = 0; i < r.n_reserved; i++)
		if (r.reserved[i].addr == addr)
			r.reserved[i].size = 0;
}

static bool card_map(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	if (size > r.free)
		return false;
	done_find('M', addr, size, "mapping");
	r.free -= size;
	return true;
}

static void card_unmap(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	done_find('U', addr, size, "unmapping");
	r.free += size;
}

static struct stream *stream_of(uint64_t handle)
{
	for (size_t i = 0; i < r.n_streams; i++)
		if (r.stream[i].handle == handle)
			return &r.stream[i];
	r.stream = xgrow(r.stream, r.n_streams, &r.cap_streams, sizeof(*r.stream));
	r.stream[r.n_streams] = (struct stream){.handle = handle};
	return &r.stream[r.n_streams++];
}

/* What is recorded on a stream that is not held is passed before the next request. */
static void stream_record(void *of, uint64_t handle, uint64_t nth, uint64_t addr)
{
	struct stream *s = stream_of(handle);

	(void)of;
	(void)addr;
	s->recorded = nth;
	if (!s->held)
		s->passed = nth;
}

static bool stream_passed(void *of, uint64_t handle, uint64_t nth)
{
	(void)of;
	return nth <= stream_of(handle)->passed;
}

static void block_freed(void *of, uint64_t addr, uint64_t requested)
{
	(void)of;
	(void)requested;
	for (size_t i = 0; i < r.n_done; i++)
		if (!r.done[i].met && r.done[i].what == 'C' && r.done[i].addr == addr) {
			r.done[i].met = true;
			return;
		}
	differ("a block became free", 0, addr);
}

static bool same_addr(const void *list, uint32_t i, const void *key)
{
	return ((const struct live *)list)[i].addr == *(const uint64_t *)key;
}

static struct allocator_block *live_find(uint64_t addr)
{
	uint32_t i = map_find(&r.map, map_hash(addr), same_addr, r.live, &addr);

	if (i == MAP_NONE)
		differ("an address that the model does not know", addr, 0);
	return r.live[i].block;
}

static void live_add(uint64_t addr, struct allocator_block *block)
{
	r.live = xgrow(r.live, r.n_live, &r.cap_live, sizeof(*r.live));
	if (map_put(&r.map, map_hash(addr), same_addr, r.live, &addr, (uint32_t)r.n_live) != r.n_live)
		differ("the address is in use", addr, addr);
	r.live[r.n_live++] = (struct live){addr, block};
}

static void live_remove(uint64_t addr)
{
	uint32_t i = map_take(&r.map, map_hash(addr), same_addr, r.live, &addr);

	r.n_live--;
	if (i != r.n_live) {
		map_moved(&r.map, map_hash(r.live[r.n_live].addr), (uint32_t)r.n_live, i);
		r.live[i] = r.live[r.n_live];
	}
}

static void begin(unsigned major, unsigned minor)
{
	static const struct allocator_driver driver = {
		.alloc = card_alloc,
		.free = card_free,
		.reserve = card_reserve,
		.unreserve = card_unreserve,
		.map = card_map,
		.unmap = card_unmap,
		.record = stream_record,
		.passed = stream_passed,
		.freed = block_freed,
	};

	allocator_free(r.a);
	map_release(&r.map);
	r.n_live = r.n_reserved = r.n_streams = 0;
	r.release = allocator_release_find(major, minor);
	if (!r.release) {
		puts("no such release");
		exit(2);
	}
	allocator_settings_init(&r.settings);
	r.a = allocator_new(r.release, &r.settings, &driver, r.total);
}

static void request_alloc(uint64_t addr, uint64_t size, uint64_t stream, struct allocator_pool_id pool)
{
	struct allocator_block *b;

	r.pool = pool;
	b = allocator_alloc(r.a, size, stream, pool);
	r.allocs++;
	compare("address", addr, b ? allocator_block_addr(b) : 0);
	if (b)
		live_add(addr, b);
}

static void settings_change(const char *text)
{
	struct err e = {0};

	if (allocator_settings_parse(&r.settings, r.release, text, &e)) {
		printf("line %" PRIu64 ": %s\n", r.line, e.msg);
		exit(2);
	}
	allocator_set(r.a, &r.settings);
}

static void stream_hold(uint64_t handle, bool held)
{
	struct stream *s = stream_of(handle);

	s->held = held;
	if (!held)
		s->passed = s->recorded;
}

static void piece_compare(const struct allocator_piece *real, const struct allocator_piece *ours)
{
	compare("segment", real->segment, ours->segment);
	compare("size of segment", real->segment_size, ours->segment_size);
	compare("block", real->addr, ours->addr);
	compare("size of block", real->size, ours->size);
	compare("stream of block", real->stream, ours->stream);
	compare("pool of block", real->pool.first, ours->pool.first);
	compare("pool of block", real->pool.second, ours->pool.second);
	compare("state of block", real->state, ours->state);
	compare("side of block", real->small, ours->small);
	compare("expandable", real->expandable, ours->expandable);
	if (real->state == ALLOCATOR_ALLOCATED)
		compare("requested size", real->requested, ours->requested);
}

static void snapshot_compare(void)
{
	struct allocator_piece *list;
	size_t n = allocator_snapshot(r.a, &list);

	r.snapshots++;
	for (size_t i = 0; i < n && i < r.n_pieces; i++)
		piece_compare(&r.piece[i], &list[i]);
	compare("number of blocks", r.n_pieces, n);
	r.n_pieces = 0;
	free(list);
}

static const struct counter {
	const char *name;
	size_t offset;
} counters[] = {
	{"allocated", offsetof(struct allocator_counters, allocated.now)},
	{"allocated_peak", offsetof(struct allocator_counters, allocated.peak)},
	{"active", offsetof(struct allocator_counters, active.now)},
	{"requested", offsetof(struct allocator_counters, requested.now)},
	{"reserved", offsetof(struct allocator_counters, reserved.now)},
	{"reserved_peak", offsetof(struct allocator_counters, reserved.peak)},
	{"inactive_split", offsetof(struct allocator_counters, inactive_split.now)},
	{"segments", offsetof(struct allocator_counters, segments.now)},
	{"retries", offsetof(struct allocator_counters, retries)},
	{"ooms", offsetof(struct allocator_counters, ooms)},
	{"syncs", offsetof(struct allocator_counters, syncs)},
	{"driver_allocs", offsetof(struct allocator_counters, driver_allocs)},
	{"driver_frees", offsetof(struct allocator_counters, driver_frees)},
};

static void counter_compare(const char *name, uint64_t real)
{
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		if (!strcmp(counters[i].name, name)) {
			const char *base = (const char *)allocator_counters(r.a);
			uint64_t ours;

			memcpy(&ours, base + counters[i].offset, sizeof(ours));
			compare(name, real, ours);
			return;
		}
	printf("line %" PRIu64 ": no counter '%s'\n", r.line, name);
	exit(2);
}

static void line_pool(char what, const uint64_t *n)
{
	struct allocator_pool_id pool = {n[0], n[1]};

	switch (what) {
	case 'u':
		allocator_pool_use(r.a, pool, (unsigned)n[2]);
		break;
	case 'b':
		allocator_pool_begin(r.a, pool);
		break;
	case 'e':
		allocator_pool_end(r.a, pool);
		break;
	default:
		allocator_pool_drop(r.a, pool);
	}
}

static void line_piece(const uint64_t *n)
{
	r.piece = xgrow(r.piece, r.n_pieces, &r.cap_pieces, sizeof(*r.piece));
	r.piece[r.n_pieces++] = (struct allocator_piece){
		.segment = n[0],
		.segment_size = n[1],
		.addr = n[2],
		.size = n[3],
		.requested = n[4],
		.stream = n[5],
		.pool = {n[6], n[7]},
		.state = (enum allocator_state)n[8],
		.small = n[9],
		.expandable = n[10],
	};
}

/* True: a request, after which all that the real allocator did must have been done by ours. */
static bool line_request(const char *s, const uint64_t *n)
{
	struct allocator_block *b;

	switch (*s) {
	case 'a':
		request_alloc(n[0], n[1], n[2], (struct allocator_pool_id){n[3], n[4]});
		return true;
	case 'd':
		r.deletes++;
		b = live_find(n[0]);
		live_remove(n[0]);
		allocator_delete(r.a, b);
		return true;
	case 'r':
		allocator_record_stream(r.a, live_find(n[0]), n[1]);
		return true;
	case 'e':
		allocator_empty_cache(r.a, (struct allocator_pool_id){n[0], n[1]});
		return true;
	case 's':
		settings_change(s + 1);
		return true;
	case 'l':
		allocator_set_fraction(r.a, atof(s + 1));
		return true;
	case 'p':
		line_pool(s[1], n);
		return true;
	case 'c':
		allocator_set_captured(r.a, s[1] == 'b');
		return true;
	case 'h':
	case 'u':
		stream_hold(n[0], *s == 'h');
		return true;
	case 'S':
		snapshot_compare();
		return true;
	case 'G':
		compare("free bytes", n[0], r.free);
		return true;
	default:
		return false;
	}
}

static size_t numbers(const char *s, uint64_t *n, size_t max)
{
	size_t count = 0;

	s += strcspn(s, " ");
	while (*s == ' ' && count < max) {
		char *end;

		n[count] = strtoull(s, &end, 10);
		if (end == s)
			break;
		count++;
		s = end;
	}
	return count;
}

static void line_take(const char *s)
{
	uint64_t n[11] = {0};
	size_t count = numbers(s, n, 11);
	char name[32];

	snprintf(r.op, sizeof(r.op), "%s", s);
	if (count == 2 && strchr("AFMU", *s)) {
		r.done = xgrow(r.done, r.n_done, &r.cap_done, sizeof(*r.done));
		r.done[r.n_done++] = (struct done){*s, false, n[0], n[1]};
	} else if (*s == 'C') {
		r.done = xgrow(r.done, r.n_done, &r.cap_done, sizeof(*r.done));
		r.done[r.n_done++] = (struct done){*s, false, n[0], 0};
	} else if (*s == 'P') {
		line_piece(n);
	} else if (!strncmp(s, "init ", 5)) {
		r.total = n[2];
		r.free = n[3];
		begin((unsigned)n[0], (unsigned)n[1]);
	} else if (sscanf(s, "K %31s %" SCNu64, name, &n[0]) == 2) {
		counter_compare(name, n[0]);
	} else if (line_request(s, n)) {
		for (size_t i = 0; i < r.n_done; i++)
			if (!r.done[i].met)
				differ("PyTorch did more", r.done[i].addr, 0);
		r.n_done = 0;
	} else {
		printf("line %" PRIu64 ": cannot read '%s'\n", r.line, s);
		exit(2);
	}
}

static char *read_all(void)
{
	size_t n = 0, cap = 1 << 20, got;
	char *text = xmalloc(cap);

	while ((got = fread(text + n, 1, cap - n - 1, stdin)) > 0) {
		n += got;
		if (cap - n < 2) {
			cap *= 2;
			text = xrealloc(text, cap, 1);
		}
	}
	text[n] = '\0';
	return text;
}

int main(void)
{
	r.text = read_all();
	for (char *s = r.text; *s; s = r.rest) {
		char *end = strchr(s, '\n');

		r.line++;
		if (!end)
			break;
		*end = '\0';
		r.rest = end + 1;
		if (*s)
			line_take(s);
	}
	printf("%" PRIu64 " allocations, %" PRIu64 " deletions, %" PRIu64 " driver calls (%" PRIu64
	       " in another order), %" PRIu64 " snapshots: equal\n",
	       r.allocs, r.deletes, r.driver_calls, r.reordered, r.snapshots);
	allocator_free(r.a);
	return 0;
}
