/* SPDX-License-Identifier: Apache-2.0
 * GPU core dumps: reading them whatever they contain, finding the culprit, decoding its instruction.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "find/fault/culprit.h"
#include "read/dump/dump.h"
#include "find/fault/sass.h"
#include "culprit_text.h"
#include "dump_find.h"

#define UNUSED(state)	(void)(state)

static const struct dump_plan misaligned = {
	.lane_exception = 6, .lanes_hit = 15, .error_pc = 16, .lane_pc = 32,
	.code = {MAKE_MOV_R9, MAKE_STG_64_1, MAKE_EXIT},
	.reg = {[0][2] = 0x1007, [1][2] = 0x2000, [2][2] = 0x300f, [3][2] = 0x4000, [1][3] = 0x7f10},
};

static const struct dump_plan illegal = {
	.sm_exception = 14, .error_pc = 16, .lane_pc = 32,
	.code = {MAKE_MOV_R9, MAKE_STG, MAKE_EXIT},
	.reg = {[0][2] = 0xfe00100, [0][3] = 0x8319, [1][2] = 0xfe00104, [1][3] = 0x8319, [2][2] = 0xfe00000,
		[2][3] = 0x8319, [3][2] = 0xfe00004, [3][3] = 0x8319},
};

static void use(struct dump *d)
{
	struct culprit *c = culprit_find(d);
	struct buf b;

	buf_init(&b, 1 << 20);
	culprit_text(c, &b);
	buf_release(&b);
	culprit_free(c);
}

static void check_usual(struct dump *d)
{
	struct dump_row row, parent;
	struct bytes b;
	size_t cursor = 0;
	uint32_t word;

	assert_true(dump_next(d, DUMP_DEVICE, &cursor, &row));
	assert_string_equal(dump_string(&row, DUMP_DEVICE_NAME), "NVIDIA Test");
	assert_int_equal(dump_get(&row, DUMP_DEVICE_SM_MAJOR), 9);
	assert_false(dump_next(d, DUMP_DEVICE, &cursor, &row));
	cursor = 0;
	assert_true(dump_next(d, DUMP_GRID, &cursor, &row));
	assert_int_equal(dump_get(&row, DUMP_GRID_ID), 42);
	assert_int_equal(dump_get(&row, DUMP_GRID_BLOCK_X), 32);
	b = dump_child_bytes(&row, DUMP_PARAMS);
	assert_int_equal(b.len, 16);
	cursor = 0;
	assert_true(dump_next(d, DUMP_LANE, &cursor, &row));
	assert_true(dump_next(d, DUMP_LANE, &cursor, &row));
	assert_int_equal(dump_get(&row, DUMP_LANE_ID), 1);
	assert_true(dump_word(dump_child_bytes(&row, DUMP_REGS), 3, &word));
	assert_int_equal(word, 0x7f10);
	assert_false(dump_word(dump_child_bytes(&row, DUMP_REGS), 16, &word));
	assert_true(dump_parent(&row, &parent));
	assert_int_equal(parent.table, DUMP_WARP);
	assert_int_equal(dump_child(&row, DUMP_BACKTRACE), 0);
}

static void dump__all_tables_of_a_dump_can_be_read(void **state)
{
	struct dump_make m;
	struct dump *d;

	UNUSED(state);
	dump_make_usual(&m, &misaligned);
	d = dump_open_made(&m, NULL);
	assert_non_null(d);
	check_usual(d);
	dump_free(d);
	free(m.data);
}

static void dump__rows_of_a_newer_driver_are_longer(void **state)
{
	struct dump_plan p = misaligned;
	struct dump_make m;
	struct dump *d;

	UNUSED(state);
	p.grow = 24;
	dump_make_usual(&m, &p);
	d = dump_open_made(&m, NULL);
	assert_non_null(d);
	check_usual(d);
	dump_free(d);
	free(m.data);
}

static void dump__rows_of_an_older_driver_lack_the_newer_fields(void **state)
{
	uint8_t sm[8] = {7}, device[72] = {0};
	struct dump_make m;
	struct dump_row row;
	struct dump *d;
	size_t cursor = 0;

	UNUSED(state);
	dump_make_init(&m);
	make_table(&m, DUMP_DEVICE, device, sizeof(device), sizeof(device), 0, 0);
	make_table(&m, DUMP_SM, sm, sizeof(sm), sizeof(sm), 1, 0);
	dump_make_finish(&m, 0);
	d = dump_open_made(&m, NULL);
	assert_non_null(d);
	assert_true(dump_next(d, DUMP_SM, &cursor, &row));
	assert_int_equal(dump_get(&row, DUMP_SM_ID), 7);
	assert_false(dump_has(&row, DUMP_SM_EXCEPTION));
	assert_int_equal(dump_get(&row, DUMP_SM_EXCEPTION), 0);
	assert_false(dump_has(&row, DUMP_GRID_ID));
	use(d);
	dump_free(d);
	free(m.data);
}

static void dump__sections_can_be_counted_in_section_zero(void **state)
{
	uint8_t device[88] = {0};
	struct dump_make m;
	struct dump *d;
	const uint32_t *sections;

	UNUSED(state);
	dump_make_init(&m);
	make_table(&m, DUMP_DEVICE, device, sizeof(device), sizeof(device), 0, 0);
	dump_make_finish(&m, 1);
	d = dump_open_made(&m, NULL);
	assert_non_null(d);
	assert_int_equal(dump_sections(d, DUMP_DEVICE, &sections), 1);
	dump_free(d);
	free(m.data);
}

static void dump__sections_out_of_order_are_found_by_parent(void **state)
{
	uint8_t device[2 * 88] = {0}, sm[2][8] = {{1}, {2}};
	struct dump_make m;
	struct dump_row row, child;
	struct dump *d;

	UNUSED(state);
	dump_make_init(&m);
	make_table(&m, DUMP_SM, sm[1], 8, 8, 3, 1);
	make_table(&m, DUMP_SM, sm[0], 8, 8, 3, 0);
	make_table(&m, DUMP_DEVICE, device, sizeof(device), 88, 0, 0);
	dump_make_finish(&m, 0);
	d = dump_open_made(&m, NULL);
	assert_true(dump_row(d, 3, 1, &row));
	assert_true(dump_row(d, dump_child(&row, DUMP_SM), 0, &child));
	assert_int_equal(dump_get(&child, DUMP_SM_ID), 2);
	assert_true(dump_row(d, 3, 0, &row));
	assert_true(dump_row(d, dump_child(&row, DUMP_SM), 0, &child));
	assert_int_equal(dump_get(&child, DUMP_SM_ID), 1);
	assert_false(dump_row(d, 3, 2, &row));
	dump_free(d);
	free(m.data);
}

static struct dump *open_file(const void *bytes, size_t len, struct err *e)
{
	char path[] = "/tmp/cuwhy-dump-XXXXXX";
	int fd = mkstemp(path);
	struct dump *d;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), (ssize_t)len);
	close(fd);
	d = dump_open(path, e);
	unlink(path);
	return d;
}

static void dump__a_file_reads_like_its_bytes(void **state)
{
	struct dump_make m;
	struct dump *d;

	UNUSED(state);
	dump_make_usual(&m, &misaligned);
	d = open_file(m.data, m.len, NULL);
	assert_non_null(d);
	check_usual(d);
	use(d);
	dump_free(d);
	free(m.data);
}

static size_t compress_dump(const struct dump_make *m, uint8_t *out, size_t room)
{
	z_stream z = {.next_in = m->data, .avail_in = (uInt)m->len, .next_out = out, .avail_out = (uInt)room};

	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

static void dump__gzip_is_expanded(void **state)
{
	static uint8_t packed[65536];
	struct dump_make m;
	struct dump *d;
	struct err e = {0};
	size_t len;

	UNUSED(state);
	dump_make_usual(&m, &misaligned);
	len = compress_dump(&m, packed, sizeof(packed));
	d = open_file(packed, len, &e);
	assert_non_null(d);
	check_usual(d);
	dump_free(d);
	assert_null(open_file(packed, len - 20, &e));
	assert_non_null(strstr(e.msg, "cut short"));
	packed[20] ^= 0xff;
	assert_null(open_file(packed, len, &e));
	free(m.data);
}

static void dump__other_files_are_refused_with_a_reason(void **state)
{
	struct err e = {0};
	struct dump_make m;
	Elf64_Ehdr *h;

	UNUSED(state);
	assert_null(dump_open("/nowhere/at/all", &e));
	assert_int_equal(e.code, -ENOENT);
	assert_null(dump_open("/tmp", &e));
	assert_null(open_file("", 0, &e));
	assert_non_null(strstr(e.msg, "is empty"));
	assert_null(open_file("hello, world", 12, &e));
	assert_non_null(strstr(e.msg, "not a GPU core dump"));
	dump_make_usual(&m, &misaligned);
	h = (Elf64_Ehdr *)m.data;
	h->e_machine = EM_X86_64;
	assert_null(dump_open_made(&m, &e));
	assert_non_null(strstr(e.msg, "CPU"));
	h->e_machine = 190;
	h->e_type = ET_EXEC;
	assert_null(dump_open_made(&m, &e));
	assert_non_null(strstr(e.msg, "cubin"));
	free(m.data);
}

static void dump__a_dump_that_is_cut_anywhere_is_an_error(void **state)
{
	struct dump_make m;
	struct err e;
	size_t len, full;

	UNUSED(state);
	dump_make_usual(&m, &illegal);
	full = m.len;
	for (len = 1; len < full; len++) {
		memset(&e, 0, sizeof(e));
		m.len = len;
		assert_null(dump_open_made(&m, &e));
		assert_true(e.code < 0 && e.msg[0]);
	}
	free(m.data);
}

static void dump__any_changed_byte_is_survived(void **state)
{
	static const uint8_t values[] = {0, 0x7f, 0x80, 0xff};
	struct dump_make m;
	struct dump *d;
	size_t i, v;
	uint8_t old;

	UNUSED(state);
	dump_make_usual(&m, &illegal);
	for (i = 0; i < m.len; i++) {
		old = m.data[i];
		for (v = 0; v < sizeof(values); v++) {
			m.data[i] = values[v];
			d = dump_open_made(&m, NULL);
			if (d)
				use(d);
			dump_free(d);
		}
		m.data[i] = old;
	}
	free(m.data);
}

static void dump__a_table_that_contains_itself_ends(void **state)
{
	uint8_t row[64] = {0};
	struct dump_make m;
	struct dump *d;

	UNUSED(state);
	dump_make_init(&m);
	make_table(&m, DUMP_DEVICE, row, sizeof(row), 1, 1, 0);
	make_table(&m, DUMP_SM, row, sizeof(row), 1, 2, 0);
	make_table(&m, DUMP_CTA, row, sizeof(row), 1, 2, 0);
	make_table(&m, DUMP_WARP, row, sizeof(row), 1, 3, 0);
	make_table(&m, DUMP_LANE, row, sizeof(row), 1, 4, 0);
	dump_make_finish(&m, 0);
	d = dump_open_made(&m, NULL);
	assert_non_null(d);
	use(d);
	dump_free(d);
	free(m.data);
}

static void culprit__a_lane_with_an_exception_is_named(void **state)
{
	struct found f = dump_find(&misaligned);

	UNUSED(state);
	assert_int_equal(f.c->fault, FAULT_MISALIGNED);
	assert_int_equal(f.c->source, CULPRIT_LANE);
	assert_string_equal(f.c->kernel, "_Z4fillPfl");
	assert_string_equal(f.c->kernel_text, "fill(float*, long)");
	assert_int_equal(f.c->grid_id, 42);
	assert_int_equal(f.c->sm, 1);
	assert_int_equal(f.c->grid[0], 4);
	assert_int_equal(f.c->params.len, 16);
	assert_true(f.c->pc_exact);
	assert_int_equal(f.c->kernel_offset, 16);
	assert_int_equal(f.c->driver_major, 580);
	dump_found(&f);
}

static void culprit__of_a_misaligned_warp_only_the_misaligned_lanes_count(void **state)
{
	struct found f = dump_find(&misaligned);

	UNUSED(state);
	/* the instruction adds 1 to registers that end in 7, 0, f, 0 and stores 8 bytes */
	assert_int_equal(f.c->n_lanes, 2);
	assert_int_equal(f.c->lanes[0].thread[0], 1);
	assert_int_equal(f.c->lanes[0].address, 0x7f1000002001ull);
	assert_int_equal(f.c->lanes[1].thread[0], 3);
	assert_int_equal(f.c->insn.width, 8);
	dump_found(&f);
}

