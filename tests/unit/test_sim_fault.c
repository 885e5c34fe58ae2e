/* SPDX-License-Identifier: Apache-2.0
 * Tests of the simulated GPU: kernels that fail, and the core dumps they leave. */
#include "sim_core.h"

#include <signal.h>
#include <sys/resource.h>

static const char image_faults[] =
	"cuwhy-sim-module 1\n"
	"target sm_80\n"
	"target sm_90\n"
	"kernel fill\nkernel copy\nkernel sum\nkernel oob_store\nkernel oob_load\n"
	"kernel oob_atomic\nkernel index32\nkernel trap\nkernel assert_fail\nkernel misaligned\n"
	"kernel illegal_instruction\nkernel stack_overflow\nkernel hang\nkernel spin\n"
	"kernel gather mangled=_ZN2at6native6gatherEv\n"
	"assert /src/Indexing.cu:80: operator(): index >= 0 && index < sizes\n";

static char dump_path[64];

static struct sim_func *kernel(const char *name)
{
	static struct sim_module *module;
	struct sim_func *f;

	if (!module)
		OK(cu.cuModuleLoadData(&module, image_faults));
	OK(cu.cuModuleGetFunction(&f, module, name));
	return f;
}

static sim_addr memory(size_t bytes)
{
	sim_addr at;

	OK(cu.cuMemAlloc_v2(&at, bytes));
	return at;
}

static void set_bool(int attribute, bool value)
{
	OK(cu.cuCoredumpSetAttributeGlobal(attribute, &value, &(size_t){sizeof(value)}));
}

static void set_text(int attribute, const char *value)
{
	OK(cu.cuCoredumpSetAttributeGlobal(attribute, (void *)(uintptr_t)value, &(size_t){strlen(value) + 1}));
}

static void dump_place(void)
{
	snprintf(dump_path, sizeof(dump_path), "/tmp/cuwhy-test-core.%d", (int)getpid());
	unlink(dump_path);
}

/* As the recorder arms dumps. */
static void arm(int flags)
{
	dump_place();
	set_bool(1, true);
	set_text(5, "/tmp/cuwhy-test-core.%p");
	OK(cu.cuCoredumpSetAttributeGlobal(7, &flags, &(size_t){sizeof(flags)}));
}

static void start_armed(void)
{
	sim_start();
	arm(47 | 16);
}

static bool dumped(void)
{
	return access(dump_path, F_OK) == 0;
}

/* Is all of it there? Its section headers come last. */
static bool dumped_in_full(void)
{
	FILE *f = fopen(dump_path, "rb");
	Elf64_Ehdr h;
	bool whole;

	if (!f)
		return false;
	whole = fread(&h, sizeof(h), 1, f) == 1 && fseek(f, 0, SEEK_END) == 0 &&
		ftell(f) >= (long)(h.e_shoff + (Elf64_Off)h.e_shnum * h.e_shentsize);
	fclose(f);
	return whole;
}

/* Reads the dump, which must exist by now, and removes it. */
static struct culprit take_dump(void)
{
	struct culprit found;
	struct core core;

	core_open(&core, dump_path);
	core_culprit(&core, &found);
	core_close(&core);
	unlink(dump_path);
	return found;
}

/* The launch succeeds; the next synchronization reports the error, and so does every later call. */
static void sticks(int code)
{
	sim_addr p;

	EXPECT(cu.cuCtxSynchronize(), code);
	EXPECT(cu.cuStreamSynchronize(NULL), code);
	EXPECT(cu.cuMemAlloc_v2(&p, 16), code);
	EXPECT(cu.cuStreamQuery(NULL), code);
}

static void launch_store(sim_addr to, long long offset, unsigned int grid, unsigned int block)
{
	void *params[] = {&to, &offset};

	OK(launch_1d(kernel("oob_store"), grid, block, NULL, params));
}

/* After a dump, the driver takes a while to report the fault. */
static int late_error(void *stream)
{
	int code = 0;

	for (int i = 0; !code && i < 20000; i++) {
		code = cu.cuStreamSynchronize(stream);
		usleep(5000);
	}
	return code;
}

