/* SPDX-License-Identifier: Apache-2.0
 * Helpers of the tests of stand-ins: each test runs in a child with a simulated GPU, and finds functions by name, as PyTorch does. */
#ifndef CUWHY_TEST_STANDIN_LOAD_H
#define CUWHY_TEST_STANDIN_LOAD_H

#include "sim_child.h"

/* A stand-in lies beside the simulated driver. */
static void *standin_open(const char *name)
{
	const char *driver = getenv("SIM_LIB"), *slash = driver ? strrchr(driver, '/') : NULL;
	char path[4096];
	void *lib;

	snprintf(path, sizeof(path), "%.*s/%s", slash ? (int)(slash - driver) : 1, slash ? driver : ".", name);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(lib);
	return lib;
}

/* Declares a local function: FUNCTION(lib, cufftCreate, (int *)); */
#define FUNCTION(lib, name, params)                           \
	int(*name) params = (int(*) params)dlsym(lib, #name); \
	CHECK(name)

#endif
