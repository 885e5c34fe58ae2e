/* SPDX-License-Identifier: Apache-2.0
 * Tests of the simulated GPU: processes that share a card. */
#include "sim_child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define MIB ((size_t)1 << 20)
#define SPEC "tiny,memory=256M"

static char path[64];

static int folder_make(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/cuwhy-cards-XXXXXX");
	if (!mkdtemp(path))
		return -1;
	strcat(path, "/cards");
	setenv("CUWHY_SIM_CARDS", path, 1);
	return 0;
}

static int folder_remove(void **state)
{
	(void)state;
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUWHY_SIM_CARDS");
	return 0;
}

static size_t free_now(void)
{
	size_t left, total;

	OK(cu.cuMemGetInfo_v2(&left, &total));
	return left;
}

/* Another process with this much memory; it lives until it is killed. */
static pid_t neighbor(const char *spec, size_t bytes)
{
	int ready[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		sim_addr at;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("CUWHY_SIM", spec, 1);
		sim_open();
		sim_start();
		OK(cu.cuMemAlloc_v2(&at, bytes));
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static pid_t other;

static void lacks_what_the_other_has(void)
{
	sim_addr at;

	sim_start();
	CHECK(free_now() < 100 * MIB);
	EXPECT(cu.cuMemAlloc_v2(&at, 120 * MIB), 2);
	kill(other, SIGKILL);
	while (free_now() < 200 * MIB)		/* a zombie holds nothing */
		usleep(1000);
	OK(cu.cuMemAlloc_v2(&at, 120 * MIB));
}

static void cards__processes_run_out_of_memory_together(void **state)
{
	(void)state;
	other = neighbor(SPEC, 170 * MIB);
	assert_int_equal(in_child(SPEC, lacks_what_the_other_has), 0);
	end(other);
}

static void has_all(void)
{
	sim_start();
	CHECK(free_now() > 200 * MIB);
}

static void cards__what_an_ended_process_held_is_given_back(void **state)
{
	(void)state;
	end(neighbor(SPEC, 170 * MIB));
	assert_int_equal(in_child(SPEC, has_all), 0);
}

static void cards__another_gpu_or_no_file_is_a_card_of_its_own(void **state)
{
	(void)state;
	other = neighbor(SPEC, 170 * MIB);
	assert_int_equal(in_child(SPEC ",devices=2", has_all), 0);
	unsetenv("CUWHY_SIM_CARDS");
	assert_int_equal(in_child(SPEC, has_all), 0);
	setenv("CUWHY_SIM_CARDS", path, 1);
	end(other);
}

static void cards__a_file_that_others_can_write_is_not_used(void **state)
{
	(void)state;
	other = neighbor(SPEC, 170 * MIB);
	assert_int_equal(chmod(path, 0666), 0);
	assert_int_equal(in_child(SPEC, has_all), 0);
	end(other);
}

static void first_card_is_taken(void)
{
	struct sim_ctx *ctx;

	sim_start();
	CHECK(free_now() < 100 * MIB);
	OK(cu.cuDevicePrimaryCtxRetain(&ctx, 1));
	OK(cu.cuCtxSetCurrent(ctx));
	CHECK(free_now() > 200 * MIB);
}

static void cards__the_visible_number_of_a_card_is_not_its_own(void **state)
{
	(void)state;
	setenv("CUDA_VISIBLE_DEVICES", "1", 1);
	other = neighbor(SPEC ",devices=2", 170 * MIB);
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
	assert_int_equal(in_child(SPEC ",devices=2", first_card_is_taken), 0);
	end(other);
}

/* Both take and give as fast as they can: neither may ever get what the other has, nor lose anything. */
static void takes_and_gives(void)
{
	sim_addr at;
	int got = 0;

	sim_start();
	for (int i = 0; i < 20000; i++)
		if (!cu.cuMemAlloc_v2(&at, 100 * MIB)) {
			got++;
			OK(cu.cuMemFree_v2(at));
		}
	CHECK(got > 0);
}

static void cards__a_race_for_memory_loses_none(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setenv("CUWHY_SIM", SPEC, 1);
		sim_open();
		takes_and_gives();
		exit(0);
	}
	assert_int_equal(in_child(SPEC, takes_and_gives), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(in_child(SPEC, has_all), 0);
}

static void pins_up_to_the_ram(void)
{
	void *a, *b;

	sim_start();
	EXPECT(cu.cuMemHostAlloc(&a, 65 * MIB, 0), 2);
	OK(cu.cuMemHostAlloc(&a, 40 * MIB, 0));
	EXPECT(cu.cuMemAllocHost_v2(&b, 25 * MIB), 2);
	OK(cu.cuMemAllocManaged((sim_addr *)&b, 100 * MIB, 1));
	OK(cu.cuMemFree_v2((sim_addr)(uintptr_t)b));
	OK(cu.cuMemFreeHost(a));
	OK(cu.cuMemAllocHost_v2(&b, 64 * MIB));
}

static void cards__no_more_than_the_ram_can_be_pinned(void **state)
{
	(void)state;
	assert_int_equal(in_child("tiny,ram=64M", pins_up_to_the_ram), 0);
	assert_int_equal(in_child("tiny,ram=64M", pins_up_to_the_ram), 0);
}

struct process { unsigned int pid; unsigned long long bytes; };

static void *nvml_alone(void)	/* without a driver, as in the probe */
{
	char library[256];

	snprintf(library, sizeof(library), "%s", getenv("SIM_LIB") ? getenv("SIM_LIB") : "build/sim/libcuda.so.1");
	strcpy(strrchr(library, '/') + 1, "libnvidia-ml.so.1");
	return dlopen(library, RTLD_NOW);
}

static void nvml_has_idle_gpus(void)
{
	unsigned long long memory[3];
	int (*init)(unsigned int), (*count)(unsigned int *), (*device)(unsigned int, void **),
		(*info)(void *, unsigned long long *);
	unsigned int n = 0;
	void *lib = nvml_alone(), *gpu;

	CHECK(lib);
	*(void **)&init = dlsym(lib, "nvmlInitWithFlags");
	*(void **)&count = dlsym(lib, "nvmlDeviceGetCount_v2");
	*(void **)&device = dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&info = dlsym(lib, "nvmlDeviceGetMemoryInfo");
	OK(init(0));
	OK(count(&n));
	CHECK(n == 3);
	OK(device(2, &gpu));
	OK(info(gpu, memory));
	CHECK(memory[0] == 512 * MIB && memory[2] == 100 * MIB);
}

static void cards__nvml_knows_the_gpus_before_the_driver_is_started(void **state)
{
	(void)state;
	assert_int_equal(in_child("tiny*3,memory=512M,taken=100M", nvml_has_idle_gpus), 0);
}

static void nvml_has_them_all(void)
{
	enum { NOT_SUPPORTED = 3 };
	static const char *const names[] = {
#define NVML_OTHER(name) #name,
#include "sim/nvml/others.def"
#undef NVML_OTHER
	};
	void *lib = nvml_alone();

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		int (*call)(void);

		*(void **)&call = dlsym(lib, names[i]);
		CHECK(call && call() == NOT_SUPPORTED);
	}
}

static void cards__what_nvml_cannot_say_is_not_supported(void **state)
{
	(void)state;
	assert_int_equal(in_child("tiny", nvml_has_them_all), 0);
}

static void nvml_names_the_other(void)
{
	int (*init)(void), (*device)(unsigned int, void **), (*list)(void *, unsigned int *, struct process *);
	struct process seen[8];
	unsigned int n = 8;
	void *lib = nvml_alone(), *gpu;

	CHECK(lib);
	*(void **)&init = dlsym(lib, "nvmlInit_v2");
	*(void **)&device = dlsym(lib, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&list = dlsym(lib, "nvmlDeviceGetComputeRunningProcesses");
	OK(init());
	OK(device(0, &gpu));
	OK(list(gpu, &n, seen));
	CHECK(n == 1 && seen[0].pid == (unsigned int)other);
	CHECK(seen[0].bytes > 170 * MIB && seen[0].bytes < 256 * MIB);
}

static void cards__nvml_lists_the_processes_of_the_run(void **state)
{
	(void)state;
	other = neighbor(SPEC, 170 * MIB);
	end(neighbor(SPEC, 20 * MIB));
	assert_int_equal(in_child(SPEC, nvml_names_the_other), 0);
	end(other);
}

#define CARDS_TEST(name) cmocka_unit_test_setup_teardown(name, folder_make, folder_remove)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CARDS_TEST(cards__processes_run_out_of_memory_together),
		CARDS_TEST(cards__what_an_ended_process_held_is_given_back),
		CARDS_TEST(cards__another_gpu_or_no_file_is_a_card_of_its_own),
		CARDS_TEST(cards__a_file_that_others_can_write_is_not_used),
		CARDS_TEST(cards__the_visible_number_of_a_card_is_not_its_own),
		CARDS_TEST(cards__a_race_for_memory_loses_none),
		CARDS_TEST(cards__no_more_than_the_ram_can_be_pinned),
		CARDS_TEST(cards__nvml_lists_the_processes_of_the_run),
		CARDS_TEST(cards__nvml_knows_the_gpus_before_the_driver_is_started),
		CARDS_TEST(cards__what_nvml_cannot_say_is_not_supported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