static void culprit__an_exited_warp_leaves_the_lanes_behind_the_instruction(void **state)
{
	struct found f = dump_find(&illegal);

	UNUSED(state);
	assert_int_equal(f.c->fault, FAULT_ILLEGAL_ADDRESS);
	assert_int_equal(f.c->source, CULPRIT_SM);
	assert_string_equal(f.c->exception_text, "in the driver's words");
	assert_int_equal(f.c->n_lanes, 4);
	assert_int_equal(f.c->lanes[0].block[0], 3);
	assert_int_equal(f.c->lanes[0].address, 0x83190fe00100ull);
	assert_int_equal(f.c->address_min, 0x83190fe00000ull);
	assert_int_equal(f.c->address_max, 0x83190fe00104ull);
	assert_false(f.c->address_doubtful);
	dump_found(&f);
}

static void culprit__with_no_thread_left_the_kernel_is_still_found(void **state)
{
	struct dump_plan p = illegal;
	struct found f;

	UNUSED(state);
	p.gone = 1;
	f = dump_find(&p);
	assert_int_equal(f.c->fault, FAULT_ILLEGAL_ADDRESS);
	assert_string_equal(f.c->kernel_text, "fill(float*, long)");
	assert_int_equal(f.c->n_lanes, 0);
	assert_true(f.c->decoded);
	dump_found(&f);
}

