/* SPDX-License-Identifier: Apache-2.0
 * Tests of the simulated GPU with real code: which of it is chosen, its limits, its variables, and what its kernels make unknown. */
#include "sim_child.h"

static const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
			  ".global .align 4 .u32 counter;\n"
			  ".visible .entry scale(.param .u64 p, .param .f32 f)\n.maxntid 256, 1, 1\n{ ret; }\n";

/* What a compiler puts into a program: a wrapper, and behind it a fat binary, here with one entry of PTX. */
struct program {
	uint32_t magic, version;
	const void *data;
	void *more;
	_Alignas(8) unsigned char fatbin[512];
};

static void program_make(struct program *p, uint32_t arch, int isa)
{
	uint64_t text = (sizeof(ptx) + 7) / 8 * 8, all = 64 + text, flags = 0x11;
	uint16_t kind = 1, header = 16, version = 1, minor = (uint16_t)(isa % 10), major = (uint16_t)(isa / 10);
	uint32_t entry = 64, magic = 0xba55ed50u;

	*p = (struct program){.magic = 0x466243b1, .version = 1, .data = p->fatbin};
	memcpy(p->fatbin, &magic, 4);
	memcpy(p->fatbin + 4, &version, 2);
	memcpy(p->fatbin + 6, &header, 2);
	memcpy(p->fatbin + 8, &all, 8);
	memcpy(p->fatbin + 16, &kind, 2);
	memcpy(p->fatbin + 20, &entry, 4);
	memcpy(p->fatbin + 24, &text, 8);
	memcpy(p->fatbin + 40, &minor, 2);
	memcpy(p->fatbin + 42, &major, 2);
	memcpy(p->fatbin + 44, &arch, 4);
	memcpy(p->fatbin + 56, &flags, 8);
	memcpy(p->fatbin + 80, ptx, sizeof(ptx));
}

static struct sim_func *real_kernel(struct sim_module **module)
{
	struct sim_func *f;

	OK(cu.cuModuleLoadData(module, ptx));
	OK(cu.cuModuleGetFunction(&f, *module, "scale"));
	return f;
}

SIM_TEST(sim__ptx_is_checked_against_its_launch_bounds_and_parameters, "tiny")
{
	struct sim_module *module;
	size_t offset, size;
	float factor = 2;
	sim_addr at = 0;
	void *params[] = {&at, &factor};
	struct sim_func *f;

	sim_start();
	f = real_kernel(&module);
	OK(launch_1d(f, 1, 256, NULL, params));
	EXPECT(launch_1d(f, 1, 257, NULL, params), 1);
	EXPECT(launch_1d(f, 1, 32, NULL, NULL), 1);
	OK(cu.cuFuncGetParamInfo(f, 1, &offset, &size));
	CHECK(offset == 8 && size == 4);
	EXPECT(cu.cuFuncGetParamInfo(f, 2, &offset, &size), 1);
	EXPECT(cu.cuModuleGetFunction(&f, module, "other"), 500);
	OK(cu.cuCtxSynchronize());
}

