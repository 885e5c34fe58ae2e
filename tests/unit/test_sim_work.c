/* SPDX-License-Identifier: Apache-2.0
 * Tests of the simulated GPU: modules, launches and limits, kernels, streams, memory. */
#include "sim_child.h"

#include <pthread.h>

enum { N = 1000 };

static sim_addr alloc_floats(size_t count)
{
	sim_addr a;

	OK(cu.cuMemAlloc_v2(&a, count * sizeof(float)));
	return a;
}

#define IMAGE(lines) "cuwhy-sim-module 1\n" lines "\nkernel nop\n"

SIM_TEST(sim__code_that_does_not_fit_the_gpu_is_refused, "tiny,ptx=90")
{
	struct sim_module *m;

	sim_start();
	OK(cu.cuModuleLoadData(&m, IMAGE("target sm_86")));
	OK(cu.cuModuleLoadData(&m, IMAGE("target sm_80")));
	OK(cu.cuModuleLoadData(&m, IMAGE("target sm_90\ntarget compute_75 ptx 7.0")));
	OK(cu.cuModuleLoadData(&m, IMAGE("target compute_86 ptx 9.0")));
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target sm_89")), 209);
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target sm_75\ntarget sm_90")), 209);
	CHECK(strstr(sim_said, "No device code available for GPU ISA 86\n"));
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target sm_80a")), 209);
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target compute_90 ptx 8.0")), 209);
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target compute_80 ptx 9.1")), 222);
	setenv("CUDA_DISABLE_PTX_JIT", "1", 1);
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target compute_80 ptx 8.0")), 223);
}

SIM_TEST(sim__a_broken_image_is_200_and_an_unknown_name_500, "tiny")
{
	struct sim_module *m;
	struct sim_func *f;

	sim_start();
	EXPECT(cu.cuModuleLoadData(&m, "\177ELF"), 200);
	EXPECT(cu.cuModuleLoadData(&m, ""), 200);
	EXPECT(cu.cuModuleLoadData(&m, "cuwhy-sim-module 1\nkernel nop\n"), 200);
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target sm_80\nkernel nonsense")), 200);
	EXPECT(cu.cuModuleLoadData(&m, IMAGE("target sm_80\nkernel fill color=1")), 200);
	EXPECT(cu.cuModuleLoadData(&m, NULL), 1);
	EXPECT(cu.cuModuleLoad(&m, "/nonexistent/image"), 301);
	OK(cu.cuModuleLoadData(&m, image_all));
	EXPECT(cu.cuModuleGetFunction(&f, m, "nosuch"), 500);
	OK(cu.cuModuleGetFunction(&f, m, "_Z4fillPffi"));
	OK(cu.cuModuleUnload(m));
	EXPECT(cu.cuModuleGetFunction(&f, m, "fill"), 400);
	EXPECT(launch_1d(f, 1, 1, NULL, NULL), 400);
}

