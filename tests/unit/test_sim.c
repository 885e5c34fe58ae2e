/* SPDX-License-Identifier: Apache-2.0
 * Tests of the simulated GPU: settings, devices, contexts, lookups, memory, fork and exit. */
#include "sim_child.h"

static void init_is_refused(void)
{
	int version;

	EXPECT(cu.cuInit(0), 999);
	EXPECT(cu.cuDriverGetVersion(&version), 999);
	EXPECT(cu.cuDeviceGetCount(&version), 3);
}

static void sim__a_wrong_setting_is_refused_with_999(void **state)
{
	static const char *const wrong[] = { "", "gtx9999", "tiny,color=red", "tiny,memory=much",
					    "tiny,devices=-1",
					    "tiny,fail=cuInit:0:2",
					    "tiny,fail=cuInit:1",
					    "tiny,nodevice=1",
					    "tiny,"};

	(void)state;
	assert_int_equal(in_child(NULL, init_is_refused), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(in_child(wrong[i], init_is_refused), 0);
}

SIM_TEST(sim__the_h200_has_its_name_memory_and_limits, "h200")
{
	size_t total, left;
	char name[64];
	int value;

	sim_start();
	OK(cu.cuDeviceGetName(name, sizeof(name), 0));
	CHECK(!strcmp(name, "NVIDIA H200"));
	OK(cu.cuDeviceTotalMem_v2(&total, 0));
	CHECK(total == 150109880320u);
	OK(cu.cuMemGetInfo_v2(&left, &total));
	CHECK(left < total && total - left > (size_t)500 << 20);
	OK(cu.cuDeviceGetAttribute(&value, 75, 0));
	CHECK(value == 9);
	OK(cu.cuDeviceGetAttribute(&value, 97, 0));
	CHECK(value == 232448);
	EXPECT(cu.cuDeviceGetAttribute(&value, 9999, 0), 1);
}

SIM_TEST(sim__a_card_larger_than_the_machine_can_be_used_up, "h200")
{
	sim_addr first, second;
	unsigned int word = 0;

	sim_start();
	OK(cu.cuMemAlloc_v2(&first, (size_t)100 << 30));
	OK(cu.cuMemsetD32_v2(first + ((size_t)99 << 30), 7, 1));
	OK(cu.cuMemcpyDtoH_v2(&word, first + ((size_t)99 << 30), 4));
	CHECK(word == 7);
	EXPECT(cu.cuMemAlloc_v2(&second, (size_t)100 << 30), 2);
	OK(cu.cuMemFree_v2(first));
	OK(cu.cuMemAlloc_v2(&second, (size_t)100 << 30));
}

SIM_TEST(sim__driver_version_decides_functions_and_ptx, "tiny,driver=12080")
{
	struct sim_module *m;
	int version, status;
	void *found;

	OK(cu.cuInit(0));
	OK(cu.cuDriverGetVersion(&version));
	CHECK(version == 12080);
	OK(cu.cuGetProcAddress_v2("cuLogsCurrent", &found, 12080, 0, &status));
	CHECK(!found && status == 1);
	OK(cu.cuCtxCreate_v2(&(struct sim_ctx *){NULL}, 0, 0));
	OK(cu.cuModuleLoadData(&m, "cuwhy-sim-module 1\ntarget compute_80 ptx 8.7\n"));
	EXPECT(cu.cuModuleLoadData(&m, "cuwhy-sim-module 1\ntarget compute_80 ptx 8.8\n"), 222);
}

static int visible_count;
static int visible_init;

static void count_is_as_planned(void)
{
	int count = -1;

	EXPECT(cu.cuInit(0), visible_init);
	EXPECT(cu.cuDeviceGetCount(&count), visible_init ? 3 : 0);
	CHECK(visible_init || count == visible_count);
}

static void expect_visible(const char *setting, const char *list, int init, int count)
{
	if (list)
		setenv("CUDA_VISIBLE_DEVICES", list, 1);
	else
		unsetenv("CUDA_VISIBLE_DEVICES");
	visible_init = init;
	visible_count = count;
	assert_int_equal(in_child(setting, count_is_as_planned), 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

static void sim__visible_devices_are_read_as_the_driver_reads_them(void **state)
{
	(void)state;
	expect_visible("tiny,devices=4", NULL, 0, 4);
	expect_visible("tiny,devices=4", "2,0", 0, 2);
	expect_visible("tiny,devices=4", "0,7,1", 0, 1);
	expect_visible("tiny,devices=4", "1,junk", 0, 1);
	expect_visible("tiny,devices=4", "", 100, 0);
	expect_visible("tiny,devices=4", "-1", 100, 0);
	expect_visible("tiny,devices=4", "9", 100, 0);
	expect_visible("tiny,devices=4", "1,1", 101, 0);
	expect_visible("tiny,devices=4", " 3 , 2abc", 0, 2);
	expect_visible("tiny,nodevice", NULL, 100, 0);
	expect_visible("tiny,devices=0", NULL, 100, 0);
}

static void uuid_to_text(const struct sim_uuid *u, char *text, size_t size)
{
	const unsigned char *b = u->bytes;

	snprintf(text, size, "GPU-%02x%02x%02x%02x-%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5]);
}

static char wanted_uuid[40];
static int uuid_pipe[2];

static void tell_uuid_of_device_2(void)
{
	struct sim_uuid uuid;
	char text[40];

	OK(cu.cuInit(0));
	OK(cu.cuDeviceGetUuid_v2(&uuid, 2));
	uuid_to_text(&uuid, text, sizeof(text));
	CHECK(write(uuid_pipe[1], text, sizeof(text)) == (ssize_t)sizeof(text));
}

static void device_0_has_the_wanted_uuid(void)
{
	struct sim_uuid uuid;
	char text[40];
	int count;

	OK(cu.cuInit(0));
	OK(cu.cuDeviceGetCount(&count));
	OK(cu.cuDeviceGetUuid_v2(&uuid, 0));
	uuid_to_text(&uuid, text, sizeof(text));
	CHECK(count == 1 && !strcmp(text, wanted_uuid));
}

static void sim__a_prefix_of_a_uuid_selects_a_device(void **state)
{
	(void)state;
	assert_int_equal(pipe(uuid_pipe), 0);
	assert_int_equal(in_child("tiny,devices=4", tell_uuid_of_device_2), 0);
	assert_int_equal(read(uuid_pipe[0], wanted_uuid, sizeof(wanted_uuid)), sizeof(wanted_uuid));
	setenv("CUDA_VISIBLE_DEVICES", wanted_uuid, 1);
	assert_int_equal(in_child("tiny,devices=4", device_0_has_the_wanted_uuid), 0);
	unsetenv("CUDA_VISIBLE_DEVICES");
}

SIM_TEST(sim__an_ordinal_out_of_range_is_101_and_says_so, "tiny")
{
	int device;

	OK(cu.cuInit(0));
	OK(cu.cuLogsRegisterCallback(hear, NULL, NULL));
	EXPECT(cu.cuDeviceGet(&device, 7), 101);
	CHECK(strstr(sim_said, "Parameter ordinal must be between 0 and 1\n"));
	CHECK(strstr(sim_said, "Returning 101 (CUDA_ERROR_INVALID_DEVICE) from cuDeviceGet\n"));
}

SIM_TEST(sim__calls_before_init_return_3_and_without_context_201, "tiny")
{
	struct sim_ctx *ctx;
	sim_addr a;
	int n;

	EXPECT(cu.cuDeviceGetCount(&n), 3);
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 3);
	EXPECT(cu.cuInit(1), 1);
	OK(cu.cuInit(0));
	OK(cu.cuInit(0));
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 201);
	EXPECT(cu.cuCtxSynchronize(), 201);
	EXPECT(cu.cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), 201);
	OK(cu.cuCtxCreate_v2(&ctx, 0, 0));
	OK(cu.cuMemAlloc_v2(&a, 16));
	OK(cu.cuCtxDestroy_v2(ctx));
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 201);
}

