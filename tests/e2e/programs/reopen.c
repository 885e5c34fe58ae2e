/* SPDX-License-Identifier: Apache-2.0
 * Loads the driver, uses it, unloads it, and loads it again. */
#include <dlfcn.h>
#include <stdio.h>

static int use(void *driver)
{
	int (*init)(unsigned int) = NULL, (*version)(int *) = NULL;
	int number = 0;

	*(void **)&init = driver ? dlsym(driver, "cuInit") : NULL;
	*(void **)&version = driver ? dlsym(driver, "cuDriverGetVersion") : NULL;
	if (!init || !version || version(&number) || number < 11000)
		return -1;
	return init(0);
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	void *twice = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	int first = use(driver), second = use(twice);

	dlclose(driver);
	dlclose(twice);
	printf("first %d second %d again %d\n", first, second,
	       use(dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL)));
	return 0;
}