SIM_TEST(sim__a_library_reports_its_image_when_a_kernel_is_asked_for, "tiny")
{
	struct sim_library *good, *bad;
	struct sim_func *k, *f;
	const char *name;
	size_t offset, size;

	sim_start();
	OK(cu.cuLibraryLoadData(&good, image_all, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&k, good, "saxpy"));
	OK(cu.cuKernelGetName(&name, k));
	CHECK(!strcmp(name, "_Z5saxpyPfPKffi"));
	OK(cu.cuKernelGetFunction(&f, k));
	OK(cu.cuFuncGetParamInfo(f, 3, &offset, &size));
	CHECK(offset == 20 && size == 4);
	EXPECT(cu.cuKernelGetParamInfo(k, 4, &offset, &size), 1);
	OK(cu.cuLibraryLoadData(&bad, IMAGE("target sm_50"), NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(cu.cuLibraryGetKernel(&k, bad, "nop"), 209);
	OK(cu.cuLibraryUnload(bad));
	OK(cu.cuLibraryUnload(good));
}

static void expect_launch(const char *kernel, const unsigned int *d, unsigned int shared, int code,
			  const char *words)
{
	struct sim_func *f = sim_kernel(kernel);
	sim_addr a = alloc_floats(2048);
	float value = 0;
	int n = 0;
	void *params[] = {&a, &value, &n};

	say_reset();
	EXPECT(cu.cuLaunchKernel(f, d[0], d[1], d[2], d[3], d[4], d[5], shared, NULL, params, NULL),
	       code);
	if (words && !strstr(sim_said, words)) {
		fprintf(stderr, "%s: expected \"%s\", got \"%s\"\n", kernel, words, sim_said);
		_exit(1);
	}
}

#define DIMS(...) ((const unsigned int[]){__VA_ARGS__})

SIM_TEST(sim__each_grid_and_block_limit_is_1_with_the_drivers_words, "tiny")
{
	sim_start();
	expect_launch("nop", DIMS(2147483647, 65535, 65535, 1024, 1, 1), 0, 0, NULL);
	expect_launch("nop", DIMS(0, 1, 1, 1, 1, 1), 0, 1, "Grid Dimension X must be nonzero");
	expect_launch("nop", DIMS(1, 1, 0, 1, 1, 1), 0, 1, "Grid Dimension Z must be nonzero");
	expect_launch("nop", DIMS(2147483648u, 1, 1, 1, 1, 1), 0, 1,
		      "Grid Dimension X of 2147483648 exceeds maximum value of 2147483647");
	expect_launch("nop", DIMS(1, 70000, 1, 1, 1, 1), 0, 1,
		      "Grid Dimension Y of 70000 exceeds maximum value of 65535");
	expect_launch("nop", DIMS(1, 1, 65536, 1, 1, 1), 0, 1,
		      "Grid Dimension Z of 65536 exceeds maximum value of 65535");
	expect_launch("nop", DIMS(1, 1, 1, 0, 1, 1), 0, 1, "Block dimensions (0,1,1) include one");
	expect_launch("nop", DIMS(1, 1, 1, 1025, 1, 1), 0, 1, "dimensions of (1025,1,1) exceeds");
	expect_launch("nop", DIMS(1, 1, 1, 1, 1025, 1), 0, 1, "dimensions of (1,1025,1) exceeds");
	expect_launch("nop", DIMS(1, 1, 1, 1, 1, 65), 0, 1, "dimensions of (1,1,65) exceeds");
	expect_launch("nop", DIMS(1, 1, 1, 32, 33, 1), 0, 1,
		      "Requested block size of 1056 threads exceeds device maximum 1024");
}

SIM_TEST(sim__launch_bounds_give_1_and_registers_701, "tiny")
{
	int threads;

	sim_start();
	expect_launch("bounded", DIMS(1, 1, 1, 256, 1, 1), 0, 0, NULL);
	expect_launch("bounded", DIMS(1, 1, 1, 257, 1, 1), 0, 1,
		      "Requested block size of 257 threads exceeds maximum set at compilation of "
		      "256");
	OK(cu.cuFuncGetAttribute(&threads, 0, sim_kernel("fat")));
	CHECK(threads == 384);
	expect_launch("fat", DIMS(1, 1, 1, 384, 1, 1), 0, 0, NULL);
	expect_launch("fat", DIMS(1, 1, 1, 385, 1, 1), 0, 701, "Returning 701");
}

SIM_TEST(sim__shared_memory_needs_an_opt_in_above_48_kib, "tiny")
{
	struct sim_func *f;

	sim_start();
	f = sim_kernel("nop");
	expect_launch("nop", DIMS(1, 1, 1, 1, 1, 1), 49152, 0, NULL);
	expect_launch("nop", DIMS(1, 1, 1, 1, 1, 1), 100000, 1,
		      "Requested dynamic shared memory size of 100000 bytes exceeds maximum "
		      "dynamic shared memory size of 49152 bytes");
	EXPECT(cu.cuFuncSetAttribute(f, 8, 101377), 1);
	OK(cu.cuFuncSetAttribute(f, 8, 101376));
	expect_launch("nop", DIMS(1, 1, 1, 1, 1, 1), 100000, 0, NULL);
	EXPECT(cu.cuFuncSetAttribute(sim_kernel("sum"), 8, 101376), 1);
	EXPECT(cu.cuFuncSetAttribute(f, 8, -1), 1);
}

SIM_TEST(sim__a_cooperative_grid_must_fit_the_gpu_at_once, "tiny")
{
	struct sim_func *f;
	int blocks;

	sim_start();
	f = sim_kernel("nop");
	OK(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1024, 0));
	CHECK(blocks == 1);
	OK(cu.cuLaunchCooperativeKernel(f, 4, 1, 1, 1024, 1, 1, 0, NULL, NULL));
	EXPECT(cu.cuLaunchCooperativeKernel(f, 5, 1, 1, 1024, 1, 1, 0, NULL, NULL), 720);
	CHECK(strstr(sim_said, "limit for this kernel on this device of 4 blocks"));
}

static int cluster_launch(struct sim_func *f, unsigned int grid, unsigned int cluster)
{
	struct sim_launch_attr attr = {.id = 4, .value.cluster = {cluster, 1, 1}};
	struct sim_launch_config config = {.grid = {grid, 1, 1}, .block = {32, 1, 1}, .attrs = &attr, .attr_count = 1};

	return cu.cuLaunchKernelEx(&config, f, NULL, NULL);
}

SIM_TEST(sim__a_cluster_that_is_not_allowed_is_912, "h200")
{
	struct sim_func *f;

	sim_start();
	f = sim_kernel("nop");
	OK(cluster_launch(f, 8, 8));
	EXPECT(cluster_launch(f, 4, 3), 912);
	EXPECT(cluster_launch(f, 32, 16), 912);
	OK(cu.cuFuncSetAttribute(f, 14, 1));
	OK(cluster_launch(f, 32, 16));
	EXPECT(cluster_launch(f, 32, 32), 912);
}

SIM_TEST(sim__a_gpu_without_clusters_refuses_them, "a100")
{
	sim_start();
	EXPECT(cluster_launch(sim_kernel("nop"), 8, 2), 912);
}

SIM_TEST(sim__missing_parameters_and_stale_handles_are_noticed, "tiny")
{
	struct sim_stream *s;
	struct sim_module *m;
	struct sim_func *f;
	size_t size = 20;
	char buffer[32] = {0};
	void *extra[] = {(void *)1, buffer, (void *)2, &size, NULL};

	sim_start();
	f = sim_kernel("fill");
	EXPECT(launch_1d(f, 1, 1, NULL, NULL), 1);
	CHECK(strstr(sim_said, "has 3 parameters but none provided at launch"));
	EXPECT(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra), 701);
	OK(cu.cuModuleLoadData(&m, "cuwhy-sim-module 1\ntarget compute_50 ptx 6.0\nkernel nop any_params=1 mangled=mine\n"));
	OK(cu.cuModuleGetFunction(&f, m, "mine"));
	OK(cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
	OK(cu.cuStreamCreate(&s, 0));
	OK(cu.cuStreamDestroy_v2(s));
	EXPECT(launch_1d(sim_kernel("nop"), 1, 1, s, NULL), 400);
	EXPECT(launch_1d(NULL, 1, 1, NULL, NULL), 400);
}

SIM_TEST(sim__kernels_really_compute, "tiny")
{
	float out[N], factor = 3, two = 2;
	sim_addr a, b, c;
	int n = N;

	sim_start();
	a = alloc_floats(N);
	b = alloc_floats(N);
	c = alloc_floats(N);
	OK(launch_1d(sim_kernel("iota"), 4, 256, NULL, (void *[]){&a, &n}));
	OK(launch_1d(sim_kernel("fill"), 4, 256, NULL, (void *[]){&b, &two, &n}));
	OK(launch_1d(sim_kernel("vecadd"), 4, 256, NULL, (void *[]){&c, &a, &b, &n}));
	OK(launch_1d(sim_kernel("scale"), 4, 256, NULL, (void *[]){&c, &factor, &n}));
	OK(launch_1d(sim_kernel("saxpy"), 4, 256, NULL, (void *[]){&c, &b, &factor, &n}));
	OK(launch_1d(sim_kernel("copy"), 4, 256, NULL, (void *[]){&a, &c, &n}));
	OK(launch_1d(sim_kernel("sum"), 1, 256, NULL, (void *[]){&b, &a, &n}));
	OK(cu.cuMemcpyDtoH_v2(out, a, sizeof(out)));
	CHECK(out[0] == 12 && out[10] == 42);
	OK(cu.cuMemcpyDtoH_v2(out, b, sizeof(float)));
	CHECK(out[0] == 3.0f * (N - 1) * N / 2 + 12 * N);
}

SIM_TEST(sim__a_grid_that_is_too_small_leaves_elements_untouched, "tiny")
{
	float out[4] = {0}, value = 5;
	int n = 4;
	sim_addr a;

	sim_start();
	a = alloc_floats(4);
	OK(cu.cuMemsetD8_v2(a, 0, sizeof(out)));
	OK(launch_1d(sim_kernel("fill"), 1, 3, NULL, (void *[]){&a, &value, &n}));
	OK(cu.cuMemcpyDtoH_v2(out, a, sizeof(out)));
	CHECK(out[2] == 5 && out[3] == 0);
}

SIM_TEST(sim__parameters_come_from_a_list_or_from_a_buffer, "tiny")
{
	struct __attribute__((packed)) { sim_addr to; float table[80]; int n; } packed = { 0 };
	size_t size = sizeof(packed);
	void *extra[] = {(void *)1, &packed, (void *)2, &size, NULL};
	float out[80];

	sim_start();
	packed.to = alloc_floats(80);
	packed.n = 80;
	for (int i = 0; i < 80; i++)
		packed.table[i] = (float)(i * i);
	OK(cu.cuLaunchKernel(sim_kernel("table"), 1, 1, 1, 80, 1, 1, 0, NULL, NULL, extra));
	OK(cu.cuMemcpyDtoH_v2(out, packed.to, sizeof(out)));
	CHECK(out[79] == 79 * 79);
}

SIM_TEST(sim__launches_are_asynchronous, "tiny")
{
	struct sim_event *from, *to;
	struct sim_stream *s;
	float ms;

	sim_start();
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuEventCreate(&from, 0));
	OK(cu.cuEventCreate(&to, 0));
	OK(cu.cuEventRecord(from, s));
	OK(launch_1d(sim_kernel("spin"), 1, 1, s, (void *[]){&(int){100}}));
	OK(cu.cuEventRecord(to, s));
	EXPECT(cu.cuStreamQuery(s), 600);
	EXPECT(cu.cuEventQuery(to), 600);
	EXPECT(cu.cuEventElapsedTime(&ms, from, to), 600);
	OK(cu.cuEventSynchronize(to));
	OK(cu.cuStreamQuery(s));
	OK(cu.cuEventElapsedTime(&ms, from, to));
	CHECK(ms >= 99 && ms < 60000);
}

