/* SPDX-License-Identifier: Apache-2.0
 * The data of a report page: nothing in it is markup, it is bounded, and it says what is missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/mem.h"
#include "find/memory/memory_map.h"
#include "memory_make.h"
#include "show/page.h"
#include "show/page_blocks.h"
#include "show/page_flame.h"

#define EVIL "</script><script>alert(1)</script><!-- & \xe2\x80\xa8 \xff.py"

static const struct process_end FAILED = {.pid = 100, .status_known = true, .exit = 1};

/* The page of one process, judged. */
static struct page *page_of(struct trace *t)
{
	struct page *p = page_new("recording", "some/recording");
	struct verdict *v = verdict_of_process(t, &FAILED);

	page_add_process(p, t, &FAILED, v, NULL, false);
	page_set_verdict(p, v, NULL);
	verdict_free(v);
	return p;
}

static json_t *detail_of(struct page *p)
{
	return json_object_get(json_array_get(json_object_get(page_data(p), "processes"), 0), "detail");
}

/* What a browser would take as the page's data; NULL when this build has no page. */
static json_t *island_of(struct page *p, char **whole)
{
	static const char mark[] = "id=\"cuwhy-data\">";
	struct err e = {0};
	struct buf b;
	char *from, *to;
	json_t *j;

	buf_init(&b, 64 << 20);
	if (page_write(p, "what <b>others</b> see & more", &b, &e)) {
		buf_release(&b);
		return NULL;
	}
	from = strstr(b.data, mark);
	assert_non_null(from);
	from += strlen(mark);
	to = strcasestr(from, "</script");
	assert_non_null(to);
	j = json_loadb(from, (size_t)(to - from), JSON_REJECT_DUPLICATES, NULL);
	*whole = buf_take(&b);
	return j;
}

static size_t times(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strcasestr(text, word)) != NULL; text += strlen(word))
		n++;
	return n;
}

static void island__no_byte_of_it_can_end_it(void **state)
{
	static const char json[] = "{\"a\":\"</script><!-- &amp; ]]>\"}";
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	page_escape(&b, json, strlen(json));
	assert_null(strpbrk(b.data, "<>&"));
	assert_non_null(strstr(b.data, "\\u003c/script\\u003e"));
	buf_release(&b);
}

static void hostile(struct tb *b)
{
	uint32_t stack;

	tb_init(b);
	snprintf(b->h->cmdline, sizeof(b->h->cmdline), "python %s", EVIL);
	snprintf(b->h->cwd, sizeof(b->h->cwd), "/home/%s", EVIL);
	snprintf(b->h->alloc_conf, sizeof(b->h->alloc_conf), "%s", EVIL);
	snprintf(b->h->device[0].name, sizeof(b->h->device[0].name), "%.60s", EVIL);
	stack = tb_stack(b, EVIL ":32:" EVIL, NULL);
	tb_launch(b, 1, stack)->func = tb_function(b, EVIL);
	tb_fail_launch(b, 1, stack, tb_function(b, EVIL), (const uint32_t[3]){1, 70000, 1},
		       (const uint32_t[3]){32, 1, 1}, 0);
	tb_fail_text(b, CW_SRC_PYTHON, stack, EVIL, EVIL);
}

static void island__hostile_names_stay_text(void **state)
{
	struct tb b;
	struct trace *t;
	struct page *p;
	char *whole = NULL, *plain;
	json_t *j;

	(void)state;
	hostile(&b);
	t = tb_trace(&b);
	p = page_of(t);
	j = island_of(p, &whole);
	if (!whole) {		/* built without the page */
		page_free(p);
		trace_free(t);
		skip();
	}
	assert_non_null(j);
	assert_int_equal(times(whole, "</script"), 3);
	assert_int_equal(times(whole, "<script"), 3);
	assert_int_equal(times(whole, "<!--"), 1);		/* uPlot's license */
	assert_int_equal(times(whole, "</noscript"), 1);
	assert_int_equal(times(whole, "&lt;b&gt;others&lt;/b&gt; see &amp; more"), 1);
	assert_null(strstr(whole, "\xe2\x80\xa8"));
	plain = json_dumps(j, JSON_COMPACT);
	assert_true(times(plain, "</script><script>alert(1)</script><!-- & \xe2\x80\xa8 ?.py") >= 4);
	free(plain);
	free(whole);
	json_decref(j);
	page_free(p);
	trace_free(t);
}

