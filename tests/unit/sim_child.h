/* SPDX-License-Identifier: Apache-2.0
 * Helpers of the tests of the simulated GPU: each test runs in a child, because a driver is
 * initialized once per process and its settings come from the environment. */
#ifndef CUWHY_TEST_SIM_CHILD_H
#define CUWHY_TEST_SIM_CHILD_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/cuda/sim.h"

/* What a test creates and does not destroy is not a leak, and the driver's own memory is not searched for pointers. */
#undef UNIT_LEAKS
#define UNIT_LEAKS true

/* Every function of the library, found by name. */
struct api {
#define SIM_API(base, symbol, since, twin, need, params, args) int(*symbol) params;
#include "sim/cuda/sim_api.def"
#undef SIM_API
};

static struct api cu;
static void *sim_lib;
static char sim_said[2048];		/* what the driver logged since say_reset */

static const char image_all[] =
	"cuwhy-sim-module 1\n"
	"target sm_80\n"
	"target sm_90\n"
	"kernel nop\nkernel fill\nkernel iota\nkernel copy\nkernel scale\nkernel saxpy\n"
	"kernel vecadd\nkernel sum\nkernel spin\nkernel table\nkernel fat\nkernel trap\n"
	"kernel assert_fail\nkernel misaligned\n"
	"kernel fill mangled=bounded bounds=256\n";

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define EXPECT(call, code)                                                                         \
	do {                                                                                       \
		int got_code = (call);                                                             \
		if (got_code != (code)) {                                                          \
			fprintf(stderr, "%s:%d: %s gave %d, expected %d\n", __FILE__, __LINE__,    \
				#call, got_code, (int)(code));                                     \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define OK(call) EXPECT(call, 0)

static inline void *sim_symbol(const char *name)
{
	void *found = dlsym(sim_lib, name);

	if (!found) {
		fprintf(stderr, "no symbol %s\n", name);
		_exit(1);
	}
	return found;
}

static inline void sim_open(void)
{
	const char *path = getenv("SIM_LIB");

	sim_lib = dlopen(path ? path : "build/sim/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!sim_lib) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(1);
	}
#define SIM_API(base, symbol, since, twin, need, params, args)                                     \
	do {                                                                                       \
		void *found_##symbol = sim_symbol(#symbol);                                        \
		memcpy(&cu.symbol, &found_##symbol, sizeof(found_##symbol));                       \
	} while (0);
#include "sim/cuda/sim_api.def"
#undef SIM_API
}

static inline void hear(void *data, int level, char *message, size_t length)
{
	size_t used = strlen(sim_said);

	(void)data;
	(void)level;
	snprintf(sim_said + used, sizeof(sim_said) - used, "%.*s\n", (int)length, message);
}

static inline void say_reset(void)
{
	sim_said[0] = '\0';
}

/* Context on device 0, current. */
static inline struct sim_ctx *sim_start(void)
{
	struct sim_ctx *ctx;

	OK(cu.cuInit(0));
	OK(cu.cuLogsRegisterCallback(hear, NULL, NULL));
	OK(cu.cuDevicePrimaryCtxRetain(&ctx, 0));
	OK(cu.cuCtxSetCurrent(ctx));
	return ctx;
}

static inline struct sim_func *sim_kernel(const char *name)
{
	static struct sim_module *module;
	struct sim_func *f;

	if (!module)
		OK(cu.cuModuleLoadData(&module, image_all));
	OK(cu.cuModuleGetFunction(&f, module, name));
	return f;
}

static inline int launch_1d(struct sim_func *f, unsigned int grid, unsigned int block,
			    struct sim_stream *stream, void **params)
{
	return cu.cuLaunchKernel(f, grid, 1, 1, block, 1, 1, 0, stream, params, NULL);
}

/* Runs the body in a child with this CUWHY_SIM; the exit status, or -signal. */
static inline int in_child(const char *setting, void (*body)(void))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (setting)
			setenv("CUWHY_SIM", setting, 1);
		else
			unsetenv("CUWHY_SIM");
		sim_open();
		body();
		exit(0);		/* not _exit: exiting while workers are running must be clean */
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* A test whose body runs in a child with the given setting. */
#define SIM_TEST(name, setting)                                                                    \
	static void body_##name(void);                                                             \
	static void name(void **state)                                                             \
	{                                                                                          \
		(void)state;                                                                       \
		assert_int_equal(in_child(setting, body_##name), 0);                               \
	}                                                                                          \
	static void body_##name(void)

#endif