SIM_TEST(sim__contexts_are_a_stack_and_primary_ones_are_counted, "tiny")
{
	struct sim_ctx *primary, *again, *own, *got;
	unsigned int flags;
	sim_addr a;
	int active;

	OK(cu.cuInit(0));
	OK(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active);
	OK(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cu.cuDevicePrimaryCtxRetain(&again, 0));
	CHECK(primary == again);
	OK(cu.cuCtxPushCurrent_v2(primary));
	OK(cu.cuCtxCreate_v4(&own, NULL, 0, 0));
	OK(cu.cuCtxGetCurrent(&got));
	CHECK(got == own);
	OK(cu.cuCtxPopCurrent_v2(&got));
	CHECK(got == own);
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	OK(cu.cuMemAlloc_v2(&a, 16));
	OK(cu.cuDevicePrimaryCtxRelease_v2(0));
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 709);
	EXPECT(cu.cuDevicePrimaryCtxRelease_v2(0), 201);
}

SIM_TEST(sim__the_memory_of_a_context_goes_with_it, "tiny")
{
	struct sim_stream *s;
	struct sim_ctx *ctx;
	size_t left, total;
	sim_addr a;

	OK(cu.cuInit(0));
	for (int i = 0; i < 300; i++) {
		OK(cu.cuCtxCreate_v2(&ctx, 0, 0));
		OK(cu.cuStreamCreate(&s, 0));
		OK(cu.cuMemAlloc_v2(&a, 40 << 20));
		OK(cu.cuMemsetD8Async(a, 0, 16, i % 2 ? s : (struct sim_stream *)2));
		OK(cu.cuMemGetInfo_v2(&left, &total));
		CHECK(total - left == 42 << 20);
		OK(cu.cuCtxDestroy_v2(ctx));
	}
}