#define SEGMENTS 60

static struct trace *ran_out(void)
{
	struct mm m;
	uint32_t kept, other;
	struct cw_timeline *l;
	struct cw_sample *s;

	mm_init(&m);
	kept = tb_stack(&m.b, "train.py:12:keep", NULL);
	other = tb_stack(&m.b, "train.py:20:step", NULL);
	for (int i = 0; i < SEGMENTS; i++) {
		mm_segment(&m, 20 * MIB);
		mm_gap(&m, 9 * MIB);
		mm_block(&m, 4 * MIB, kept, 0, 0);
	}
	mm_segment(&m, 2 * MIB);
	for (int i = 0; i < 500; i++)
		mm_block(&m, 512, i % 2 ? kept : other, 0, 0);
	l = (void *)(m.b.data + tb_chunk(&m.b, CW_CHUNK_TIMELINE, sizeof(*l) + 4 * sizeof(*s)));
	*l = (struct cw_timeline){.n = 3, .n_max = 4, .every = 100};
	s = (struct cw_sample *)(l + 1);
	for (int i = 0; i < 3; i++)
		s[i] = (struct cw_sample){1000000u * (unsigned)(i + 1), MIB * (unsigned)i, 2 * MIB * (unsigned)i,
					  3 * MIB * (unsigned)i};
	mm_oom(&m, 200 * MIB, 100 * MIB, other);
	return tb_trace(&m.b);
}

static json_int_t sum_of(const json_t *object)
{
	json_int_t sum = 0;
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)object, key, v)
		sum += json_integer_value(v);
	return sum;
}

static json_int_t number(const json_t *j, const char *key)
{
	return json_integer_value(json_object_get(j, key));
}

static void page__memory_adds_up(void **state)
{
	struct trace *t = ran_out();
	struct page *p = page_of(t);
	json_t *d = json_array_get(json_object_get(detail_of(p), "devices"), 0), *ledger = json_object_get(d, "ledger");
	json_t *line = json_object_get(d, "timeline");

	(void)state;
	assert_int_equal(sum_of(json_object_get(ledger, "parts")), number(ledger, "total"));
	assert_int_equal(sum_of(json_object_get(ledger, "kinds")), number(json_object_get(ledger, "parts"), "tensors"));
	assert_int_equal(json_array_size(json_object_get(line, "us")), 3);
	assert_int_equal(json_array_size(json_object_get(line, "driver")), 3);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(line, "us"), 2)), 3000);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(line, "reserved"), 2)), 4 * MIB);
	page_free(p);
	trace_free(t);
}

static void page__segments_that_look_the_same_are_drawn_once(void **state)
{
	struct trace *t = ran_out();
	struct page *p = page_of(t);
	json_t *map = json_object_get(json_array_get(json_object_get(detail_of(p), "devices"), 0), "map"), *s, *run;
	json_int_t bytes = 0, blocks = 0;
	size_t i, k;

	(void)state;
	assert_int_equal(number(map, "count"), SEGMENTS + 1);
	assert_int_equal(json_array_size(json_object_get(map, "segments")), 2);
	assert_int_equal(number(map, "left_out"), 0);
	json_array_foreach(json_object_get(map, "segments"), i, s) {
		assert_int_equal(number(s, "like"), i ? 1 : SEGMENTS);
		json_array_foreach(json_object_get(s, "runs"), k, run) {
			assert_true(json_integer_value(json_array_get(run, 0)) +
					    json_integer_value(json_array_get(run, 1)) <=
				    number(s, "size"));
			bytes += json_integer_value(json_array_get(run, 2)) * number(s, "like");
			blocks += json_integer_value(json_array_get(run, 3)) * number(s, "like");
		}
	}
	assert_int_equal(blocks, SEGMENTS + 500);
	assert_int_equal(bytes, SEGMENTS * 4 * MIB + 500 * 512);
	page_free(p);
	trace_free(t);
}

