/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as the memory of another process with a Python in it.
 *
 * The first byte chooses the version, the rest is memory from 0x10000 on, with _PyRuntime at its beginning. The same bytes are also
 * read as its maps file and as a system call. Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "cuwhy/format.h"
#include "find/memory/holders.h"
#include "read/live/pyheap.h"
#include "read/live/pyproc.h"
#include "read/live/target.h"
#include "read/live/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define AT		0x10000u
#define CODE_TYPE	0x10f00u
#define MOST_THREADS	8

struct memory { const uint8_t *bytes; size_t n; };

static bool fetch(void *arg, uint64_t page, void *to)
{
	const struct memory *m = arg;
	size_t from, n;

	if (page < AT || page - AT >= m->n)
		return false;
	from = (size_t)(page - AT);
	n = m->n - from < REMOTE_PAGE ? m->n - from : REMOTE_PAGE;
	memset(to, 0, REMOTE_PAGE);
	memcpy(to, m->bytes + from, n);
	return true;
}

static void read_stack(struct pyproc *p, uint64_t state, struct pool *pool)
{
	static struct py_walked w;
	uint64_t list[PY_WORDS_MAX];
	struct py_frame f;

	if (!pyproc_walk(p, state, &w))
		return;
	for (size_t i = 0; i < w.n && i < 8; i++) {
		pyproc_frame(p, &w.raw[i], &f, pool);
		pyproc_objects(p, &w.raw[i], list, PY_WORDS_MAX);
		pyproc_contents(p, &w.raw[i]);
	}
}

/* The second word is taken for the exception that ends the program, some addresses for blocks of PyTorch's. */
static void read_heap(struct pyproc *p, struct pool *pool, const uint8_t *data, size_t size)
{
	static const struct cw_allocation made[] = {
		{.addr = AT, .size = 512}, {.addr = AT + 0x800, .size = 1 << 20}, {.addr = 1ull << 40, .size = 512}};
	static const struct cw_allocation *const block[] = {&made[0], &made[1], &made[2]};
	struct holders_ask ask = {.torch_path = "", .until_ns = UINT64_MAX / 2, .block = block, .n_blocks = 3};
	struct holders found;
	struct pyheap h;

	memcpy(&ask.exception, data + size - 8, 8);
	pyheap_open(&h, p, ask.until_ns);
	holders_search(&found, &ask, &h, pool);
	pyheap_close(&h);
}

static void read_python(const uint8_t *data, size_t size, uint64_t code_type)
{
	struct memory m = {data + 1, size - 1};
	struct py_thread list[MOST_THREADS];
	struct pool pool = {0};
	struct pyproc p;
	struct remote r;
	bool whole;
	size_t n;

	remote_init(&r, fetch, &m);
	pyproc_at(&p, &r, AT, code_type, 0x03000000u | (uint32_t)(8 + data[0] % 8) << 16);
	n = pyproc_threads(&p, list, MOST_THREADS, &whole);
	for (size_t i = 0; i < n; i++) {
		read_stack(&p, list[i].state, &pool);
		pyproc_gil_holder(&p, list[i].gil);
	}
	if (p.found && size > 9)
		read_heap(&p, &pool, data, size);
	remote_release(&r);
	pool_release(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct target t = {0};
	struct task k = {0};
	char *text;

	if (size < 2)
		return 0;
	read_python(data, size, CODE_TYPE);
	read_python(data, size, 0);
	text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	target_parse(&t, text);
	target_mapping(&t, 0x7f0000);
	target_module(&t, 0x2000);
	target_close(&t);
	task_parse_call(&k, text);
	free(text);
	return 0;
}