SIM_TEST(fault__a_store_past_the_buffer_is_700_and_sticks, "tiny")
{
	sim_start();
	launch_store(memory(4096), 1000, 1, 24);
	OK(cu.cuCtxSynchronize());
	launch_store(memory(4096), 1ll << 40, 4, 256);
	sticks(700);
}

SIM_TEST(fault__loads_and_atomics_fail_like_stores, "tiny")
{
	sim_addr out, in;
	long long offset = -(1ll << 30);
	void *params[] = {&out, &in, &offset};

	sim_start();
	out = memory(4096);
	in = memory(4096);
	OK(launch_1d(kernel("oob_load"), 1, 32, NULL, params));
	sticks(700);
}

SIM_TEST(fault__an_atomic_out_of_bounds_is_700, "tiny")
{
	sim_addr out;
	long long offset = 0;
	void *params[] = {&out, &offset};

	sim_start();
	out = memory(4096);
	OK(launch_1d(kernel("oob_atomic"), 1, 32, NULL, params));
	OK(cu.cuCtxSynchronize());
	offset = 1 << 30;
	OK(launch_1d(kernel("oob_atomic"), 1, 32, NULL, params));
	sticks(700);
}

static void use_after_free(size_t bytes)
{
	sim_addr p;

	sim_start();
	p = memory(bytes);
	launch_store(p, 0, 1, 32);
	OK(cu.cuMemFree_v2(p));
	launch_store(p, 0, 1, 32);
	sticks(700);
}

SIM_TEST(fault__use_after_free_of_a_small_block_is_700, "tiny")
{
	use_after_free(512);
}

SIM_TEST(fault__use_after_free_of_a_large_block_is_700, "tiny")
{
	use_after_free((size_t)4 << 20);
}

static void touch_freed(void)
{
	sim_addr p;

	sim_start();
	p = memory((size_t)4 << 20);
	*(volatile int *)(uintptr_t)p = 1;
	OK(cu.cuMemFree_v2(p));
	signal(SIGSEGV, SIG_DFL);		/* a sanitizer's report would end it otherwise */
	*(volatile int *)(uintptr_t)p = 1;
}

static void fault__freed_memory_cannot_be_touched_by_the_host(void **state)
{
	(void)state;
	assert_int_equal(in_child("tiny", touch_freed), -SIGSEGV);
}

SIM_TEST(fault__freed_memory_can_be_had_again, "tiny")
{
	sim_start();
	for (int i = 0; i < 40; i++) {
		sim_addr p = memory((size_t)4 << 20), q = memory((size_t)6 << 20), r;

		launch_store(p, 0, 4, 256);
		OK(cu.cuMemFree_v2(p));
		r = memory(600);
		launch_store(q, 0, 4, 256);
		launch_store(r, 0, 1, 128);
		OK(cu.cuMemFree_v2(q));
		OK(cu.cuMemFree_v2(r));
	}
	OK(cu.cuCtxSynchronize());
}

SIM_TEST(fault__memory_of_another_gpu_needs_peer_access, "tiny,devices=2")
{
	struct sim_ctx *first = sim_start(), *second;
	sim_addr p = memory(4096);

	OK(cu.cuDevicePrimaryCtxRetain(&second, 1));
	OK(cu.cuCtxSetCurrent(second));
	OK(cu.cuCtxEnablePeerAccess(first, 0));
	launch_store(p, 0, 1, 32);
	OK(cu.cuCtxSynchronize());
	OK(cu.cuCtxDisablePeerAccess(first));
	launch_store(p, 0, 1, 32);
	sticks(700);
	OK(cu.cuCtxSetCurrent(first));
	OK(cu.cuCtxSynchronize());
}

SIM_TEST(fault__an_illegal_instruction_is_715, "tiny")
{
	sim_start();
	OK(launch_1d(kernel("illegal_instruction"), 1, 32, NULL, NULL));
	sticks(715);
}