static void map__runs_and_segments_are_limited(void **state)
{
	static const struct map_limits few = {1, 30};
	struct trace *t = ran_out();
	struct pool pool = {0};
	struct memory_map m;
	uint64_t bytes = 0;

	(void)state;
	memory_map_build(&m, t, 0, UINT64_MAX, false, 0, &few, &pool);
	assert_int_equal(m.n, 1);
	assert_int_equal(m.segments, SEGMENTS + 1);
	assert_int_equal(m.n_left_out, 1);
	assert_int_equal(m.left_out, 2 * MIB);
	for (size_t i = 0; i < m.n_runs; i++)
		bytes += m.run[i].bytes;
	assert_int_equal(bytes, 4 * MIB);
	pool_release(&pool);
	trace_free(t);
}

static void page__the_last_launches_and_who_is_blamed(void **state)
{
	struct tb b;
	struct trace *t;
	struct page *p;
	json_t *l;

	(void)state;
	hostile(&b);
	for (int i = 0; i < 30; i++)
		tb_launch(&b, 1 + (uint32_t)i % 2, 0)->stream = 7;
	tb_fail(&b, CW_SRC_DRIVER, 700, 0)->api = 30;
	t = tb_trace(&b);
	p = page_of(t);
	l = json_object_get(detail_of(p), "launches");
	assert_int_equal(json_array_size(json_object_get(l, "lanes")), 3);
	assert_true(json_array_size(json_object_get(l, "list")) >= 30);
	assert_true(number(l, "failed_ns") > 0);
	page_free(p);
	trace_free(t);
}

static void page__without_memory_it_is_a_page_all_the_same(void **state)
{
	struct tb b;
	struct trace *t;
	struct page *p;

	(void)state;
	hostile(&b);
	t = tb_trace(&b);
	p = page_of(t);
	assert_int_equal(json_array_size(json_object_get(detail_of(p), "devices")), 0);
	assert_true(json_is_array(json_object_get(detail_of(p), "devices")));
	page_free(p);
	trace_free(t);
}

static void page__a_newer_recorder_is_told_of(void **state)
{
	struct tb b;
	struct trace *t;
	struct page *p;

	(void)state;
	hostile(&b);
	b.h->minor = CW_MINOR + 3;
	b.h->lost_stacks = 5000;
	b.h->lost_threads = 1;
	b.h->memory[0].driver_peak = 1 << 20;
	t = tb_trace(&b);
	p = page_of(t);
	assert_true(mentions(detail_of(p), "gaps", "newer cuwhy"));
	assert_true(mentions(detail_of(p), "gaps", "5,000 stacks were not recorded"));
	assert_true(mentions(detail_of(p), "gaps", "1 thread was not recorded"));
	assert_true(mentions(detail_of(p), "gaps", "no memory tables"));
	page_free(p);
	trace_free(t);
}

static void page__what_could_not_be_read_is_told(void **state)
{
	struct page *p = page_new("recording", "x");
	json_t *row;

	(void)state;
	page_add_process(p, NULL, &FAILED, NULL, "the recording has format 9", false);
	page_tell(p, "%d is missing", 7);
	row = json_array_get(json_object_get(page_data(p), "processes"), 0);
	assert_string_equal(field(row, "unread"), "the recording has format 9");
	assert_true(mentions(page_data(p), "missing", "7 is missing"));
	page_free(p);
}