static void culprit__a_lane_further_down_a_straight_line_keeps_its_address(void **state)
{
	struct dump_plan p = illegal;
	struct found f;

	UNUSED(state);
	p.lane_pc = 48;
	memcpy(p.code, (uint64_t[5][2]){MAKE_MOV_R9, MAKE_STG, MAKE_MOV_R9, MAKE_EXIT, MAKE_BRA},
	       5 * sizeof(p.code[0]));
	f = dump_find(&p);
	assert_int_equal(f.c->n_lanes, 4);
	assert_int_equal(f.c->lanes[0].address, 0x83190fe00100ull);
	dump_found(&f);
}

static void culprit__a_lane_whose_registers_changed_since_is_not_trusted(void **state)
{
	struct dump_plan p = illegal;
	struct found f;

	UNUSED(state);
	p.lane_pc = 48;
	memcpy(p.code, (uint64_t[4][2]){MAKE_MOV_R9, MAKE_STG, MAKE_MOV_R3, MAKE_EXIT},
	       4 * sizeof(p.code[0]));
	f = dump_find(&p);
	assert_int_equal(f.c->n_lanes, 0);
	dump_found(&f);
	memcpy(p.code, (uint64_t[4][2]){MAKE_MOV_R9, MAKE_STG, MAKE_BRA, MAKE_EXIT}, 4 * sizeof(p.code[0]));
	f = dump_find(&p);
	assert_int_equal(f.c->n_lanes, 0);
	dump_found(&f);
}