SIM_TEST(fault__a_stack_overflow_is_700_and_depends_on_the_limit, "tiny")
{
	sim_addr out;
	int depth = 100, got = 0;
	void *params[] = {&out, &depth};

	sim_start();
	out = memory(512);
	OK(cu.cuCtxSetLimit(0, 65536));
	OK(launch_1d(kernel("stack_overflow"), 1, 1, NULL, params));
	OK(cu.cuMemcpyDtoH_v2(&got, out, sizeof(got)));
	CHECK(got == depth);
	OK(cu.cuCtxSetLimit(0, 1024));
	OK(launch_1d(kernel("stack_overflow"), 1, 1, NULL, params));
	sticks(700);
}

SIM_TEST(fault__a_hang_lasts_until_its_flag_is_set, "tiny")
{
	sim_addr flag;
	void *params[] = {&flag};
	struct sim_stream *side;

	sim_start();
	flag = memory(512);
	OK(cu.cuStreamCreate(&side, 1));
	OK(launch_1d(kernel("hang"), 1, 1, side, params));
	usleep(20000);
	EXPECT(cu.cuStreamQuery(side), 600);
	__atomic_store_n((int *)(uintptr_t)flag, 1, __ATOMIC_SEQ_CST);
	OK(cu.cuStreamSynchronize(side));
}

static void leave_hanging(void)
{
	sim_addr none = 0;
	void *params[] = {&none};

	sim_start();
	OK(launch_1d(kernel("hang"), 1, 1, NULL, params));
}

static void fault__a_hang_does_not_keep_the_process(void **state)
{
	(void)state;
	assert_int_equal(in_child("tiny", leave_hanging), 0);
}

SIM_TEST(dump__none_is_written_unless_armed, "tiny")
{
	sim_start();
	dump_place();
	launch_store(memory(4096), 1ll << 40, 1, 32);
	EXPECT(cu.cuCtxSynchronize(), 700);
	CHECK(!dumped());
}

SIM_TEST(dump__a_healthy_program_leaves_none, "h200")
{
	start_armed();
	launch_store(memory(4096), 0, 1, 32);
	OK(cu.cuCtxSynchronize());
	CHECK(!dumped());
}

SIM_TEST(dump__a_store_names_kernel_thread_and_address, "h200")
{
	struct culprit c;
	sim_addr p;

	start_armed();
	p = memory(4096);			/* 1024 floats: block 1 passes thread 200 */
	launch_store(p, 568, 4, 256);
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK(!strcmp(c.symbol, "_Z9oob_storePfl"));
	CHECK(c.grid.grid[0] == 4 && c.grid.block[0] == 256 && c.grid.block[1] == 1);
	CHECK(c.sm.exception == 14 && c.sm.pc_valid && c.sm.pc == c.warp.pc && c.warp.pc_valid);
	CHECK(c.cta.block[0] == 1 && c.lane.thread[0] == 200 && c.lane.exception == 14);
	CHECK(c.lanes == 32 && c.failing == 24 && c.lane.lane == 8);
	CHECK(c.address == p + 4096);
	CHECK((c.insn[0] & 0xfff) == 0x986 && (c.insn[0] >> 24 & 0xff) == 2);
	CHECK((c.insn[1] >> 9 & 7) == 4);	/* four bytes */
	CHECK(c.lane.pc == c.warp.pc + 16 && c.lane.offset == c.lane.pc - c.grid.entry);
}