SIM_TEST(sim__a_registered_fat_binary_is_loaded, "tiny")
{
	struct sim_library *library;
	struct sim_func *kernel;
	struct program p;
	unsigned int count;

	sim_start();
	program_make(&p, 80, 80);
	OK(cu.cuLibraryLoadData(&library, &p, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernelCount(&count, library));
	CHECK(count == 1);
	OK(cu.cuLibraryGetKernel(&kernel, library, "scale"));
	program_make(&p, 90, 80);
	OK(cu.cuLibraryLoadData(&library, &p, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(cu.cuLibraryGetKernel(&kernel, library, "scale"), 209);
	program_make(&p, 80, 99);
	OK(cu.cuLibraryLoadData(&library, &p, NULL, NULL, 0, NULL, NULL, 0));
	EXPECT(cu.cuLibraryGetKernel(&kernel, library, "scale"), 222);
}

SIM_TEST(sim__code_takes_device_memory_when_it_is_first_used, "h200")
{
	size_t before, after, again, total;
	struct sim_library *library;
	struct sim_func *kernel, *f;
	struct program p;

	sim_start();
	program_make(&p, 80, 80);
	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cu.cuLibraryLoadData(&library, &p, NULL, NULL, 0, NULL, NULL, 0));
	OK(cu.cuLibraryGetKernel(&kernel, library, "scale"));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(after == before);
	OK(cu.cuKernelGetFunction(&f, kernel));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(before - after >= (size_t)92 << 20 && before - after <= (size_t)96 << 20);
	OK(cu.cuKernelGetFunction(&f, kernel));
	OK(cu.cuMemGetInfo_v2(&again, &total));
	CHECK(again == after);
}

SIM_TEST(sim__a_variable_has_one_address, "tiny")
{
	struct sim_module *module;
	sim_addr first, second;
	size_t bytes;

	sim_start();
	real_kernel(&module);
	OK(cu.cuModuleGetGlobal_v2(&first, &bytes, module, "counter"));
	OK(cu.cuModuleGetGlobal_v2(&second, NULL, module, "counter"));
	CHECK(bytes == 4 && first == second);
	EXPECT(cu.cuModuleGetGlobal_v2(&first, &bytes, module, "other"), 500);
}

static int told;

static int tell(sim_addr from, size_t bytes, int why)
{
	(void)from, (void)bytes;
	told = why;
	return false;
}

SIM_TEST(sim__a_read_of_what_a_kernel_may_have_written_is_reported, "tiny")
{
	void (*hook)(sim_unknown_fn);
	void *found;
	struct sim_module *module;
	struct sim_func *f;
	float factor = 2;
	int value = 7;
	sim_addr at;
	void *params[] = {&at, &factor};

	sim_start();
	found = sim_symbol("cuwhy_sim_on_unknown_read");
	memcpy(&hook, &found, sizeof(hook));
	hook(tell);
	f = real_kernel(&module);
	OK(cu.cuMemAlloc_v2(&at, 4096));
	OK(cu.cuMemcpyDtoH_v2(&value, at, 4));
	CHECK(told == 1);		/* never written */
	told = 0;
	value = 7;
	OK(cu.cuMemcpyHtoD_v2(at, &value, 4));
	OK(cu.cuMemcpyDtoH_v2(&value, at, 4));
	CHECK(told == 0 && value == 7);
	OK(launch_1d(f, 1, 32, NULL, params));
	OK(cu.cuMemcpyDtoH_v2(&value, at, 4));
	CHECK(told == 2);		/* a kernel has its address */
	OK(cu.cuMemsetD8_v2(at, 0, 1024));
	OK(cu.cuMemcpyHtoD_v2(at, &value, 4));
	OK(launch_1d(f, 1, 32, NULL, params));
	told = 0;
	OK(cu.cuMemcpyDtoH_v2(&value, at + 64, 4));
	CHECK(told == 2);		/* what was written in pieces is one tensor */
	told = 0;
	OK(cu.cuMemsetD8_v2(at + 1024, 0, 512));
	OK(launch_1d(f, 1, 32, NULL, params));
	OK(cu.cuMemcpyDtoH_v2(&value, at + 1024, 4));
	CHECK(told == 0);		/* this may be another one */
}

static void *hooked(const char *name)
{
	void *found = sim_symbol(name);

	CHECK(found != NULL);
	return found;
}

SIM_TEST(sim__staging_is_no_read_and_makes_nothing_known, "tiny")
{
	void (*hook)(sim_unknown_fn), (*staging)(bool);
	struct sim_module *module;
	int value = 7;
	sim_addr at;

	sim_start();
	*(void **)&hook = hooked("cuwhy_sim_on_unknown_read");
	*(void **)&staging = hooked("cuwhy_sim_staging");
	hook(tell);
	real_kernel(&module);
	OK(cu.cuMemAlloc_v2(&at, 4096));
	told = 0;
	staging(true);
	OK(cu.cuMemcpyDtoH_v2(&value, at, 4));
	OK(cu.cuMemcpyHtoD_v2(at, &value, 4));
	staging(false);
	CHECK(told == 0);
	OK(cu.cuMemcpyDtoH_v2(&value, at, 4));
	CHECK(told == 1);		/* as before */
	OK(cu.cuMemcpyHtoD_v2(at, &value, 4));
	told = 0;
	staging(true);
	OK(cu.cuMemcpyDtoH_v2(&value, at, 4));
	OK(cu.cuMemcpyHtoD_v2(at + 64, &value, 4));
	staging(false);
	OK(cu.cuMemcpyDtoH_v2(&value, at + 64, 4));
	CHECK(told == 0);		/* what was known stays so */
}

SIM_TEST(sim__memory_given_anew_is_not_read, "tiny")
{
	void (*hook)(sim_unknown_fn), (*given_anew)(sim_addr, size_t);
	struct sim_module *module;
	int value[2] = {7, 8};
	sim_addr at;

	sim_start();
	*(void **)&hook = hooked("cuwhy_sim_on_unknown_read");
	*(void **)&given_anew = hooked("cuwhy_sim_given_anew");
	hook(tell);
	real_kernel(&module);
	OK(cu.cuMemAlloc_v2(&at, 4096));
	OK(cu.cuMemcpyHtoD_v2(at, value, 8));
	told = 0;
	given_anew(at, 512);
	OK(cu.cuMemcpyDtoH_v2(value, at, 8));
	CHECK(told == 1 && value[0] == 0 && value[1] == 0);
	value[0] = 9;
	OK(cu.cuMemcpyHtoD_v2(at, value, 4));
	told = value[0] = 0;
	OK(cu.cuMemcpyDtoH_v2(value, at, 4));
	CHECK(told == 0 && value[0] == 9);
	OK(cu.cuMemcpyDtoH_v2(value, at, 8));
	CHECK(told == 1 && value[0] == 9);	/* what the host wrote next to it */
}

SIM_TEST(sim__a_large_copy_leaves_no_contents, "tiny,contents=64K")
{
	static unsigned char bytes[1 << 17];
	struct sim_module *module;
	sim_addr at;

	sim_start();
	real_kernel(&module);
	OK(cu.cuMemAlloc_v2(&at, sizeof(bytes)));
	OK(cu.cuMemsetD8_v2(at, 5, 1000));
	memset(bytes, 9, sizeof(bytes));
	OK(cu.cuMemcpyHtoD_v2(at, bytes, sizeof(bytes)));
	OK(cu.cuMemcpyDtoH_v2(bytes, at, sizeof(bytes)));
	CHECK(bytes[0] == 0 && bytes[999] == 0 && bytes[sizeof(bytes) - 1] == 0);
}

SIM_TEST(sim__a_pool_keeps_memory_up_to_its_threshold, "h200")
{
	uint64_t all = UINT64_MAX, none = 0, reserved;
	sim_addr at;
	void *pool;

	sim_start();
	OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cu.cuMemPoolSetAttribute(pool, 4, &all));
	OK(cu.cuMemAllocAsync(&at, (size_t)100 << 20, NULL));
	OK(cu.cuMemFreeAsync(at, NULL));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemPoolGetAttribute(pool, 5, &reserved));
	CHECK(reserved == (uint64_t)128 << 20);
	OK(cu.cuMemPoolSetAttribute(pool, 4, &none));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemPoolGetAttribute(pool, 5, &reserved));
	CHECK(reserved == 0);
}