SIM_TEST(sim__a_wrong_pointer_is_a_sticky_700, "tiny")
{
	sim_addr wrong = 0x1234560, a;
	struct sim_stream *s;
	struct sim_ctx *ctx;
	float value = 1;
	int n = 4, device;

	sim_start();
	OK(cu.cuStreamCreate(&s, 0));
	OK(launch_1d(sim_kernel("fill"), 1, 4, s, (void *[]){&wrong, &value, &n}));
	EXPECT(cu.cuStreamSynchronize(s), 700);
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 700);
	CHECK(strstr(sim_said, "Sticky error detected\n"));
	EXPECT(launch_1d(NULL, 1, 1, NULL, NULL), 700);
	EXPECT(cu.cuStreamDestroy_v2(s), 700);
	OK(cu.cuCtxGetDevice(&device));
	OK(cu.cuDeviceGetCount(&device));
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	EXPECT(cu.cuDevicePrimaryCtxRetain(&ctx, 0), 700);
}

SIM_TEST(sim__trap_and_assert_have_their_own_codes, "tiny,devices=2")
{
	struct sim_ctx *other;

	sim_start();
	OK(launch_1d(sim_kernel("trap"), 1, 1, NULL, NULL));
	EXPECT(cu.cuCtxSynchronize(), 719);
	OK(cu.cuDevicePrimaryCtxRetain(&other, 1));
	OK(cu.cuCtxSetCurrent(other));
	OK(cu.cuCtxSynchronize());
}