SIM_TEST(dump__parameters_and_ids_are_those_of_the_launch, "h200")
{
	struct { sim_addr p; long long offset; } want, got;
	struct sim_row_device device;
	struct sim_row_meta meta;
	struct sim_row_grid grid;
	struct core core;
	unsigned int grids;

	start_armed();
	want.p = memory(4096);
	want.offset = 1ll << 41;
	for (int i = 0; i < 5; i++)
		launch_store(want.p, 0, 1, 32);
	launch_store(want.p, want.offset, 2, 64);
	EXPECT(late_error(NULL), 700);
	core_open(&core, dump_path);
	CORE_ROW(&core, core_find(&core, SIM_TAB_DEVICE, 0, 0), 0, &device);
	CHECK(device.sms == 132 && device.major == 9 && !device.minor && device.insn_bytes == 16);
	CORE_ROW(&core, core_find(&core, SIM_TAB_META, 0, 0), 0, &meta);
	CHECK(meta.driver[0] == 580 && meta.cuda[0] == 13 && meta.flags == 63);
	grids = core_find(&core, SIM_TAB_GRID, 0, 0);
	CORE_ROW(&core, grids, 0, &grid);
	CHECK(grid.id >= 6 && grid.id < 12 && grid.params_offset == 0x210);
	CORE_ROW(&core, core_find(&core, SIM_TAB_PARAM, grids, 0), 0, &got);
	CHECK(!memcmp(&got, &want, sizeof(want)));
	CHECK(!core_find(&core, SIM_TAB_ELF, 0, 0));
	core_close(&core);
	unlink(dump_path);
}

static void fault_of(const char *name, unsigned int opcode)
{
	sim_addr p = memory(4096), far = p + (1ull << 40);
	long long offset = 0;
	void *load[] = {&p, &far, &offset}, *atomic[] = {&far, &offset};
	bool loads = !strcmp(name, "oob_load");
	struct culprit c;

	OK(launch_1d(kernel(name), 1, 16, NULL, loads ? load : atomic));
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK((c.insn[0] & 0xfff) == opcode && (c.insn[0] >> 24 & 0xff) == 2);
	CHECK(c.address == far && c.lanes == 16 && c.failing == 16 && !c.lane.thread[0]);
}

SIM_TEST(dump__a_load_is_a_load, "a100")
{
	start_armed();
	fault_of("oob_load", 0x981);
}

SIM_TEST(dump__an_atomic_is_a_reduction, "tiny")
{
	start_armed();
	fault_of("oob_atomic", 0x98e);
}

SIM_TEST(dump__a_32_bit_index_wraps_to_far_below, "h200")
{
	int step = 1 << 26;
	struct culprit c;
	sim_addr p;
	void *params[] = {&p, &step};

	start_armed();
	OK(cu.cuMemAlloc_v2(&p, (size_t)20 << 30));
	OK(launch_1d(kernel("index32"), 1, 64, NULL, params));
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK(c.lane.thread[0] == 32 && c.address == p - (1ull << 33));
}

SIM_TEST(dump__a_grid_stride_loop_fails_in_its_own_thread, "h200")
{
	int n = 5000;
	struct culprit c;
	sim_addr out, in;
	void *params[] = {&out, &in, &n};

	start_armed();
	out = memory(512);
	in = memory(1003 * 4);
	OK(launch_1d(kernel("sum"), 4, 64, NULL, params));
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK(c.address == in + 1003 * 4);
	CHECK(c.cta.block[0] * 64 + c.lane.thread[0] == 1003 % 256);
}

SIM_TEST(dump__misaligned_has_its_offset_in_the_instruction, "h200")
{
	struct culprit c;
	sim_addr p;
	void *params[] = {&p};

	start_armed();
	p = memory(512);
	OK(launch_1d(kernel("misaligned"), 1, 64, NULL, params));
	EXPECT(late_error(NULL), 716);
	c = take_dump();
	CHECK(c.sm.exception == 6 && c.lane.exception == 6 && c.warp.pc_valid && c.lanes == 1);
	CHECK(c.address == p && c.insn[0] >> 40 == 1);
}

SIM_TEST(dump__a_trap_leaves_no_exception_but_a_broken_warp, "h200")
{
	struct culprit c;

	start_armed();
	OK(launch_1d(kernel("trap"), 1, 1, NULL, NULL));
	EXPECT(late_error(NULL), 719);
	c = take_dump();
	CHECK(!c.sm.exception && !c.lane.exception && c.warp.broken && !c.warp.pc_valid);
	CHECK(!strcmp(c.symbol, "_Z4trapv"));
}