static void culprit__lanes_that_skipped_the_instruction_are_not_blamed(void **state)
{
	struct dump_plan p = illegal;
	struct found f;

	UNUSED(state);
	memcpy(p.code, (uint64_t[3][2]){MAKE_MOV_R9, MAKE_STG_P0, MAKE_EXIT}, 3 * sizeof(p.code[0]));
	p.pred[2] = 1;
	f = dump_find(&p);
	assert_int_equal(f.c->n_lanes, 1);
	assert_int_equal(f.c->lanes[0].thread[0], 2);
	dump_found(&f);
}

static void culprit__a_load_into_its_own_address_register_is_doubtful(void **state)
{
	struct dump_plan p = illegal;
	struct found f;

	UNUSED(state);
	memcpy(p.code, (uint64_t[3][2]){MAKE_MOV_R9, MAKE_LDG_OWN, MAKE_EXIT}, 3 * sizeof(p.code[0]));
	f = dump_find(&p);
	assert_true(f.c->address_doubtful);
	dump_found(&f);
}

static void culprit__lanes_that_wait_elsewhere_are_not_blamed(void **state)
{
	struct dump_plan p = misaligned;
	struct found f;

	UNUSED(state);
	p.inactive = 2;
	f = dump_find(&p);
	assert_int_equal(f.c->n_lanes, 1);
	assert_int_equal(f.c->lanes[0].thread[0], 3);
	dump_found(&f);
}