SIM_TEST(sim__a_planned_sticky_error_strikes_after_the_launch, "tiny,sticky=cuLaunchKernel:2:710")
{
	sim_addr a;

	sim_start();
	OK(launch_1d(sim_kernel("nop"), 1, 1, NULL, NULL));
	OK(cu.cuCtxSynchronize());
	OK(launch_1d(sim_kernel("nop"), 1, 1, NULL, NULL));
	EXPECT(cu.cuCtxSynchronize(), 710);
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 710);
}

SIM_TEST(sim__the_legacy_stream_waits_for_blocking_streams_and_they_for_it, "tiny")
{
	struct sim_stream *s;
	float value = 1, two = 2, out = 0;
	int n = 1, ms = 30;
	sim_addr a;

	sim_start();
	a = alloc_floats(1);
	OK(cu.cuStreamCreate(&s, 0));
	OK(launch_1d(sim_kernel("spin"), 1, 1, s, (void *[]){&ms}));
	OK(launch_1d(sim_kernel("fill"), 1, 1, s, (void *[]){&a, &value, &n}));
	OK(launch_1d(sim_kernel("scale"), 1, 1, NULL, (void *[]){&a, &two, &n}));
	OK(launch_1d(sim_kernel("spin"), 1, 1, NULL, (void *[]){&ms}));
	OK(launch_1d(sim_kernel("scale"), 1, 1, s, (void *[]){&a, &two, &n}));
	OK(cu.cuMemcpyDtoH_v2(&out, a, sizeof(out)));
	CHECK(out == 4);
}