static void page__cut_at_any_length_it_is_a_page(void **state)
{
	size_t opened = 0;

	(void)state;
	for (size_t len = 1000; len < TB_BYTES; len = len * 9 / 8 + 64) {
		struct mm m;
		struct trace *t;

		mm_init(&m);
		mm_segment(&m, 20 * MIB);
		mm_block(&m, 4 * MIB, tb_stack(&m.b, USER, NULL), 0, 0);
		tb_launch(&m.b, 1, 0)->func = tb_function(&m.b, "_Z4fillPfl");
		mm_oom(&m, 200 * MIB, 100 * MIB, tb_stack(&m.b, USER, NULL));
		t = trace_from_bytes(m.b.data, len, NULL);
		if (t) {
			struct page *p = page_of(t);

			assert_true(json_is_object(detail_of(p)));
			page_free(p);
			opened++;
		}
		trace_free(t);
	}
	assert_true(opened > 10);
}

#define MANY	1000000u

/* A program with a million tensors, each allocated at its own line. */
static struct trace *million(void)
{
	size_t heap = MANY * (sizeof(struct cw_stack) + sizeof(struct cw_frame)) + 4096, at;
	size_t bytes = sizeof(struct cw_header) + heap + MANY * sizeof(struct cw_allocation) + 8192;
	uint8_t *data = calloc(1, bytes);
	struct cw_header *h = (struct cw_header *)data;
	struct cw_allocation *block;
	uint32_t file, function, off = (sizeof(*h) + 63) / 64 * 64;
	struct tb b;

	assert_non_null(data);
	tb_init(&b);
	memcpy(h, b.h, sizeof(*h));
	free(b.data);
	h->cap = h->used = bytes;
	h->n_blocks = MANY;
	h->memory[0] = (struct cw_memory_now){.allocated = MANY * 512ull, .driver_peak = 1};
	h->n_chunks = 2;
	h->chunk[0] = (struct cw_chunk){.kind = CW_CHUNK_HEAP, .off = off, .len = (uint32_t)heap};
	h->chunk[1] = (struct cw_chunk){ .kind = CW_CHUNK_BLOCKS, .off = (uint32_t)((off + heap + 63) / 64 * 64),
					.len = MANY * sizeof(struct cw_allocation)};
	b = (struct tb){.data = data, .h = h, .heap = off, .heap_end = off + (uint32_t)heap};
	file = tb_string(&b, "train.py");
	function = tb_string(&b, "step");
	block = (void *)(data + h->chunk[1].off);
	at = b.heap;
	for (uint32_t i = 0; i < MANY; i++) {
		struct cw_stack *s = (struct cw_stack *)(data + at);

		s->n = 1;
		s->frame[0] = (struct cw_frame){file, function, i + 1, 1};
		block[i] = (struct cw_allocation){.addr = 0x700000000000ull + i * 1024ull,
						  .size = 512 + i % 3 * 8,
						  .ticks = i + 1,
						  .stack = (uint32_t)at,
						  .kind = CW_MEM_TORCH};
		at += sizeof(*s) + sizeof(s->frame[0]);
	}
	return trace_from_bytes(data, bytes, NULL);
}

static void bounds__a_million_lines(void **state)
{
	struct trace *t = million();
	struct page *p;
	json_t *ledger;
	char *text;

	(void)state;
	assert_non_null(t);
	p = page_of(t);
	ledger = json_object_get(json_array_get(json_object_get(detail_of(p), "devices"), 0), "ledger");
	assert_int_equal(json_array_size(json_object_get(ledger, "lines")), 500);
	assert_int_equal(number(ledger, "lines_left_out"), MANY - 500);
	text = json_dumps(page_data(p), JSON_COMPACT | JSON_ENSURE_ASCII);
	assert_true(strlen(text) < 1 << 20);
	free(text);
	page_free(p);
	trace_free(t);
}

