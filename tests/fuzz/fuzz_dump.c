/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a GPU core dump, all tables read, the culprit found and printed.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "find/fault/culprit.h"
#include "read/dump/dump.h"
#include "tests/unit/culprit_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROWS_MAX	2000	/* of a table: enough to cover every field, few enough to be fast */

static volatile uint64_t sink;	/* what was read must have been read */

static void use_bytes(struct bytes b)
{
	if (b.data)
		sink += b.data[0] + b.data[b.len - 1];
}

static void use_row(struct dump *d, const struct dump_row *row)
{
	struct dump_row parent;
	int f, t;

	for (f = 0; f < DUMP_FIELDS_END; f++)
		if (dump_has(row, (enum dump_field)f))
			sink += dump_get(row, (enum dump_field)f) +
				strlen(dump_string(row, (enum dump_field)f));
	for (t = 1; t < DUMP_TABLES_END; t++)
		use_bytes(dump_child_bytes(row, (enum dump_table)t));
	if (dump_parent(row, &parent))
		sink += parent.len;
	sink += dump_address(d, row->section);
}

static void use_tables(struct dump *d)
{
	struct dump_row row;
	size_t cursor, n;
	int t;

	for (t = 1; t < DUMP_TABLES_END; t++) {
		cursor = n = 0;
		while (n++ < ROWS_MAX && dump_next(d, (enum dump_table)t, &cursor, &row))
			use_row(d, &row);
	}
}

/* The parameters as those of PyTorch's kernels. Few dumps name one, so the input is also read as parameters and threads. */
static void use_views(const uint8_t *data, size_t size)
{
	static const char *const kernels[] = {
#define F	"at::native::gpu_kernel_impl_nocast<f>()"
		"void at::native::elementwise_kernel<128, 2, " F ">(int, " F ")",
		"void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<f>()>(long, f)",
		"void at::native::vectorized_elementwise_kernel<4, f, std::array<char*, 2ul> >(int, f, std::array<char*, 2ul>)",
		("void at::native::indexSelectLargeIndex<float, long, unsigned int, 2, 2, -2, true>(at::cuda::detail::TensorInfo<float, unsigned int>, "
		 "at::cuda::detail::TensorInfo<float const, unsigned int>, at::cuda::detail::TensorInfo<long const, unsigned int>, int, int, unsigned int, unsigned int, long)"),
		"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)",
#undef F
	};
	uint64_t at[VIEW_DIMS];
	struct view v;

	for (size_t i = 0; size > sizeof(struct view_lane) && i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		struct view_scene s = {.kernel = kernels[i], .params = {data, size}, .threads = 128, .grid = 1u + data[0],
				       .width = 1u << data[1] % 5, .pointer_known = i > 2, .pointer = data[2] * 8u, .n_lanes = 1};

		memcpy(&s.lane[0], data + size - sizeof(s.lane[0]), sizeof(s.lane[0]));
		if (view_find(&v, &s) && view_position(&v, &s.lane[0], at))
			sink += at[0] + view_last(&v);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *copy = malloc(size ? size : 1);
	struct culprit *c;
	struct dump *d;
	struct buf text;

	if (!copy)
		abort();
	use_views(data, size);
	memcpy(copy, data, size);
	sink += dump_is_dump(copy, size);
	d = dump_from_bytes(copy, size, NULL);
	if (!d)
		return 0;
	use_tables(d);
	c = culprit_find(d);
	buf_init(&text, 1 << 20);
	culprit_text(c, &text);
	buf_release(&text);
	use_bytes(c->params);
	culprit_free(c);
	culprit_free(culprit_find_running(d));
	dump_free(d);
	return 0;
}