SIM_TEST(sim__an_event_orders_two_streams, "tiny")
{
	struct sim_stream *s, *t;
	struct sim_event *e;
	float value = 3, two = 2, out = 0;
	int n = 1;
	sim_addr a;

	sim_start();
	a = alloc_floats(1);
	OK(cu.cuStreamCreate(&s, 1));
	OK(cu.cuStreamCreateWithPriority(&t, 1, -5));
	OK(cu.cuEventCreate(&e, 2));
	OK(launch_1d(sim_kernel("spin"), 1, 1, s, (void *[]){&(int){30}}));
	OK(launch_1d(sim_kernel("fill"), 1, 1, s, (void *[]){&a, &value, &n}));
	OK(cu.cuEventRecord(e, s));
	OK(cu.cuStreamWaitEvent(t, e, 0));
	OK(launch_1d(sim_kernel("scale"), 1, 1, t, (void *[]){&a, &two, &n}));
	OK(cu.cuMemcpyDtoHAsync_v2(&out, a, sizeof(out), t));
	CHECK(out == 6);
}

SIM_TEST(sim__more_launches_than_the_queue_holds_all_run, "tiny")
{
	float one = 1, out = 0, zero = 0;
	sim_addr a, b;
	int n = 1;

	sim_start();
	a = alloc_floats(1);
	b = alloc_floats(1);
	OK(launch_1d(sim_kernel("fill"), 1, 1, NULL, (void *[]){&a, &zero, &n}));
	OK(launch_1d(sim_kernel("fill"), 1, 1, NULL, (void *[]){&b, &one, &n}));
	for (int i = 0; i < 5000; i++)
		OK(launch_1d(sim_kernel("saxpy"), 1, 1, NULL, (void *[]){&a, &b, &one, &n}));
	OK(cu.cuMemcpyDtoH_v2(&out, a, sizeof(out)));
	CHECK(out == 5000);
}

SIM_TEST(sim__the_source_of_an_async_copy_may_change_at_once, "tiny")
{
	struct sim_stream *s;
	float in = 7, out = 0;
	sim_addr a;

	sim_start();
	a = alloc_floats(1);
	OK(cu.cuStreamCreate(&s, 1));
	OK(launch_1d(sim_kernel("spin"), 1, 1, s, (void *[]){&(int){20}}));
	OK(cu.cuMemcpyHtoDAsync_v2(a, &in, sizeof(in), s));
	in = 8;
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&out, a, sizeof(out)));
	CHECK(out == 7);
}