static void culprit__lanes_that_are_not_valid_do_not_exist(void **state)
{
	struct dump_plan p = illegal;
	struct found f;

	UNUSED(state);
	p.valid = 8;
	f = dump_find(&p);
	assert_int_equal(f.c->n_lanes, 1);
	assert_int_equal(f.c->lanes[0].thread[0], 3);
	dump_found(&f);
}

static void culprit__grids_of_two_devices_with_one_number_are_two_grids(void **state)
{
	struct dump_make m;
	struct culprit *c;
	struct dump *d;

	UNUSED(state);
	dump_make_init(&m);
	make_host_side(&m, &misaligned);
	make_device_side(&m, &misaligned);
	make_host_side(&m, &misaligned);
	make_device_side(&m, &misaligned);
	dump_make_finish(&m, 0);
	d = dump_open_made(&m, NULL);
	c = culprit_find(d);
	assert_int_equal(c->n_lanes, 2);
	assert_int_equal(c->n_other, 4);
	culprit_free(c);
	dump_free(d);
	free(m.data);
}

static void culprit__a_stack_that_left_local_memory_is_a_stack_overflow(void **state)
{
	struct dump_plan p = {.lane_exception = 5, .lanes_hit = 1, .error_pc = 0x90, .lane_pc = 0xa0,
			      .call_depth = 5, .code = {[9] = MAKE_STL, [10] = MAKE_EXIT},
			      .reg = {[0][1] = 0xfff7e0, [0][2] = 0xfff854}};
	struct found f = dump_find(&p);

	UNUSED(state);
	assert_int_equal(f.c->fault, FAULT_STACK_OVERFLOW);
	assert_string_equal(f.c->function, "$fill$inner");
	assert_int_equal(f.c->function_offset, 0x10);
	assert_int_equal(f.c->kernel_offset, 0x90);
	dump_found(&f);
	p.reg[0][2] = 0x1000;	/* far from the stack pointer: an array index, not the stack */
	p.call_depth = 0;
	f = dump_find(&p);
	assert_int_equal(f.c->fault, FAULT_OUT_OF_RANGE);
	dump_found(&f);
}

static void culprit__a_broken_warp_is_a_trap(void **state)
{
	struct dump_plan p = {.broken = 1, .lane_pc = 32, .code = {MAKE_MOV_R9, MAKE_TRAP, MAKE_BRA}};
	struct found f = dump_find(&p);

	UNUSED(state);
	assert_int_equal(f.c->fault, FAULT_TRAP);
	assert_true(f.c->pc_exact);
	assert_int_equal(f.c->kernel_offset, 16);
	dump_found(&f);
}

static void culprit__an_assert_has_no_exact_pc(void **state)
{
	struct dump_plan p = {.lane_exception = 12, .lanes_hit = 4, .sm_exception = 12, .lane_pc = 32,
			      .code = {MAKE_MOV_R9, MAKE_STG, MAKE_BRA}};
	struct found f = dump_find(&p);

	UNUSED(state);
	assert_int_equal(f.c->fault, FAULT_ASSERT);
	assert_int_equal(f.c->lanes[0].thread[0], 2);
	assert_false(f.c->pc_exact);
	assert_false(f.c->decoded);
	dump_found(&f);
}