SIM_TEST(dump__an_illegal_instruction_is_exception_4, "h200")
{
	struct culprit c;

	start_armed();
	OK(launch_1d(kernel("illegal_instruction"), 1, 40, NULL, NULL));
	EXPECT(late_error(NULL), 715);
	c = take_dump();
	CHECK(c.sm.exception == 4 && c.lane.exception == 4 && !c.insn[0]);
}

SIM_TEST(dump__a_stack_overflow_is_exception_5_with_a_backtrace, "h200")
{
	sim_addr out;
	int depth = 100000;
	struct culprit c;
	void *params[] = {&out, &depth};

	start_armed();
	out = memory(512);
	OK(launch_1d(kernel("stack_overflow"), 1, 1, NULL, params));
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK(c.sm.exception == 5 && c.lane.exception == 5 && c.lane.depth == 4);
	CHECK((c.insn[0] & 0xfff) == 0x387);
}

SIM_TEST(dump__the_failing_warp_can_have_left, "h200,warp_exits")
{
	struct culprit c;
	sim_addr p;

	start_armed();
	p = memory(512);
	launch_store(p, 1ll << 40, 4, 256);
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK(c.sm.exception == 14 && c.sm.pc_valid && !c.warp.pc_valid && !c.lane.exception);
	CHECK(c.lane.thread[0] == 32 && c.address == p + (4ull << 40) + 128);
}

SIM_TEST(dump__a_planned_fault_has_no_address, "h200,sticky=cuLaunchKernel:2:700")
{
	struct culprit c;
	sim_addr p;

	start_armed();
	p = memory(4096);
	launch_store(p, 0, 1, 32);
	launch_store(p, 0, 1, 32);
	EXPECT(late_error(NULL), 700);
	c = take_dump();
	CHECK(c.sm.exception == 10 && !c.sm.pc_valid && !c.warp.pc_valid && !c.lane.exception);
}

SIM_TEST(dump__a_kernel_of_a_graph_is_dumped, "h200")
{
	struct sim_stream *s;
	struct sim_graph *graph;
	struct sim_exec *exec;
	long long offset = 1ll << 40;
	struct culprit c;
	sim_addr p;
	void *params[] = {&p, &offset};

	start_armed();
	p = memory(4096);
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamBeginCapture_v2(s, 0));
	OK(launch_1d(kernel("oob_store"), 1, 32, s, params));
	OK(cu.cuStreamEndCapture(s, &graph));
	OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cu.cuGraphLaunch(exec, s));
	EXPECT(late_error(s), 700);
	c = take_dump();
	CHECK(c.address == p + (4ull << 40));
}

SIM_TEST(dump__non_relocated_images_are_there_unless_skipped, "h200")
{
	struct core core;

	sim_start();
	arm(16);
	OK(launch_1d(kernel("trap"), 1, 1, NULL, NULL));
	EXPECT(late_error(NULL), 719);
	core_open(&core, dump_path);
	CHECK(core_find(&core, SIM_TAB_ELF, 0, 0) && core_find(&core, SIM_TAB_RELF, 0, 0));
	core_close(&core);
	unlink(dump_path);
}

/* What the body writes to stderr. */
static void said_while(void (*body)(void), char *text, size_t size)
{
	FILE *file = tmpfile();
	int keep = dup(2);
	size_t n;

	CHECK(file && keep >= 0 && dup2(fileno(file), 2) == 2);
	body();
	CHECK(dup2(keep, 2) == 2);
	rewind(file);
	n = fread(text, 1, size - 1, file);
	text[n] = '\0';
	fclose(file);
	close(keep);
}

static int assert_code;

static void gather_badly(void)
{
	long long index[70] = {[33] = 9, [35] = -1, [66] = 9};
	int n = 70, size = 8;
	sim_addr out = memory(4096), in = memory(4096), at = memory(4096);
	void *params[] = {&out, &in, &at, &n, &size};

	OK(cu.cuMemcpyHtoD_v2(at, index, sizeof(index)));
	OK(launch_1d(kernel("_ZN2at6native6gatherEv"), 2, 64, NULL, params));
	EXPECT(cu.cuCtxSynchronize(), assert_code);
}

