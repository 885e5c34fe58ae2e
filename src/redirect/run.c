/* SPDX-License-Identifier: Apache-2.0
 * Starting programs, and loading libraries, that the run itself has written.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <paths.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define HEAD 256	/* bytes of a script that the kernel reads, too */
#define MOST_SCRIPTS 5	/* a script whose interpreter is one, as often as the kernel allows it */

struct script { char text[HEAD + 1]; char *interpreter, *argument; };

/* The kernel would give the interpreter the path in the scratch, and the script would think that it lives there. */
static bool read_script(struct script *s, const char *path)
{
	int fd = raw_open(AT_FDCWD, path, O_RDONLY, 0);
	long n;
	char *end;

	if (fd < 0)
		return false;
	n = raw(SYS_read, fd, s->text, HEAD, 0);
	raw_close(fd);
	if (n < 3 || s->text[0] != '#' || s->text[1] != '!')
		return false;
	s->text[n] = '\0';
	s->text[strcspn(s->text, "\n")] = '\0';
	s->interpreter = s->text + 2 + strspn(s->text + 2, " \t");
	end = s->interpreter + strcspn(s->interpreter, " \t");
	s->argument = *end ? end + strspn(end, " \t") : end;
	*end = '\0';
	for (end = s->argument + strlen(s->argument); end > s->argument && strchr(" \t", end[-1]); end--)
		end[-1] = '\0';
	return *s->interpreter;
}

static size_t count(char *const argv[])
{
	size_t n = 0;

	while (argv && argv[n])
		n++;
	return n;
}

static int exec_deep(const char *path, char *const argv[], char *const env[], int depth);

static int exec_script(struct script *s, const char *path, char *const argv[], char *const env[], int depth)
{
	size_t n = count(argv), at = 0;
	char **with = alloca((n + 4) * sizeof(*with));

	with[at++] = s->interpreter;
	if (*s->argument)
		with[at++] = s->argument;
	with[at++] = (char *)path;
	for (size_t i = 1; i < n; i++)
		with[at++] = argv[i];
	with[at] = NULL;
	return exec_deep(s->interpreter, with, env, depth + 1);
}

static int exec_deep(const char *path, char *const argv[], char *const env[], int depth)
{
	struct place p;
	struct script s;
	int error;
	const char *where = look_at(&p, AT_FDCWD, path, true, &error);

	if (error)
		return (int)answer(error);
	if (where && !p.zone && depth < MOST_SCRIPTS && raw_may(where, X_OK) == 0 && read_script(&s, where))
		return exec_script(&s, path, argv, env, depth);
	WHOLE_ENV(env);
	return NEXT(execve)(where ? where : path, argv, env);
}

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	return exec_deep(path, argv, env, 0);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

/* As libc does it: what the kernel does not know is a script for the shell. */
static int exec_or_shell(const char *path, char *const argv[], char *const env[])
{
	size_t n = count(argv);
	char **with;

	execve(path, argv, env);
	if (errno != ENOEXEC)
		return -1;
	with = alloca((n + 3) * sizeof(*with));
	with[0] = (char *)_PATH_BSHELL;
	with[1] = (char *)path;
	for (size_t i = 1; i <= n; i++)
		with[i + 1] = argv[i];
	if (n < 1)
		with[2] = NULL;
	return execve(_PATH_BSHELL, with, env);
}

/* The next candidate of PATH; NULL at the end. */
static const char *candidate(char *to, const char *list, const char *file)
{
	size_t n = strcspn(list, ":"), len = strlen(file);

	if (n + 1 + len >= PATH_MAX)
		return NULL;
	memcpy(to, list, n);
	if (n)
		to[n++] = '/';
	memcpy(to + n, file, len + 1);
	return to;
}

static bool goes_on(int error)
{
	return error == EACCES || error == ENOENT || error == ESTALE || error == ENOTDIR || error == ENODEV ||
	       error == ETIMEDOUT;
}