static void culprit__a_dump_of_a_running_gpu_is_no_fault(void **state)
{
	struct dump_plan p = {.lane_pc = 16, .code = {MAKE_BRA, MAKE_BRA}};
	struct found f = dump_find(&p);

	UNUSED(state);
	assert_int_equal(f.c->fault, FAULT_RUNNING);
	assert_int_equal(f.c->n_lanes, 4);
	assert_string_equal(f.c->kernel_text, "fill(float*, long)");
	dump_found(&f);
	p.gone = 1;
	f = dump_find(&p);
	assert_int_equal(f.c->fault, FAULT_NOTHING);
	dump_found(&f);
}

/* Whatever the driver marked to stop the GPU: the dump was requested. */
static void culprit__a_dump_that_was_asked_for_is_no_fault(void **state)
{
	struct dump_plan p = {.broken = 1, .sm_exception = 14, .lane_pc = 32, .code = {MAKE_MOV_R9, MAKE_TRAP, MAKE_BRA}};
	struct found f = dump_find(&p);

	UNUSED(state);
	assert_int_not_equal(f.c->fault, FAULT_RUNNING);
	assert_int_equal(f.c->n_places, 0);
	culprit_free(f.c);
	f.c = culprit_find_running(f.d);
	assert_int_equal(f.c->fault, FAULT_RUNNING);
	assert_int_equal(f.c->n_places, 1);
	assert_int_equal(f.c->places[0].threads, 4);
	assert_string_equal(f.c->places[0].function, "_Z4fillPfl");
	assert_int_equal(f.c->places[0].offset, 32);
	assert_int_equal(f.c->n_warps, 1);
	assert_int_equal(f.c->n_blocks, 1);
	assert_int_equal(f.c->n_elsewhere, 0);
	dump_found(&f);
}

static void culprit__an_illegal_store_is_told_with_thread_address_and_offset(void **state)
{
	struct found f = dump_find(&illegal);
	struct buf b;

	UNUSED(state);
	buf_init(&b, 1 << 16);
	culprit_text(f.c, &b);
	assert_non_null(strstr(b.data, "block (3,0,0) thread (0,0,0) wrote 4 bytes at 0x83190fe00100"));
	assert_non_null(strstr(b.data, "_Z4fillPfl+0x10: STG"));
	buf_release(&b);
	dump_found(&f);
}