SIM_TEST(assert__says_file_line_block_thread_and_condition, "tiny")
{
	static const char want[] =
		"/src/Indexing.cu:80: operator(): block: [0,0,0], thread: [33,0,0] Assertion "
		"`index >= 0 && index < sizes` failed.\n"
		"/src/Indexing.cu:80: operator(): block: [0,0,0], thread: [35,0,0] Assertion "
		"`index >= 0 && index < sizes` failed.\n";
	char text[1024];

	sim_start();
	assert_code = 710;
	said_while(gather_badly, text, sizeof(text));
	CHECK(!strcmp(text, want));
	sticks(710);
}

SIM_TEST(assert__is_raised_late_and_as_another_error_when_the_process_is_not_to_be_aborted, "h200")
{
	char text[1024];
	struct culprit c;

	start_armed();
	assert_code = 0;
	said_while(gather_badly, text, sizeof(text));
	CHECK(strstr(text, "thread: [33,0,0] Assertion `"));
	c = take_dump();
	CHECK(c.sm.exception == 12 && !c.sm.pc_valid && c.lane.exception == 12);
	CHECK(c.lanes == 2 && c.warp.valid == 0xa && c.lane.thread[0] == 33);
	CHECK(!strcmp(c.symbol, "_ZN2at6native6gatherEv"));
	launch_store(memory(4096), 0, 1, 32);
	OK(cu.cuCtxSynchronize());
	EXPECT(late_error(NULL), 719);
}

static void assert_plainly(void)
{
	OK(launch_1d(kernel("assert_fail"), 2, 2, NULL, NULL));
	EXPECT(cu.cuCtxSynchronize(), 710);
}

SIM_TEST(assert__has_words_of_its_own_without_an_image_line, "tiny")
{
	char text[1024];

	sim_start();
	said_while(assert_plainly, text, sizeof(text));
	CHECK(!strcmp(text, "assert_fail.cu:7: assert_fail: block: [0,0,0], thread: [0,0,0] "
			    "Assertion `value > 0` failed.\n"
			    "assert_fail.cu:7: assert_fail: block: [0,0,0], thread: [1,0,0] "
			    "Assertion `value > 0` failed.\n"));
}

