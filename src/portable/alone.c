/* SPDX-License-Identifier: Apache-2.0
 * For the fully static program: replaces functions for which glibc would load more libraries.
 *
 * Those would crash unless they came from exactly the glibc that was linked in. So nothing is loaded: users are looked
 * up in /etc/passwd, and the machine's glibc is not the one in here. `cuwhy run` then cannot ask the loader for its
 * folders: 32-bit children get a recorder that their loader rejects with a message.
 *
 * The linker's --wrap replaces glibc's functions with these.
 */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#define INSTEAD_OF(name) __typeof__(name) __wrap_##name
INSTEAD_OF(dlopen);
INSTEAD_OF(dlclose);
INSTEAD_OF(dlsym);
INSTEAD_OF(dlerror);
INSTEAD_OF(dladdr);
INSTEAD_OF(gnu_get_libc_version);
INSTEAD_OF(getpwuid);

void *__wrap_dlopen(const char *file, int mode)
{
	(void)file;
	(void)mode;
	return NULL;
}

int __wrap_dlclose(void *handle)
{
	(void)handle;
	return -1;
}

void *__wrap_dlsym(void *restrict handle, const char *restrict name)
{
	(void)handle;
	(void)name;
	return NULL;
}

char *__wrap_dlerror(void)
{
	static char why[] = "this program is linked statically";

	return why;
}

int __wrap_dladdr(const void *address, Dl_info *info)
{
	(void)address;
	(void)info;
	return 0;
}

/* NULL: ask the machine's files. */
const char *__wrap_gnu_get_libc_version(void)
{
	return NULL;
}

struct passwd *__wrap_getpwuid(uid_t uid)
{
	FILE *f = fopen("/etc/passwd", "re");
	struct passwd *p = NULL;

	do
		p = f ? fgetpwent(f) : NULL;
	while (p && p->pw_uid != uid);
	if (f)
		fclose(f);
	return p;
}