static int host_fn_code;

static void host_fn(void *data)
{
	sim_addr a;

	host_fn_code = cu.cuMemAlloc_v2(&a, 16);
	*(int *)data = 1;
}

SIM_TEST(sim__a_host_function_runs_in_order_and_may_not_use_cuda, "tiny")
{
	int ran = 0;

	sim_start();
	OK(cu.cuLaunchHostFunc(NULL, host_fn, &ran));
	OK(cu.cuCtxSynchronize());
	CHECK(ran == 1 && host_fn_code == 800);
}

static int (*launch_ptsz)(struct sim_func *, unsigned int, unsigned int, unsigned int, unsigned int,
			  unsigned int, unsigned int, unsigned int, struct sim_stream *, void **,
			  void **);
static struct sim_ctx *shared_ctx;

static void *thread_work(void *arg)
{
	int (*sync_ptsz)(struct sim_stream *);
	void *found = sim_symbol("cuStreamSynchronize_ptsz");
	float one = 1;
	int n = 1;
	sim_addr b;

	memcpy(&sync_ptsz, &found, sizeof(found));
	OK(cu.cuCtxSetCurrent(shared_ctx));
	b = alloc_floats(1);
	OK(cu.cuMemsetD32_v2(b, 0, 1));
	for (int i = 0; i < 200; i++)
		OK(launch_ptsz(arg, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&b, &one, &n}, NULL));
	OK(sync_ptsz(NULL));
	OK(cu.cuMemFree_v2(b));
	return NULL;
}

SIM_TEST(sim__threads_have_default_streams_of_their_own, "tiny")
{
	void *found = sim_symbol("cuLaunchKernel_ptsz");
	struct sim_func *f;
	pthread_t threads[4];

	memcpy(&launch_ptsz, &found, sizeof(found));
	shared_ctx = sim_start();
	f = sim_kernel("fill");
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, thread_work, f));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	OK(cu.cuCtxSynchronize());
}

SIM_TEST(sim__memory_is_counted_and_too_much_is_2, "tiny")
{
	size_t before, after, total;
	sim_addr a, b;

	sim_start();
	OK(cu.cuMemGetInfo_v2(&before, &total));
	CHECK(total == 64 << 20);
	OK(cu.cuMemAlloc_v2(&a, 10 << 20));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(before - after == 10 << 20);
	EXPECT(cu.cuMemAlloc_v2(&b, 60 << 20), 2);
	EXPECT(cu.cuMemAlloc_v2(&b, 0), 1);
	EXPECT(cu.cuMemFree_v2(a + 16), 1);
	OK(cu.cuMemFree_v2(a));
	EXPECT(cu.cuMemFree_v2(a), 1);
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(before == after);
}

SIM_TEST(sim__copies_outside_an_allocation_are_1, "tiny")
{
	char buffer[64] = {0};
	sim_addr a;

	sim_start();
	OK(cu.cuMemAlloc_v2(&a, 32));
	EXPECT(cu.cuMemcpyHtoD_v2(a, buffer, 64), 1);
	CHECK(strstr(sim_said, "Copy is larger than memobj size, for destination operand"));
	EXPECT(cu.cuMemcpyDtoH_v2(buffer, 0x1234, 16), 1);
	EXPECT(cu.cuMemsetD32_v2(a + 1, 0, 1), 1);
	EXPECT(cu.cuMemsetD8_v2(a, 0, 33), 1);
	OK(cu.cuMemcpyHtoD_v2(a, buffer, 0));
}