static void die_armed(void)
{
	char path[64];

	CHECK(!setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
	sim_start();
	arm(47);
	snprintf(path, sizeof(path), "/tmp/cuwhy-test-abort.%d", (int)getppid());
	set_text(5, path);
	OK(launch_1d(kernel("trap"), 1, 1, NULL, NULL));
	cu.cuCtxSynchronize();
}

static void spare_armed(void)
{
	sim_start();
	arm(47);
	set_bool(2, false);
	OK(launch_1d(kernel("trap"), 1, 1, NULL, NULL));
	EXPECT(late_error(NULL), 719);
	CHECK(dumped());
	unlink(dump_path);
}

static void settings__the_process_is_aborted_unless_told_otherwise(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/cuwhy-test-abort.%d", (int)getpid());
	assert_int_equal(in_child("tiny", die_armed), -SIGABRT);
	assert_int_equal(in_child("tiny", spare_armed), 0);
	assert_int_equal(unlink(path), 0);
}

SIM_TEST(settings__are_remembered_and_have_defaults, "tiny")
{
	char text[64];
	int flags = 63, got = 0;
	bool on = true;

	sim_start();
	OK(cu.cuCoredumpGetAttributeGlobal(1, &on, &(size_t){sizeof(on)}));
	CHECK(!on);
	OK(cu.cuCoredumpGetAttributeGlobal(2, &on, &(size_t){sizeof(on)}));
	CHECK(on);
	OK(cu.cuCoredumpSetAttributeGlobal(7, &flags, &(size_t){sizeof(flags)}));
	OK(cu.cuCoredumpGetAttribute(7, &got, &(size_t){sizeof(got)}));
	CHECK(got == flags);
	set_text(5, "/tmp/some.%p");
	OK(cu.cuCoredumpGetAttributeGlobal(5, text, &(size_t){sizeof(text)}));
	CHECK(!strcmp(text, "/tmp/some.%p"));
	EXPECT(cu.cuCoredumpGetAttributeGlobal(5, text, &(size_t){2}), 1);
	EXPECT(cu.cuCoredumpGetAttributeGlobal(8, text, &(size_t){2}), 1);
	EXPECT(cu.cuCoredumpSetAttributeGlobal(7, &flags, &(size_t){1}), 1);
	EXPECT(cu.cuCoredumpSetAttribute(4, &on, &(size_t){sizeof(on)}), 800);
}

SIM_TEST(settings__of_a_context_come_before_those_of_the_process, "tiny")
{
	bool off = false;

	start_armed();
	OK(cu.cuCoredumpSetAttribute(1, &off, &(size_t){sizeof(off)}));
	OK(launch_1d(kernel("trap"), 1, 1, NULL, NULL));
	EXPECT(cu.cuCtxSynchronize(), 719);
	CHECK(!dumped());
}

SIM_TEST(settings__of_the_environment_win, "tiny")
{
	char host[64] = "", want[128];
	bool off = false;
	int flags = 0;

	setenv("CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "1", 1);
	setenv("CUDA_COREDUMP_FILE", "/tmp/cuwhy-test-%h.%p", 1);
	setenv("CUDA_COREDUMP_GENERATION_FLAGS", "skip_global_memory,skip_abort", 1);
	sim_start();
	EXPECT(cu.cuCoredumpSetAttributeGlobal(1, &off, &(size_t){sizeof(off)}), 800);
	OK(cu.cuCoredumpGetAttributeGlobal(7, &flags, &(size_t){sizeof(flags)}));
	CHECK(flags == 18);
	OK(launch_1d(kernel("trap"), 1, 1, NULL, NULL));
	EXPECT(late_error(NULL), 719);
	gethostname(host, sizeof(host) - 1);
	snprintf(want, sizeof(want), "/tmp/cuwhy-test-%s.%d", host, (int)getpid());
	CHECK(!access(want, F_OK));
	unlink(want);
}

SIM_TEST(settings__a_dump_that_cannot_be_written_hides_nothing, "tiny")
{
	start_armed();
	set_text(5, "/dev/null/core");	/* a path that root cannot make, either */
	assert_code = 710;
	said_while(gather_badly, (char[1024]){0}, 1024);
	sticks(710);
}

static void ask_for_dump(const char *path)
{
	static char bytes[1 << 20];
	size_t at = 0;
	int fd = open(path, O_WRONLY);

	CHECK(fd >= 0);
	while (at < sizeof(bytes)) {
		ssize_t wrote = write(fd, bytes, sizeof(bytes) - at);

		CHECK(wrote > 0);
		at += (size_t)wrote;
	}
	close(fd);
}

static void pipe_open(char *path, size_t size)
{
	start_armed();
	snprintf(path, size, "/tmp/cuwhy-test-pipe.%d", (int)getpid());
	set_text(6, "/tmp/cuwhy-test-pipe.%p");
	set_bool(4, true);
	CHECK(!access(path, F_OK));
}

SIM_TEST(trigger__a_request_dumps_and_ends_a_hanging_kernel, "h200")
{
	char path[64];
	struct culprit c;
	sim_addr none = 0;
	void *params[] = {&none};

	pipe_open(path, sizeof(path));
	EXPECT(cu.cuCoredumpSetAttributeGlobal(6, path, &(size_t){3}), 800);
	OK(launch_1d(kernel("hang"), 2, 33, NULL, params));
	do {	/* again if the kernel did not run yet */
		ask_for_dump(path);
		for (int i = 0; i < 100 && cu.cuStreamQuery(NULL) == 600; i++)
			usleep(10000);
	} while (cu.cuStreamQuery(NULL) == 600);
	sticks(719);
	c = take_dump();
	CHECK(!c.sm.exception && !c.lane.exception && !c.warp.broken && !c.warp.pc_valid);
	CHECK(!strcmp(c.symbol, "_Z4hangPi") && c.lanes == 32 && c.grid.block[0] == 33);
	CHECK((c.insn[0] & 0xfff) == 0x947);
}

SIM_TEST(trigger__a_request_on_an_idle_gpu_changes_nothing, "h200")
{
	struct core core;
	char path[64];

	pipe_open(path, sizeof(path));
	ask_for_dump(path);
	for (int i = 0; i < 30000 && !dumped_in_full(); i++)
		usleep(10000);
	core_open(&core, dump_path);
	CHECK(!core_find(&core, SIM_TAB_GRID, 0, 0) && core_find(&core, SIM_TAB_SM, 0, 0));
	core_close(&core);
	unlink(dump_path);
	launch_store(memory(4096), 0, 1, 32);
	OK(cu.cuCtxSynchronize());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault__a_store_past_the_buffer_is_700_and_sticks),
		cmocka_unit_test(fault__loads_and_atomics_fail_like_stores),
		cmocka_unit_test(fault__an_atomic_out_of_bounds_is_700),
		cmocka_unit_test(fault__use_after_free_of_a_small_block_is_700),
		cmocka_unit_test(fault__use_after_free_of_a_large_block_is_700),
		cmocka_unit_test(fault__freed_memory_cannot_be_touched_by_the_host),
		cmocka_unit_test(fault__freed_memory_can_be_had_again),
		cmocka_unit_test(fault__memory_of_another_gpu_needs_peer_access),
		cmocka_unit_test(fault__an_illegal_instruction_is_715),
		cmocka_unit_test(fault__a_stack_overflow_is_700_and_depends_on_the_limit),
		cmocka_unit_test(fault__a_hang_lasts_until_its_flag_is_set),
		cmocka_unit_test(fault__a_hang_does_not_keep_the_process),
		cmocka_unit_test(dump__none_is_written_unless_armed),
		cmocka_unit_test(dump__a_healthy_program_leaves_none),
		cmocka_unit_test(dump__a_store_names_kernel_thread_and_address),
		cmocka_unit_test(dump__parameters_and_ids_are_those_of_the_launch),
		cmocka_unit_test(dump__a_load_is_a_load),
		cmocka_unit_test(dump__an_atomic_is_a_reduction),
		cmocka_unit_test(dump__a_32_bit_index_wraps_to_far_below),
		cmocka_unit_test(dump__a_grid_stride_loop_fails_in_its_own_thread),
		cmocka_unit_test(dump__misaligned_has_its_offset_in_the_instruction),
		cmocka_unit_test(dump__a_trap_leaves_no_exception_but_a_broken_warp),
		cmocka_unit_test(dump__an_illegal_instruction_is_exception_4),
		cmocka_unit_test(dump__a_stack_overflow_is_exception_5_with_a_backtrace),
		cmocka_unit_test(dump__the_failing_warp_can_have_left),
		cmocka_unit_test(dump__a_planned_fault_has_no_address),
		cmocka_unit_test(dump__a_kernel_of_a_graph_is_dumped),
		cmocka_unit_test(dump__non_relocated_images_are_there_unless_skipped),
		cmocka_unit_test(assert__says_file_line_block_thread_and_condition),
		cmocka_unit_test(assert__is_raised_late_and_as_another_error_when_the_process_is_not_to_be_aborted),
		cmocka_unit_test(assert__has_words_of_its_own_without_an_image_line),
		cmocka_unit_test(settings__the_process_is_aborted_unless_told_otherwise),
		cmocka_unit_test(settings__are_remembered_and_have_defaults),
		cmocka_unit_test(settings__of_a_context_come_before_those_of_the_process),
		cmocka_unit_test(settings__of_the_environment_win),
		cmocka_unit_test(settings__a_dump_that_cannot_be_written_hides_nothing),
		cmocka_unit_test(trigger__a_request_dumps_and_ends_a_hanging_kernel),
		cmocka_unit_test(trigger__a_request_on_an_idle_gpu_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
