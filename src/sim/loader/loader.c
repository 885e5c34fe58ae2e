/* SPDX-License-Identifier: Apache-2.0
 * An audit library of the loader (rtld-audit(7)): a program on the simulated GPU that asks for one of NVIDIA's libraries, by name
 * or by path, gets our stand-in for it. LD_LIBRARY_PATH is not enough: PyTorch's libraries have an RPATH, which comes first, and
 * its __init__ loads some of them by their absolute path.
 *
 * Which names: those of the files in the folder CUWHY_SIM_LIBS, as it was when the program started. Later there may be no
 * environment to ask: a program that sets its title writes over it.
 *
 * Nothing is linked to it, not even libc. The loader gives an audit library a namespace of its own, where its libc would be a second
 * one: that takes static thread-local storage, of which there is little left over for the libraries that the program loads later.
 */
#include <fcntl.h>
#include <link.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define CALLS_NOTHING __asm__ volatile("")	/* or the compiler makes a loop a call of libc's strlen or memcpy */

enum { PATHS_MAX = 64, PATH_BYTES = 4096 };

static char folder[PATH_BYTES];

/* The loader keeps the answer, so each path is kept, too. It calls us with its own lock held. */
static char paths[PATHS_MAX][PATH_BYTES];
static int n_paths;

static long ask_kernel(long number, long a, long b, long c)
{
#if defined(__x86_64__)
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
	return x0;
#else
#error "no port to this processor yet"
#endif
}

static size_t length(const char *text)
{
	size_t n = 0;

	for (; text[n]; n++)
		CALLS_NOTHING;
	return n;
}

/* What follows `start` in the text; NULL if it begins otherwise. */
static const char *behind(const char *text, const char *start)
{
	for (; *start && *text == *start; text++, start++)
		CALLS_NOTHING;
	return *start ? NULL : text;
}

static const char *last_part(const char *path)
{
	const char *part = path;

	for (; *path; path++)
		if (*path == '/')
			part = path + 1;
	return part;
}

static char *append(char *to, const char *text)
{
	for (; *text; text++, to++) {
		*to = *text;
		CALLS_NOTHING;
	}
	*to = '\0';
	return to;
}

/* The folder and the name, where they stay; NULL if there is no such file. */
static char *stand_in(const char *name)
{
	char *path = paths[n_paths < PATHS_MAX ? n_paths : 0];

	for (int i = 0; i < n_paths; i++) {
		const char *rest = behind(paths[i], folder);

		if (rest && *rest == '/' && (rest = behind(rest + 1, name)) && !*rest)
			return paths[i];
	}
	if (n_paths == PATHS_MAX || length(folder) + length(name) + sizeof("/") > PATH_BYTES)
		return NULL;
	append(append(append(path, folder), "/"), name);
	if (ask_kernel(SYS_faccessat, AT_FDCWD, (long)path, R_OK) != 0)
		return NULL;
	n_paths++;
	return path;
}

/* The loader calls it before la_version(), with the program's own environment. */
__attribute__((constructor)) static void begin(int argc, char **argv, char **environment)
{
	const char *value = NULL;

	(void)argc;
	(void)argv;
	for (char **e = environment; e && *e && !value; e++)
		value = behind(*e, "CUWHY_SIM_LIBS=");
	if (value && length(value) < PATH_BYTES)
		append(folder, value);
}

EXPORT unsigned int la_version(unsigned int version)
{
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	const char *base = last_part(name);
	char *found = NULL;

	(void)cookie;
	if (flag == LA_SER_ORIG && folder[0] && behind(base, "lib"))
		found = stand_in(base);
	return found ? found : (char *)(uintptr_t)name;
}