static const struct sass_row {
	unsigned arch;
	uint64_t word[2];
	enum sass_kind kind;
	enum sass_space space;
	unsigned width;
	int reg, pair;
	unsigned shift;
	int ureg, descriptor;
	int64_t offset;
} sass_rows[] = {
#define ROW(arch, lo, hi, kind, space, width, reg, pair, shift, ureg, descriptor, offset) \
	{arch, {lo, hi}, SASS_##kind, SASS_##space, width, reg, pair, shift, ureg, descriptor, offset},
#include "tests/dump/sass_table.def"
};

static void sass__instructions_of_every_architecture_decode_as_nvdisasm_reads_them(void **state)
{
	size_t i, n = sizeof(sass_rows) / sizeof(sass_rows[0]);
	struct sass s;

	UNUSED(state);
	assert_true(n > 100);
	for (i = 0; i < n; i++) {
		const struct sass_row *r = &sass_rows[i];

		assert_true(sass_decode((const uint8_t *)r->word, r->arch, &s));
		assert_int_equal(s.kind, r->kind);
		assert_int_equal(s.space, r->space);
		assert_int_equal(s.width, r->width);
		assert_int_equal(s.reg, r->reg);
		assert_int_equal(s.reg >= 0 && s.reg_64, r->pair);
		assert_int_equal(s.reg >= 0 ? s.shift : 0, r->shift);
		assert_int_equal(s.ureg, r->ureg);
		assert_int_equal(s.descriptor, r->descriptor);
		assert_int_equal(s.offset, r->offset);
	}
}

static void sass__architectures_that_were_never_checked_are_not_decoded(void **state)
{
	static const uint64_t stg[2] = MAKE_STG;
	struct sass s;

	UNUSED(state);
	assert_true(sass_decode((const uint8_t *)stg, 90, &s));
	assert_false(sass_decode((const uint8_t *)stg, 70, &s));
	assert_false(sass_decode((const uint8_t *)stg, 130, &s));
}

/* Two stores in a row through the same register: after the second, the address of the first is still there. */
static void sass__a_store_disturbs_no_address(void **state)
{
	static const uint8_t first[] = {0x86, 0x79, 0x00, 0x02, 0x04, 0x00, 0x00, 0x00,
					0x04, 0x1d, 0x10, 0x0c, 0x00, 0xe8, 0x0f, 0x00},
			     second[] = {0x86, 0x79, 0x00, 0x02, 0x04, 0x00, 0x08, 0x00,
					 0x04, 0x1d, 0x10, 0x0c, 0x00, 0xe2, 0x0f, 0x00},
			     move[] = {0x02, 0x78, 0x03, 0x00, 0x00, 0x00, 0x80, 0x3f,	/* R3 */
				       0x00, 0x0f, 0x00, 0x00, 0x00, 0xe2, 0x0f, 0x00};
	struct sass s;

	(void)state;
	assert_true(sass_decode(first, 90, &s));
	assert_false(sass_disturbs(second, 90, &s));
	assert_true(sass_disturbs(move, 90, &s));
}

static void sass__an_address_is_the_sum_of_its_parts(void **state)
{
	uint32_t reg[4] = {0, 0, 0xfffffff0, 0x7f}, ureg[6] = {0, 0, 0, 0, 0x20, 1};
	struct bytes r = {(uint8_t *)reg, sizeof(reg)}, u = {(uint8_t *)ureg, sizeof(ureg)};
	struct sass s = {.space = SASS_GLOBAL, .reg = 2, .reg_64 = true, .ureg = 4, .ureg_64 = true, .offset = -0x10};
	uint64_t a;

	UNUSED(state);
	assert_true(sass_address(&s, r, u, &a));
	assert_int_equal(a, 0x8100000000ull);
	s.reg_64 = false;	/* [R2.U32+UR4] */
	assert_true(sass_address(&s, r, u, &a));
	assert_int_equal(a, 0x200000000ull);
	s = (struct sass){.space = SASS_SHARED, .reg = 2, .shift = 4, .ureg = -1, .offset = 0x108};
	assert_true(sass_address(&s, r, u, &a));
	assert_int_equal(a, 8);	/* 32 bits */
	s.reg = 4;
	assert_false(sass_address(&s, r, u, &a));
}

#define FIXTURES	"../shared/fixtures/"

static struct dump *open_fixture(const char *name)
{
	char command[256], path[] = "/tmp/cuwhy-dump-XXXXXX";
	struct dump *d;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "xz -dc " FIXTURES "%s.cudacore.xz > %s", name, path);
	d = system(command) == 0 ? dump_open(path, NULL) : NULL;
	unlink(path);
	return d;
}

static const struct {
	const char *name, *says[5];
} fixtures[] = {
	{"illegal-address", {"an illegal memory access (exception 14", "kernel  bad", "bad+0xe0: STG",
	  "block (0,0,0) thread (64,0,0) wrote 4 bytes at 0x83190fe00100 (global)"}},
	{"misaligned", {"a misaligned memory access (exception 6", "kernel  mis", "mis+0x50: STG",
	  "block (0,0,0) thread (0,0,0) wrote 8 bytes at 0x7faaa3e00001 (global)"}},
	{"trap", {"a trap instruction", "kernel  tr", "tr+0x10", "block (0,0,0) thread (0,0,0)"}},
	{"stack-overflow",
	 {"a stack overflow (exception 5", "kernel  so", "so+0x190 in $so$rec: STL, store, local", "call depth 5"}},
	{"assert-label",
	 {"a device-side assert (exception 12", "nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>",
	  "block (0,0,0) thread (3,0,0)", "1 thread in 1 warp",
	  "`t >= 0 && t < n_classes` at /pytorch/aten/src/ATen/native/cuda/Loss.cu:245 in "
	  "nll_loss_forward_reduce_cuda_kernel_2d"}},
	{"hang", {"no fault: the GPU was running", "kernel  spin", "near spin+0x40", "block (0,0,0) thread (0,0,0)"}},
};