SIM_TEST(sim__a_forked_child_gets_3_for_everything, "tiny")
{
	sim_addr a;
	int status, n;

	sim_start();
	OK(launch_1d(sim_kernel("spin"), 1, 1, NULL, (void *[]){&(int){20}}));
	if (fork() == 0) {
		EXPECT(cu.cuInit(0), 3);
		EXPECT(cu.cuDeviceGetCount(&n), 3);
		EXPECT(cu.cuMemAlloc_v2(&a, 16), 3);
		EXPECT(cu.cuCtxSynchronize(), 3);
		OK(cu.cuDriverGetVersion(&n));
		_exit(0);
	}
	wait(&status);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	OK(cu.cuMemAlloc_v2(&a, 16));
}

SIM_TEST(sim__a_child_forked_before_init_can_use_the_gpu, "tiny")
{
	int status;

	if (fork() == 0) {
		sim_start();
		_exit(0);
	}
	wait(&status);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

SIM_TEST(sim__a_program_may_end_while_kernels_run, "tiny")
{
	sim_start();
	for (int i = 0; i < 4; i++) {
		struct sim_stream *s;

		OK(cu.cuStreamCreate(&s, 1));
		OK(launch_1d(sim_kernel("spin"), 1, 1, s, (void *[]){&(int){3000}}));
	}
}

static int calls_at_exit_ok;

static void at_exit_after_the_driver(void)
{
	calls_at_exit_ok = cu.cuCtxSynchronize();
}

SIM_TEST(sim__the_library_stays_loaded_while_its_workers_run, "tiny")
{
	sim_start();
	OK(launch_1d(sim_kernel("spin"), 1, 1, NULL, (void *[]){&(int){50}}));
	dlclose(sim_lib);
	at_exit_after_the_driver();
	CHECK(calls_at_exit_ok == 0);
}

static void *found(const char *name, int version, uint64_t flags)
{
	void *pointer = (void *)1;
	int status = -1;

	OK(cu.cuGetProcAddress_v2(name, &pointer, version, flags, &status));
	CHECK(pointer ? status == 0 : status != 0);
	return pointer;
}

SIM_TEST(sim__get_proc_address_picks_the_form_by_version_and_flags, "tiny")
{
	CHECK(found("cuMemAlloc", 12000, 0) == sim_symbol("cuMemAlloc_v2"));
	CHECK(found("cuStreamBeginCapture", 10000, 0) == sim_symbol("cuStreamBeginCapture"));
	CHECK(found("cuStreamBeginCapture", 10010, 0) == sim_symbol("cuStreamBeginCapture_v2"));
	CHECK(found("cuGetProcAddress", 11030, 0) == sim_symbol("cuGetProcAddress"));
	CHECK(found("cuGetProcAddress", 12000, 0) == sim_symbol("cuGetProcAddress_v2"));
	CHECK(found("cuCtxSynchronize", 12000, 0) == sim_symbol("cuCtxSynchronize"));
	CHECK(found("cuCtxSynchronize", 13000, 0) == sim_symbol("cuCtxSynchronize_v2"));
	CHECK(found("cuLaunchKernel", 12000, 2) == sim_symbol("cuLaunchKernel_ptsz"));
	CHECK(found("cuMemcpyHtoD", 12000, 2) == sim_symbol("cuMemcpyHtoD_v2_ptds"));
	CHECK(found("cuMemAlloc", 12000, 2) == sim_symbol("cuMemAlloc_v2"));
}

SIM_TEST(sim__get_proc_address_tells_unknown_from_too_old, "tiny")
{
	void *pointer = (void *)1;
	int status = -1;

	OK(cu.cuGetProcAddress_v2("", &pointer, 0, 0, &status));
	CHECK(!pointer && status == 1);
	OK(cu.cuGetProcAddress_v2("cuNoSuchThing", &pointer, 12000, 0, &status));
	CHECK(!pointer && status == 1);
	OK(cu.cuGetProcAddress_v2("cuLaunchKernelEx", &pointer, 11000, 0, &status));
	CHECK(!pointer && status == 2);
	EXPECT(cu.cuGetProcAddress_v2("cuMemAlloc", &pointer, 99999, 0, &status), 1);
	EXPECT(cu.cuGetProcAddress("cuNoSuchThing", &pointer, 12000, 0), 500);
}

static void ask_for_export_table(void)
{
	const void *table = &table;

	OK(cu.cuInit(0));
	EXPECT(cu.cuGetExportTable(&table, &(struct sim_uuid){{0}}), 500);
	CHECK(!table);
}

static void sim__calls_of_a_runtime_in_a_library_fail(void **state)
{
	(void)state;
	assert_int_equal(in_child("tiny", ask_for_export_table), 0);
}

SIM_TEST(sim__errors_have_names_and_texts, "tiny")
{
	const char *text;

	OK(cu.cuGetErrorName(701, &text));
	CHECK(!strcmp(text, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"));
	OK(cu.cuGetErrorString(1, &text));
	CHECK(!strcmp(text, "invalid argument"));
	EXPECT(cu.cuGetErrorName(98765, &text), 1);
	CHECK(!text);
}

SIM_TEST(sim__the_nth_call_fails_as_planned,
	 "tiny,fail=cuMemAlloc:2:2,fail=cuStreamCreate:1:304")
{
	struct sim_stream *s;
	sim_addr a;

	sim_start();
	OK(cu.cuMemAlloc_v2(&a, 16));
	EXPECT(cu.cuMemAlloc_v2(&a, 16), 2);
	OK(cu.cuMemAlloc_v2(&a, 16));
	EXPECT(cu.cuStreamCreate(&s, 0), 304);
	OK(cu.cuStreamCreate(&s, 0));
}

SIM_TEST(sim__init_can_be_planned_to_fail, "tiny,fail=cuInit:1:802")
{
	EXPECT(cu.cuInit(0), 802);
	OK(cu.cuInit(0));
}

SIM_TEST(sim__hidden_memory_is_missing_only_when_it_is_needed, "tiny,memory=100M,hidden=60M")
{
	size_t left, total;
	sim_addr a;

	sim_start();
	OK(cu.cuMemGetInfo_v2(&left, &total));
	CHECK(total == 100 << 20 && left == 98 << 20);
	EXPECT(cu.cuMemAlloc_v2(&a, 50 << 20), 2);
	OK(cu.cuMemAlloc_v2(&a, 30 << 20));
}

SIM_TEST(sim__taken_memory_is_seen_as_not_free, "tiny,memory=100M,taken=60M")
{
	size_t left, total;

	sim_start();
	OK(cu.cuMemGetInfo_v2(&left, &total));
	CHECK(total == 100 << 20 && left == 38 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim__a_wrong_setting_is_refused_with_999),
		cmocka_unit_test(sim__the_h200_has_its_name_memory_and_limits),
		cmocka_unit_test(sim__a_card_larger_than_the_machine_can_be_used_up),
		cmocka_unit_test(sim__driver_version_decides_functions_and_ptx),
		cmocka_unit_test(sim__visible_devices_are_read_as_the_driver_reads_them),
		cmocka_unit_test(sim__a_prefix_of_a_uuid_selects_a_device),
		cmocka_unit_test(sim__an_ordinal_out_of_range_is_101_and_says_so),
		cmocka_unit_test(sim__calls_before_init_return_3_and_without_context_201),
		cmocka_unit_test(sim__contexts_are_a_stack_and_primary_ones_are_counted),
		cmocka_unit_test(sim__the_memory_of_a_context_goes_with_it),
		cmocka_unit_test(sim__a_forked_child_gets_3_for_everything),
		cmocka_unit_test(sim__a_child_forked_before_init_can_use_the_gpu),
		cmocka_unit_test(sim__a_program_may_end_while_kernels_run),
		cmocka_unit_test(sim__the_library_stays_loaded_while_its_workers_run),
		cmocka_unit_test(sim__get_proc_address_picks_the_form_by_version_and_flags),
		cmocka_unit_test(sim__get_proc_address_tells_unknown_from_too_old),
		cmocka_unit_test(sim__calls_of_a_runtime_in_a_library_fail),
		cmocka_unit_test(sim__errors_have_names_and_texts),
		cmocka_unit_test(sim__the_nth_call_fails_as_planned),
		cmocka_unit_test(sim__init_can_be_planned_to_fail),
		cmocka_unit_test(sim__hidden_memory_is_missing_only_when_it_is_needed),
		cmocka_unit_test(sim__taken_memory_is_seen_as_not_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