static int exec_by_path(const char *file, char *const argv[], char *const env[])
{
	const char *list = getenv("PATH");
	char path[PATH_MAX];
	bool denied = false;

	if (!*file || strchr(file, '/'))
		return exec_or_shell(file, argv, env);
	for (list = list ? list : _PATH_DEFPATH; list;
	     list = list[strcspn(list, ":")] ? list + strcspn(list, ":") + 1 : NULL) {
		if (!candidate(path, list, file))
			continue;
		exec_or_shell(path, argv, env);
		denied |= errno == EACCES;
		if (!goes_on(errno))
			return -1;
	}
	errno = denied ? EACCES : ENOENT;
	return -1;
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	return is_on() ? exec_by_path(file, argv, env) : NEXT(execvpe)(file, argv, env);
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	WHOLE_ENV(env);
	return NEXT(fexecve)(fd, argv, env);
}

static size_t count_list(va_list list)
{
	size_t n = 1;

	while (va_arg(list, char *))
		n++;
	return n;
}

/* A list of arguments, as many as `argv` has room for; what follows the last one may be read next. */
static void fill_list(char **argv, const char *first, size_t n, va_list list)
{
	argv[0] = (char *)first;
	for (size_t i = 1; i <= n; i++)
		argv[i] = va_arg(list, char *);
}

#define EXECL(name, call, ...)                                                                     \
	EXPORT int name(const char *path, const char *first, ...)                                  \
	{                                                                                          \
		va_list list;                                                                      \
		char **argv;                                                                       \
		size_t n = 0;                                                                      \
\
		va_start(list, first);                                                             \
		if (maybe_null(first))                                                             \
			n = count_list(list);                                                      \
		va_end(list);                                                                      \
		argv = alloca((n + 1) * sizeof(*argv));                                            \
		va_start(list, first);                                                             \
		fill_list(argv, first, n, list);                                                   \
		call;                                                                              \
		va_end(list);                                                                      \
		return -1;                                                                         \
	}

EXECL(execl, execve(path, argv, environ))
EXECL(execlp, execvpe(path, argv, environ))
EXECL(execle, execve(path, argv, va_arg(list, char *const *)))

typedef const posix_spawn_file_actions_t actions;
typedef const posix_spawnattr_t attributes;

EXPORT int posix_spawn(pid_t *restrict pid, const char *restrict path, actions *restrict todo,
		       attributes *restrict with, char *const argv[restrict], char *const env[restrict])
{
	struct place p;
	int error;
	const char *where = look_at(&p, AT_FDCWD, path, true, &error);

	WHOLE_ENV(env);
	return error ? -error : NEXT(posix_spawn)(pid, where ? where : path, todo, with, argv, env);
}

/* The first that can be run, if the kernel would not find it by itself. */
static const char *find_by_path(struct place *p, const char *file)
{
	const char *list = getenv("PATH"), *where;
	char path[PATH_MAX];
	int error;

	for (list = list ? list : _PATH_DEFPATH; list;
	     list = list[strcspn(list, ":")] ? list + strcspn(list, ":") + 1 : NULL) {
		if (!candidate(path, list, file))
			continue;
		where = look_at(p, AT_FDCWD, path, true, &error);
		if (!error && raw_may(where ? where : path, X_OK) == 0)
			return where;
	}
	return NULL;
}

EXPORT int posix_spawnp(pid_t *restrict pid, const char *restrict file, actions *restrict todo,
			attributes *restrict with, char *const argv[restrict], char *const env[restrict])
{
	struct place p;
	const char *where;

	if (strchr(file, '/'))
		return posix_spawn(pid, file, todo, with, argv, env);
	where = has_changes() ? find_by_path(&p, file) : NULL;
	WHOLE_ENV(env);
	return where ? NEXT(posix_spawn)(pid, where, todo, with, argv, env)
		     : NEXT(posix_spawnp)(pid, file, todo, with, argv, env);
}

/* dlopen and dlmopen are in arch_*.S, since libc knows their caller by the return address. These say what to open instead; libc copies
 * the name before anything else can be loaded by this thread. */
void *redirect_next_dlopen, *redirect_next_dlmopen;
const char *redirect_library(const char *path);

const char *redirect_library(const char *path)
{
	static __thread char *instead;
	struct place p;
	const char *where;
	int error;

	if (unlikely(!redirect_next_dlopen)) {
		redirect_next_dlopen = next_of("dlopen");
		redirect_next_dlmopen = next_of("dlmopen");
	}
	if (!path || !strchr(path, '/') || !has_changes())
		return path;
	where = look_at(&p, AT_FDCWD, path, true, &error);
	if (!where)
		return path;
	free(instead);
	instead = strdup(where);
	return instead ? instead : path;
}