static void bounds__too_many_processes_and_too_long_words(void **state)
{
	struct page *p = page_new("recording", "x");
	char *command = malloc(100001), *text;
	struct tb b;
	struct trace *t;
	struct verdict *v;

	(void)state;
	hostile(&b);
	t = tb_trace(&b);
	v = verdict_of_process(t, &FAILED);
	memset(command, '<', 100000);
	command[100000] = '\0';
	for (uint32_t i = 0; i < 2000; i++) {
		struct process_end end = {.pid = i + 1, .status_known = true, .exit = 1, .command = command};

		page_add_process(p, t, &end, v, NULL, false);
	}
	page_set_verdict(p, v, NULL);
	text = json_dumps(page_data(p), JSON_COMPACT | JSON_ENSURE_ASCII);
	assert_true(strlen(text) <= PAGE_BYTES_MAX + 4096);
	assert_true(mentions(page_data(p), "missing", "not listed"));
	assert_true(json_array_size(json_object_get(page_data(p), "processes")) > 100);
	free(text);
	free(command);
	verdict_free(v);
	page_free(p);
	trace_free(t);
}

static json_t *large_verdict(size_t others, size_t frames, const char *word)
{
	json_t *v = json_pack("{s:s,s:s,s:{s:[]},s:[]}", "cause", "unknown", "title", word, "where", "stack", "others");

	for (size_t i = 0; i < frames; i++)
		json_array_append_new(json_object_get(json_object_get(v, "where"), "stack"),
				      json_pack("{s:s}", "file", word));
	for (size_t i = 0; i < others; i++)
		json_array_append_new(json_object_get(v, "others"), large_verdict(0, frames, word));
	return v;
}