SIM_TEST(sim__memory_of_another_process_has_its_contents, "tiny")
{
	struct sim_ipc handle;
	int fd[2], value = 0, status = -1;
	pid_t child;

	OK(pipe(fd));
	child = fork();
	if (!child) {
		sim_addr at;

		CHECK(read(fd[0], &handle, sizeof(handle)) == sizeof(handle));
		sim_start();
		OK(cu.cuIpcOpenMemHandle_v2(&at, handle, 1));
		OK(cu.cuMemcpyDtoH_v2(&value, at + 8, 4));
		CHECK(value == 42);
		OK(cu.cuMemsetD32_v2(at + 8, 43, 1));
		OK(cu.cuIpcCloseMemHandle(at));
		_exit(0);
	} else {
		sim_addr at, small;

		sim_start();
		OK(cu.cuMemAlloc_v2(&small, 512));
		OK(cu.cuMemAlloc_v2(&at, 512));
		OK(cu.cuMemsetD32_v2(at + 8, 42, 1));
		OK(cu.cuIpcGetMemHandle(&handle, at));
		CHECK(write(fd[1], &handle, sizeof(handle)) == sizeof(handle));
		CHECK(waitpid(child, &status, 0) == child && status == 0);
		OK(cu.cuMemcpyDtoH_v2(&value, at + 8, 4));
		CHECK(value == 43);
		EXPECT(cu.cuIpcOpenMemHandle_v2(&at, handle, 1), 201);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim__ptx_is_checked_against_its_launch_bounds_and_parameters),
		cmocka_unit_test(sim__a_registered_fat_binary_is_loaded),
		cmocka_unit_test(sim__code_takes_device_memory_when_it_is_first_used),
		cmocka_unit_test(sim__a_variable_has_one_address),
		cmocka_unit_test(sim__a_read_of_what_a_kernel_may_have_written_is_reported),
		cmocka_unit_test(sim__staging_is_no_read_and_makes_nothing_known),
		cmocka_unit_test(sim__memory_given_anew_is_not_read),
		cmocka_unit_test(sim__a_large_copy_leaves_no_contents),
		cmocka_unit_test(sim__a_pool_keeps_memory_up_to_its_threshold),
		cmocka_unit_test(sim__memory_of_another_process_has_its_contents),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