static void fixtures__six_real_dumps_say_what_happened(void **state)
{
	size_t i, k;

	UNUSED(state);
	if (access(FIXTURES, R_OK) != 0 || system("xz --version >/dev/null 2>&1") != 0)
		skip();
	for (i = 0; i < sizeof(fixtures) / sizeof(fixtures[0]); i++) {
		struct dump *d = open_fixture(fixtures[i].name);
		struct culprit *c;
		struct buf b;

		assert_non_null(d);
		c = culprit_find(d);
		buf_init(&b, 1 << 16);
		culprit_text(c, &b);
		for (k = 0; k < 5 && fixtures[i].says[k]; k++)
			if (!strstr(b.data, fixtures[i].says[k]))
				fail_msg("%s: no '%s' in:\n%s", fixtures[i].name, fixtures[i].says[k],
					 b.data);
		buf_release(&b);
		culprit_free(c);
		dump_free(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dump__all_tables_of_a_dump_can_be_read),
		cmocka_unit_test(dump__rows_of_a_newer_driver_are_longer),
		cmocka_unit_test(dump__rows_of_an_older_driver_lack_the_newer_fields),
		cmocka_unit_test(dump__sections_can_be_counted_in_section_zero),
		cmocka_unit_test(dump__sections_out_of_order_are_found_by_parent),
		cmocka_unit_test(dump__a_file_reads_like_its_bytes),
		cmocka_unit_test(dump__gzip_is_expanded),
		cmocka_unit_test(dump__other_files_are_refused_with_a_reason),
		cmocka_unit_test(dump__a_dump_that_is_cut_anywhere_is_an_error),
		cmocka_unit_test(dump__any_changed_byte_is_survived),
		cmocka_unit_test(dump__a_table_that_contains_itself_ends),
		cmocka_unit_test(culprit__a_lane_with_an_exception_is_named),
		cmocka_unit_test(culprit__of_a_misaligned_warp_only_the_misaligned_lanes_count),
		cmocka_unit_test(culprit__an_exited_warp_leaves_the_lanes_behind_the_instruction),
		cmocka_unit_test(culprit__with_no_thread_left_the_kernel_is_still_found),
		cmocka_unit_test(culprit__a_lane_further_down_a_straight_line_keeps_its_address),
		cmocka_unit_test(culprit__a_lane_whose_registers_changed_since_is_not_trusted),
		cmocka_unit_test(culprit__lanes_that_skipped_the_instruction_are_not_blamed),
		cmocka_unit_test(culprit__a_load_into_its_own_address_register_is_doubtful),
		cmocka_unit_test(culprit__lanes_that_wait_elsewhere_are_not_blamed),
		cmocka_unit_test(culprit__lanes_that_are_not_valid_do_not_exist),
		cmocka_unit_test(culprit__grids_of_two_devices_with_one_number_are_two_grids),
		cmocka_unit_test(culprit__a_stack_that_left_local_memory_is_a_stack_overflow),
		cmocka_unit_test(culprit__a_broken_warp_is_a_trap),
		cmocka_unit_test(culprit__an_assert_has_no_exact_pc),
		cmocka_unit_test(culprit__a_dump_of_a_running_gpu_is_no_fault),
		cmocka_unit_test(culprit__a_dump_that_was_asked_for_is_no_fault),
		cmocka_unit_test(culprit__an_illegal_store_is_told_with_thread_address_and_offset),
		cmocka_unit_test(sass__instructions_of_every_architecture_decode_as_nvdisasm_reads_them),
		cmocka_unit_test(sass__architectures_that_were_never_checked_are_not_decoded),
		cmocka_unit_test(sass__a_store_disturbs_no_address),
		cmocka_unit_test(sass__an_address_is_the_sum_of_its_parts),
		cmocka_unit_test(fixtures__six_real_dumps_say_what_happened),
	};

	return cmocka_run_group_tests_name("dump", tests, NULL, NULL);
}
