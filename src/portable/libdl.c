/* SPDX-License-Identifier: Apache-2.0
 * libdl's functions in the versions that they had before glibc 2.34 (see portable.h).
 */
#include <dlfcn.h>

#include "portable/portable.h"

OLD(dlopen, GLIBC_FIRST);
OLD(dlclose, GLIBC_FIRST);
OLD(dlsym, GLIBC_FIRST);
OLD(dlerror, GLIBC_FIRST);
OLD(dladdr, GLIBC_FIRST);

HERE void *dlopen(const char *file, int mode)
{
	return old_dlopen(file, mode);
}

HERE int dlclose(void *handle)
{
	return old_dlclose(handle);
}

HERE void *dlsym(void *restrict handle, const char *restrict name)
{
	return old_dlsym(handle, name);
}

HERE char *dlerror(void)
{
	return old_dlerror();
}

HERE int dladdr(const void *address, Dl_info *info)
{
	return old_dladdr(address, info);
}