/* The verdict in a folder is a file that anyone may have written. */
static void bounds__a_verdict_that_somebody_made_large(void **state)
{
	static const size_t sizes[][2] = {{3, 10}, {70, 100}, {70, 400}, {0, 25000}};
	char word[1001], *text;

	(void)state;
	memset(word, 'x', 1000);
	word[1000] = '\0';
	for (int i = 0; i < 4; i++) {
		struct page *p = page_new("recording", "x");
		json_t *stored = large_verdict(sizes[i][0], sizes[i][1], word);

		page_set_verdict(p, NULL, stored);
		text = json_dumps(page_data(p), JSON_COMPACT | JSON_ENSURE_ASCII);
		assert_true(strlen(text) <= PAGE_BYTES_MAX + 4096);
		assert_true((i < 3) == (json_object_get(page_data(p), "verdict") != NULL));
		free(text);
		json_decref(stored);
		page_free(p);
	}
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static json_t *source_for(const char *folder, const char *frame, struct page **page)
{
	struct tb b;
	struct trace *t;
	uint32_t s;

	tb_init(&b);
	snprintf(b.h->cwd, sizeof(b.h->cwd), "%s", folder);
	s = tb_stack(&b, frame, NULL);
	tb_fail_launch(&b, 1, s, tb_function(&b, "_Z4fillPfl"), (const uint32_t[3]){1, 70000, 1},
		       (const uint32_t[3]){32, 1, 1}, 0);
	tb_fail_text(&b, CW_SRC_PYTHON, s, "RuntimeError", "CUDA error: invalid argument");
	t = tb_trace(&b);
	*page = page_of(t);
	trace_free(t);
	return json_array_get(json_object_get(detail_of(*page), "sources"), 0);
}

static void source__neighbors_of_the_line(void **state)
{
	char folder[] = "/tmp/cuwhy-page-XXXXXX", *path;
	struct page *p;
	json_t *s;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = xasprintf("%s/train.py", folder);
	write_file(path, "one\ntwo\nthree\nfour\n<b>five</b>\nsix\nseven\r\neight\nnine\nten\neleven\ntwelve\n");
	s = source_for(folder, "train.py:8:step", &p);
	assert_int_equal(number(s, "from"), 4);
	assert_int_equal(json_array_size(json_object_get(s, "text")), 9);
	assert_string_equal(json_string_value(json_array_get(json_object_get(s, "text"), 1)), "<b>five</b>");
	assert_string_equal(json_string_value(json_array_get(json_object_get(s, "text"), 3)), "seven");
	page_free(p);
	s = source_for(folder, "train.py:99:step", &p);
	assert_string_equal(field(s, "unread"), "the file is shorter than it was");
	assert_int_equal(json_object_size(json_object_get(detail_of(p), "quotes")), 0);
	page_free(p);
	unlink(path);
	free(path);
	rmdir(folder);
}

/* A recording from someone else must not put the contents of our files into a page. */
static void source__only_files_named_like_code_are_read(void **state)
{
	char folder[] = "/tmp/cuwhy-page-XXXXXX", *path;
	struct page *p;
	json_t *s;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = xasprintf("%s/id_key", folder);
	write_file(path, "PRIVATE\nSECRET\n");
	s = source_for(folder, "id_key:1:step", &p);
	assert_null(json_object_get(s, "text"));
	assert_true(field(s, "unread")[0]);
	assert_false(mentions(page_data(p), "processes", "SECRET"));
	page_free(p);
	unlink(path);
	free(path);
	rmdir(folder);
}

/* One line runs out of memory, another one holds it: both are shown, and so is the code of lines named in reasons. */
static void source__who_holds_the_memory_and_what_reasons_name(void **state)
{
	char folder[] = "/tmp/cuwhy-page-XXXXXX", *path;
	struct trace *t;
	struct page *p;
	struct mm m;
	json_t *s;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = xasprintf("%s/fill.py", folder);
	write_file(path, "one\ntwo\n    keep.append(torch.ones(9))\nfour\nfive\nmore = torch.ones(9)\nmain()\n");
	mm_init(&m);
	snprintf(m.b.h->cwd, sizeof(m.b.h->cwd), "%s", folder);
	for (int i = 0; i < 12; i++) {	/* each with a gap that is too small for anything large */
		mm_segment(&m, 10 * GIB);
		mm_block(&m, 4 * GIB, tb_stack(&m.b, "fill.py:3:keep", NULL), 0, 0);
	}
	mm_oom(&m, 20 * GIB, GIB, tb_stack(&m.b, "fill.py:6:ask", "fill.py:7:<module>", NULL));
	t = tb_trace(&m.b);
	p = page_of(t);
	s = json_array_get(json_object_get(detail_of(p), "sources"), 1);
	assert_string_equal(field(s, "role"), "holder");
	assert_int_equal(number(s, "line"), 3);
	assert_int_equal(number(s, "bytes"), 48 * GIB);
	s = json_array_get(json_object_get(detail_of(p), "callers"), 0);
	assert_string_equal(field(s, "source"), "main()");
	assert_int_equal(number(s, "line"), 7);
	assert_string_equal(field(json_object_get(detail_of(p), "quotes"), "fill.py:3"), "keep.append(torch.ones(9))");
	page_free(p);
	trace_free(t);
	unlink(path);
	free(path);
	rmdir(folder);
}

static void blocks__of_too_many_the_least_are_left_out(void **state)
{
	size_t left = 100;
	struct lives l;
	struct buf b;
	json_t *j;

	(void)state;
	buf_init(&b, 1 << 20);
	lives_init(&l, left);
	for (uint64_t i = 0; i < 10000; i++) {	/* each lives for one event, and is larger than the one before */
		struct life what = {.addr = (i + 1) << 24, .size = 512 * (i + 1), .line = -1};

		lives_made(&l, &what);
		lives_event(&l, i);
		lives_freed(&l, &what);
		lives_event(&l, i);
	}
	j = lives_json(&l, 0, 0, &left, &b);
	assert_int_equal(json_integer_value(json_object_get(j, "n")), 100);
	assert_int_equal(json_integer_value(json_object_get(j, "left_out")), 9900);
	assert_int_equal(left, 0);
	/* what is left are the largest: place for them, and for nothing else */
	assert_int_equal(json_integer_value(json_object_get(j, "height")), 512 * (9901 + 10000) * 100 / 2);
	assert_true(json_array_size(json_object_get(j, "us")) <= 1024);
	assert_int_equal(b.data[b.len - 1], '\n');
	json_decref(j);
	assert_true(json_is_null(j = lives_json(&l, 0, 1, &left, &b)));
	json_decref(j);
	lives_release(&l);
	buf_release(&b);
}

static void blocks__an_address_that_comes_twice_ended_in_between(void **state)
{
	struct life what = {.addr = 4096, .size = 512, .line = -1}, other = {.addr = 8192, .size = 1024, .line = -1};
	struct lives l;

	(void)state;
	lives_init(&l, 100);
	lives_freed(&l, &other);	/* was there from the start */
	lives_event(&l, 0);
	lives_made(&l, &what);
	lives_event(&l, 1);
	lives_made(&l, &what);	/* its free was lost */
	lives_event(&l, 2);
	assert_int_equal(l.n, 3);
	assert_int_equal(l.list[0].born, 0);
	assert_int_equal(l.list[0].died, 1);
	assert_int_equal(l.list[1].born, 1);
	assert_int_equal(l.list[1].died, 2);
	assert_int_equal(l.list[2].died, LIFE_OPEN);
	lives_release(&l);
}

static void flame__adds_up_and_drops_what_is_tiny(void **state)
{
	struct flame f;
	json_t *j;

	(void)state;
	flame_init(&f);
	flame_add(&f, (int[]){0, 1}, 2, FLAME_NOW, 6000);
	flame_add(&f, (int[]){0, 2}, 2, FLAME_NOW, 3000);
	flame_add(&f, (int[]){0, 2}, 2, FLAME_PEAK, 9000);
	flame_add(&f, (int[]){3}, 1, FLAME_NOW, 1);
	j = flame_json(&f, "oom");
	assert_int_equal(json_array_size(json_object_get(j, "parent")), 4);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(j, "now"), 0)), 9001);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(j, "now"), 1)), 9000);
	assert_int_equal(json_integer_value(json_array_get(json_object_get(j, "peak"), 3)), 9000);
	assert_int_equal(json_integer_value(json_object_get(j, "left_out")), 1);
	json_decref(j);
	flame_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks__of_too_many_the_least_are_left_out),
		cmocka_unit_test(blocks__an_address_that_comes_twice_ended_in_between),
		cmocka_unit_test(flame__adds_up_and_drops_what_is_tiny),
		cmocka_unit_test(island__no_byte_of_it_can_end_it),
		cmocka_unit_test(island__hostile_names_stay_text),
		cmocka_unit_test(page__memory_adds_up),
		cmocka_unit_test(page__segments_that_look_the_same_are_drawn_once),
		cmocka_unit_test(map__runs_and_segments_are_limited),
		cmocka_unit_test(page__the_last_launches_and_who_is_blamed),
		cmocka_unit_test(page__without_memory_it_is_a_page_all_the_same),
		cmocka_unit_test(page__a_newer_recorder_is_told_of),
		cmocka_unit_test(page__what_could_not_be_read_is_told),
		cmocka_unit_test(page__cut_at_any_length_it_is_a_page),
		cmocka_unit_test(bounds__a_million_lines),
		cmocka_unit_test(bounds__too_many_processes_and_too_long_words),
		cmocka_unit_test(bounds__a_verdict_that_somebody_made_large),
		cmocka_unit_test(source__neighbors_of_the_line),
		cmocka_unit_test(source__who_holds_the_memory_and_what_reasons_name),
		cmocka_unit_test(source__only_files_named_like_code_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