SIM_TEST(sim__copies_of_two_and_three_dimensions_keep_their_pitch, "tiny")
{
	unsigned char in[2][3][8], out[2][2][2] = {0};
	struct sim_copy3d c = { .src_x = 1, .src_y = 1, .src_type = 2, .src_pitch = 8,
			       .src_height = 3,
			       .dst_type = 1,
			       .dst_host = out,
			       .dst_pitch = 2,
			       .dst_height = 2,
			       .width = 2,
			       .height = 2,
			       .depth = 2};

	sim_start();
	for (size_t i = 0; i < sizeof(in); i++)
		(&in[0][0][0])[i] = (unsigned char)i;
	OK(cu.cuMemAlloc_v2(&c.src_device, sizeof(in)));
	OK(cu.cuMemcpyHtoD_v2(c.src_device, in, sizeof(in)));
	OK(cu.cuMemcpy3D_v2(&c));
	CHECK(out[0][0][0] == in[0][1][1] && out[1][1][1] == in[1][2][2]);
	c.src_type = 3;
	EXPECT(cu.cuMemcpy3D_v2(&c), 801);
}

SIM_TEST(sim__pinned_managed_and_async_memory_work, "tiny")
{
	sim_addr managed, pooled;
	struct sim_stream *s;
	unsigned int type;
	void *pinned, *pool;
	char own[64];

	sim_start();
	OK(cu.cuStreamCreate(&s, 0));
	OK(cu.cuMemHostAlloc(&pinned, 100, 0));
	OK(cu.cuMemAllocManaged(&managed, 100, 1));
	OK(cu.cuMemAllocAsync(&pooled, 100, s));
	OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cu.cuMemFreeAsync(pooled, s));
	OK(cu.cuMemAllocFromPoolAsync(&pooled, 100, pool, s));
	OK(cu.cuPointerGetAttribute(&type, 2, (sim_addr)(uintptr_t)pinned));
	CHECK(type == 1);
	OK(cu.cuPointerGetAttribute(&type, 8, managed));
	CHECK(type == 1);
	EXPECT(cu.cuPointerGetAttribute(&type, 2, 0x1234), 1);
	memcpy(pinned, "through the GPU", 16);
	OK(cu.cuMemcpyHtoDAsync_v2(pooled, pinned, 16, s));
	OK(cu.cuMemcpyAsync(managed, pooled, 16, s));
	OK(cu.cuStreamSynchronize(s));
	CHECK(!strcmp((char *)(uintptr_t)managed, "through the GPU"));
	OK(cu.cuMemHostRegister_v2(own, sizeof(own), 0));
	EXPECT(cu.cuMemHostRegister_v2(own, sizeof(own), 0), 712);
	OK(cu.cuMemHostUnregister(own));
	EXPECT(cu.cuMemHostUnregister(own), 713);
	OK(cu.cuMemFree_v2(managed));
	OK(cu.cuMemFreeHost(pinned));
}

SIM_TEST(sim__mapped_memory_can_grow_in_place, "tiny")
{
	struct sim_alloc_prop prop = {.type = 1, .location = {1, 0}};
	struct sim_access access = {{1, 0}, 3};
	unsigned long long first, second;
	size_t unit, before, after, total;
	unsigned int out = 0;
	sim_addr at;

	sim_start();
	OK(cu.cuMemGetAllocationGranularity(&unit, &prop, 0));
	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuMemAddressReserve(&at, 8 * unit, 0, 0, 0));
	OK(cu.cuMemCreate(&first, unit, &prop, 0));
	OK(cu.cuMemCreate(&second, unit, &prop, 0));
	OK(cu.cuMemMap(at, unit, 0, first, 0));
	EXPECT(cu.cuMemsetD8_v2(at, 0, 4), 1);
	OK(cu.cuMemMap(at + unit, unit, 0, second, 0));
	OK(cu.cuMemSetAccess(at, 2 * unit, &access, 1));
	OK(cu.cuMemsetD8_v2(at + unit - 8, 9, 16));
	OK(cu.cuMemcpyDtoH_v2(&out, at + unit, 4));
	CHECK(out == 0x09090909);
	EXPECT(cu.cuMemCreate(&first, 100 * unit, &prop, 0), 2);
	OK(cu.cuMemRelease(first));
	OK(cu.cuMemRelease(second));
	OK(cu.cuMemUnmap(at, 2 * unit));
	OK(cu.cuMemAddressFree(at, 8 * unit));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(before == after);
}

