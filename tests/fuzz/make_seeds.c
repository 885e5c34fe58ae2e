/* SPDX-License-Identifier: Apache-2.0
 * Writes the seeds of the corpus: make_seeds FOLDER.
 */
#include <stdio.h>

#include "tests/unit/trace_make.h"

static const char *folder;

static void save(const char *name, const struct make *m, size_t len)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (!f || fwrite(m->data, 1, len, f) != len || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

static struct cw_failure *failures(struct make *m, uint32_t n)
{
	return (struct cw_failure *)(m->data + make_chunk(m, CW_CHUNK_FAILURES,
							  n * sizeof(struct cw_failure)));
}

static void text(struct cw_failure *f, const char *what, const char *message)
{
	snprintf(f->what, sizeof(f->what), "%s", what);
	snprintf(f->text, sizeof(f->text), "%s", message);
}

/* An uncaught Python exception, and the PyTorch error behind it. */
static void python(struct make *m)
{
	uint32_t heap = make_chunk(m, CW_CHUNK_HEAP, 512), file, function, stack;
	struct cw_failure *f = failures(m, 4);

	file = make_string(m, &heap, "train.py");
	function = make_string(m, &heap, "<module>");
	stack = make_stack(m, &heap, file, function, 7);
	f[0] = (struct cw_failure){.seq = 1, .source = CW_SRC_TORCH_CHECK, .stack = stack, .line = 9};
	text(&f[0], "at::native::mm", "mat1 and mat2 shapes cannot be multiplied (10x10 and 5x10)");
	f[1] = (struct cw_failure){.seq = 2, .source = CW_SRC_PYTHON, .stack = stack};
	text(&f[1], "RuntimeError", "mat1 and mat2 shapes cannot be multiplied (10x10 and 5x10)");
	make_header(m)->n_failures = 2;
}

static void memory(struct make *m)
{
	struct cw_failure *f = failures(m, 4);

	f[0] = (struct cw_failure){.seq = 1, .source = CW_SRC_DRIVER, .api = 120, .code = 2,
				   .n_args = 2, .arg = {0, 1ull << 40}, .request_bytes = 1ull << 40,
				   .memory_known = 1, .free_bytes = 1 << 30,
				   .total_bytes = 1ull << 34};
	f[1] = (struct cw_failure){.seq = 2, .source = CW_SRC_TORCH_OOM,
				   .request_bytes = 1ull << 40,
				   .memory_known = 1, .free_bytes = 1 << 30,
				   .total_bytes = 1ull << 34,
				   .torch_allocated = 1 << 20, .torch_reserved = 1 << 21};
	text(&f[1], "OutOfMemory", "");
	f[2] = (struct cw_failure){.seq = 3, .source = CW_SRC_RUNTIME, .api = 0, .code = 101, .n_args = 1, .arg = {7}};
	f[3] = (struct cw_failure){.seq = 4, .source = CW_SRC_FORK, .code = 3};
	make_memory(m, 0);
}

static void sticky(struct make *m)
{
	struct cw_failure *f = failures(m, 4);

	f[0] = (struct cw_failure){.seq = 1, .source = CW_SRC_DRIVER, .api = 30, .code = 700};
	f[1] = (struct cw_failure){.seq = 2, .source = CW_SRC_TORCH_CUDA, .code = 700};
	f[2] = (struct cw_failure){.seq = 3, .source = CW_SRC_DRIVER, .api = 32, .code = 900, .capturing = 1};
	f[3] = (struct cw_failure){.seq = 4, .source = CW_SRC_DRIVER, .api = 91, .code = 209};
}

/* A loop in a loop, in which PyTorch ran out of memory: the turns of its live blocks, of its launches and of the failure. */
static void turns(struct make *m)
{
	uint32_t heap = make_chunk(m, CW_CHUNK_HEAP, 512), file, function, stack, up = 0, ring;
	struct cw_failure *f = failures(m, 2);
	struct cw_allocation *block, *segment;
	struct cw_failure_turns *failure;
	struct cw_launch *launch;
	struct cw_turned *log;
	struct cw_loop *loop;
	struct cw_turn *turn;

	file = make_string(m, &heap, "train.py");
	function = make_string(m, &heap, "train");
	stack = make_stack(m, &heap, file, function, 12);
	loop = (void *)(m->data + make_chunk(m, CW_CHUNK_LOOPS, 4 * sizeof(*loop)));
	loop[1] = (struct cw_loop){.frame = {file, function, 8, 5}, .flags = CW_LOOP_FOR};
	loop[2] = (struct cw_loop){.frame = {file, function, 9, 5}};
	turn = (void *)(m->data + make_chunk(m, CW_CHUNK_TURNS, 8 * sizeof(*turn)));
	block = (void *)(m->data + make_chunk(m, CW_CHUNK_BLOCKS, 8 * sizeof(*block)));
	segment = (void *)(m->data + make_chunk(m, CW_CHUNK_ALLOCATIONS, 4 * sizeof(*segment)));
	segment[0] = (struct cw_allocation){.addr = 0x7000000, .size = 2 << 20, .kind = CW_MEM_DEVICE};
	for (uint32_t i = 0; i < 6; i++) {
		turn[i] = (struct cw_turn){
			.up = i ? up : 0, .at = {i ? 2 : 1, i ? i : 1, CW_TURN_EXACT}, .refs = 1, .serial = i + 1};
		up = i ? up : (uint32_t)((uint8_t *)turn - m->data);
		block[i] = (struct cw_allocation){.addr = 0x7000000 + 4096 * i,
						  .size = 2048,
						  .stack = stack,
						  .kind = CW_MEM_TORCH,
						  .site = 1,
						  .extra = (uint64_t)((uint8_t *)&turn[i] - m->data) << 32};
	}
	launch = make_ring(m, CW_CHUNK_LAUNCHES, 8, sizeof(*launch), 6);
	ring = (uint32_t)((uint8_t *)launch - m->data - sizeof(struct cw_ring));
	for (uint32_t i = 0; i < 6; i++)
		launch[i] = (struct cw_launch){.seq = i + 1, .ticks = 1100 + i, .stack = stack, .tid = 1};
	log = make_ring(m, CW_CHUNK_TURN_LOG, 8, sizeof(*log), 4);
	((struct cw_ring *)log - 1)->thread_key = ring;
	log[0] = (struct cw_turned){1, 1, 0, {1, 1, CW_TURN_EXACT}};
	for (uint32_t i = 1; i < 4; i++)
		log[i] = (struct cw_turned){i + 1, i + 1, 1, {2, i, 0}};
	failure = (void *)(m->data + make_chunk(m, CW_CHUNK_FAILURE_TURNS, 2 * sizeof(*failure)));
	failure[0] = (struct cw_failure_turns){.seq = 1, .n = 2, .at = {{2, 5, 0}, {1, 1, CW_TURN_EXACT}}};
	f[0] = (struct cw_failure){.seq = 1,
				   .ticks = 1200,
				   .source = CW_SRC_TORCH_OOM,
				   .stack = stack,
				   .tid = 1,
				   .request_bytes = 1 << 21,
				   .memory_known = 1, .free_bytes = 1 << 20, .total_bytes = 4 << 20, .torch_allocated = 12288,
				   .torch_reserved = 2 << 20};
	make_header(m)->n_failures = 1;
	make_memory(m, stack);
}

/* The newest allocator events: overwritten from the start, with a segment, blocks, a refusal and the error. */
static void event_log(struct make *m)
{
	uint32_t log = make_chunk(m, CW_CHUNK_EVENT_LOG, sizeof(struct cw_event_log));
	uint32_t slots = make_chunk(m, CW_CHUNK_EVENT_SLOTS, 2 * 4096);
	struct cw_event_slot *s = (void *)(m->data + slots);
	struct cw_event_log *h = (void *)(m->data + log);
	uint64_t segment = 0x700000000000ull, size = 4096 | (uint64_t)1 << CW_SLOT_SITE_SHIFT;

	memory(m);
	*h = (struct cw_event_log){.head = 2 * CW_LOG_PAGE + 9, .n_lanes = 2, .lane[1] = {.stream = 7, .pool = 1}};
	s[0] = s[CW_LOG_PAGE] = (struct cw_event_slot){CW_SLOT_TIME, 1000};
	for (uint32_t i = 1; i + 1 < CW_LOG_PAGE; i++)
		s[CW_LOG_PAGE + i] =
			(struct cw_event_slot){(segment + i * 0x200000) | (i % 2 ? CW_EVENT_MADE : CW_EVENT_FREED),
					       size | (uint64_t)(i % 2) << CW_SLOT_LANE_SHIFT};
	s[2 * CW_LOG_PAGE - 1] = (struct cw_event_slot){CW_SLOT_TIME, 0};
	s[1] = (struct cw_event_slot){CW_EVENT_GAVE | 1ull << CW_SLOT_NOTE_LANE_SHIFT, 2000};
	s[2] = (struct cw_event_slot){segment, 20 << 20};
	s[3] = (struct cw_event_slot){CW_EVENT_MORE | (uint64_t)CW_MORE_REFUSED << CW_SLOT_NOTE_LANE_SHIFT, 2100};
	s[4] = (struct cw_event_slot){0, 1 << 30};
	s[5] = (struct cw_event_slot){CW_EVENT_OOM, 2200};
	s[6] = (struct cw_event_slot){0, 1 << 30};
	s[7] = (struct cw_event_slot){(segment + 0x400000) | CW_SLOT_LATER, size};
}

/* A block allocated, one freed, a driver allocation with an odd size, an allocator that ran out of memory, and lost
 * events. */
static size_t events(struct make *m)
{
	static const uint8_t bytes[] = {0, 0x80, 1, 0x80, 0x80, 0x80, 8,    4,	  1, 1, 2, 3,	 2, 3, 0x80,
					2, 0x83, 2, 7,	  4,	1,    0x80, 0x80, 1, 5, 9, 0xf9, 2, 2};
	struct cw_events_file h = {.major = CW_MAJOR, .pid = 4242};

	memcpy(h.magic, CW_EVENTS_MAGIC, sizeof(h.magic));
	memcpy(m->data, &h, sizeof(h));
	memcpy(m->data + sizeof(h), bytes, sizeof(bytes));
	return sizeof(h) + sizeof(bytes);
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*fill)(struct make *m); } seeds[] = {
		{"launch", make_usual}, {"python", python}, {"memory", memory},
		{"sticky", sticky},	{"turns", turns},   {"event-log", event_log},
	};
	struct make m;
	size_t i;

	if (argc != 2) {
		fprintf(stderr, "usage: make_seeds FOLDER\n");
		return 2;
	}
	folder = argv[1];
	make_init(&m);
	save("events", &m, events(&m));
	free(m.data);
	make_init(&m);
	save("empty", &m, sizeof(struct cw_header));
	save("cut", &m, 100);
	free(m.data);
	for (i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		make_init(&m);
		seeds[i].fill(&m);
		save(seeds[i].name, &m, m.used);
		free(m.data);
	}
	return 0;
}