SIM_TEST(sim__the_log_can_be_read_later, "tiny")
{
	unsigned int iterator;
	char buffer[4096];
	size_t size = sizeof(buffer);
	sim_addr a;

	sim_start();
	OK(cu.cuLogsCurrent(&iterator, 0));
	EXPECT(cu.cuMemAlloc_v2(&a, 0), 1);
	OK(cu.cuLogsDumpToMemory(&iterator, buffer, &size, 0));
	CHECK(strstr(buffer, "][CUDA][E] Requested 0 byte allocation\n"));
	CHECK(strstr(buffer, "Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuMemAlloc_v2\n"));
	CHECK(size == strlen(buffer));
	size = sizeof(buffer);
	OK(cu.cuLogsDumpToMemory(&iterator, buffer, &size, 0));
	CHECK(size == 0);
}

SIM_TEST(sim__core_dump_settings_are_remembered, "tiny")
{
	char file[64] = "dump.%p", back[1024] = "";
	bool on = true, got = false;
	size_t size = sizeof(on);

	sim_start();
	OK(cu.cuCoredumpSetAttributeGlobal(1, &on, &size));
	OK(cu.cuCoredumpGetAttributeGlobal(1, &got, &size));
	CHECK(got);
	size = sizeof(file);
	OK(cu.cuCoredumpSetAttributeGlobal(5, file, &size));
	size = sizeof(back);
	OK(cu.cuCoredumpGetAttribute(5, back, &size));
	CHECK(!strcmp(back, file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim__code_that_does_not_fit_the_gpu_is_refused),
		cmocka_unit_test(sim__a_broken_image_is_200_and_an_unknown_name_500),
		cmocka_unit_test(sim__a_library_reports_its_image_when_a_kernel_is_asked_for),
		cmocka_unit_test(sim__each_grid_and_block_limit_is_1_with_the_drivers_words),
		cmocka_unit_test(sim__launch_bounds_give_1_and_registers_701),
		cmocka_unit_test(sim__shared_memory_needs_an_opt_in_above_48_kib),
		cmocka_unit_test(sim__a_cooperative_grid_must_fit_the_gpu_at_once),
		cmocka_unit_test(sim__a_cluster_that_is_not_allowed_is_912),
		cmocka_unit_test(sim__a_gpu_without_clusters_refuses_them),
		cmocka_unit_test(sim__missing_parameters_and_stale_handles_are_noticed),
		cmocka_unit_test(sim__kernels_really_compute),
		cmocka_unit_test(sim__a_grid_that_is_too_small_leaves_elements_untouched),
		cmocka_unit_test(sim__parameters_come_from_a_list_or_from_a_buffer),
		cmocka_unit_test(sim__launches_are_asynchronous),
		cmocka_unit_test(sim__a_wrong_pointer_is_a_sticky_700),
		cmocka_unit_test(sim__trap_and_assert_have_their_own_codes),
		cmocka_unit_test(sim__a_planned_sticky_error_strikes_after_the_launch),
		cmocka_unit_test(sim__the_legacy_stream_waits_for_blocking_streams_and_they_for_it),
		cmocka_unit_test(sim__an_event_orders_two_streams),
		cmocka_unit_test(sim__more_launches_than_the_queue_holds_all_run),
		cmocka_unit_test(sim__the_source_of_an_async_copy_may_change_at_once),
		cmocka_unit_test(sim__a_host_function_runs_in_order_and_may_not_use_cuda),
		cmocka_unit_test(sim__threads_have_default_streams_of_their_own),
		cmocka_unit_test(sim__memory_is_counted_and_too_much_is_2),
		cmocka_unit_test(sim__copies_outside_an_allocation_are_1),
		cmocka_unit_test(sim__copies_of_two_and_three_dimensions_keep_their_pitch),
		cmocka_unit_test(sim__pinned_managed_and_async_memory_work),
		cmocka_unit_test(sim__mapped_memory_can_grow_in_place),
		cmocka_unit_test(sim__the_log_can_be_read_later),
		cmocka_unit_test(sim__core_dump_settings_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
