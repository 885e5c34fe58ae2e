/* SPDX-License-Identifier: Apache-2.0
 * Where our parts are, and the environment that makes the program load them.
 *
 * LD_PRELOAD is inherited by everything the program starts, so its value must work for all of it:
 *  - it is split at spaces and colons, so a path with one of them is reached through a link;
 *  - a 32-bit program cannot load the recorder, and its loader would print an error. The loader expands
 *    $LIB differently in 32-bit programs, so there they find an empty library.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/run/run.h"

#define RECORDER	"libcuwhy-rec.so"
#define TREE		"pre"
#define SIM_DEFAULT	"rtx4090"	/* for `--gpu sim` alone */

/* What $LIB expands to on the systems we know, both 64-bit and 32-bit. */
static const char *const lib_words[] = {"lib/x86_64-linux-gnu", "lib64", "lib",
					"lib/i386-linux-gnu", "lib32", "lib/aarch64-linux-gnu"};
#define N_WORDS (sizeof(lib_words) / sizeof(lib_words[0]))

static int missing(const char *name, const char *what, struct err *e)
{
	char *dir = proc_self_dir();

	err_set(e, -ENOENT, "%s '%s' is missing", what, name);
	err_hint(e, "it belongs next to the executable in '%s', or in '../lib/cuwhy' from there",
		 dir ? dir : "?");
	free(dir);
	return -ENOENT;
}

static bool loader_safe(const char *path)
{
	return strpbrk(path, " :;$\t\n") == NULL;
}

static bool link_into(const char *dir, const char *name, const char *target)
{
	char *path = fs_join(dir, name);
	bool ok = fs_mkdirs(dir, NULL) == 0 && symlink(target, path) == 0;

	free(path);
	return ok;
}

/* --- the $LIB tree ---------------------------------------------------------------------------- */

/* Is `word` what the loader expands $LIB to in this program? Tested by loading a library that is
 * loaded anyway, under a name that exists only if it is. */
static bool is_our_word(const char *tree, const char *word)
{
	char *dir = fs_join(tree, word), *ask = fs_join(tree, "$LIB/probe"), *probe;
	void *known = dlsym(RTLD_DEFAULT, "getpid"), *lib = NULL;
	Dl_info info;

	if (known && dladdr(known, &info) && info.dli_fname &&
	    link_into(dir, "probe", info.dli_fname))
		lib = dlopen(ask, RTLD_LAZY | RTLD_LOCAL);
	if (lib)
		dlclose(lib);
	probe = fs_join(dir, "probe");
	unlink(probe);
	free(probe);
	free(ask);
	free(dir);
	return lib != NULL;
}

/* The value for LD_PRELOAD with $LIB in it; NULL if it cannot be made to work. */
static char *preload_tree(const char *run_dir, const char *recorder, const char *stub)
{
	char *tree = fs_join(run_dir, TREE), *dir, *value = NULL;
	size_t i, ours = N_WORDS;
	bool ok;

	for (i = 0; ours == N_WORDS && i < N_WORDS; i++)
		if (is_our_word(tree, lib_words[i]))
			ours = i;
	ok = ours < N_WORDS;
	for (i = 0; ok && i < N_WORDS; i++) {
		dir = fs_join(tree, lib_words[i]);
		ok = link_into(dir, RECORDER, i == ours ? recorder : stub);
		free(dir);
	}
	if (ok)
		value = xasprintf("%s/$LIB/" RECORDER, tree);
	free(tree);
	return value;
}

/* A path without characters that are special to the loader: `path` itself or a link to it. */
static char *safe_path(const char *run_dir, const char *path, const char *name)
{
	char *dir;

	if (loader_safe(path))
		return xstrdup(path);
	if (!loader_safe(run_dir) || !link_into(run_dir, name, path))
		return NULL;
	dir = fs_join(run_dir, name);
	return dir;
}

static char *preload_value(const char *run_dir, const char *recorder)
{
	char *stub = proc_find_part("lib32/" RECORDER), *value = NULL;

	if (stub && loader_safe(run_dir))
		value = preload_tree(run_dir, recorder, stub);
	free(stub);
	return value ? value : safe_path(run_dir, recorder, RECORDER);
}

static void prepend(const char *variable, const char *value)
{
	const char *old = getenv(variable);
	char *both = old && *old ? xasprintf("%s:%s", value, old) : xstrdup(value);

	setenv(variable, both, 1);
	free(both);
}

/* The runtime of a sanitizer refuses to start if another library is loaded before it, and cannot have a `dlsym` that is
 * not its own behind it: such a program runs without the recorder. */
bool env_has_sanitizer(void)
{
	static const char *const names[] = {"/libasan.so", "/libtsan.so", "/liblsan.so", "/libclang_rt.asan",
					    "/libclang_rt.tsan"};
	const char *list = getenv("LD_PRELOAD");

	for (size_t i = 0; list && i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(list, names[i]) || str_starts(list, names[i] + 1))
			return true;
	return false;
}

static int set_preload(const struct server *s, struct err *e)
{
	char *recorder = proc_find_part(RECORDER), *value;

	if (!recorder)
		return missing(RECORDER, "the recorder", e);
	value = s->dir && !env_has_sanitizer() ? preload_value(s->dir, recorder) : NULL;
	free(recorder);
	if (value) {
		prepend("LD_PRELOAD", value);
		setenv("CUWHY_SOCK", s->path, 1);
		log_line("env", 1, "LD_PRELOAD=%s", value);
	}
	free(value);
	return 0;
}

/* --- the simulated GPU ------------------------------------------------------------------------ */

#define SIM_MODEL(id, ...) #id ", "
static const char sim_models[] =
#include "sim/sim_models.def"
	;
#undef SIM_MODEL

static int check_model(const char *spec, struct err *e)
{
	size_t len = strcspn(spec, ",");
	const char *name = sim_models;

	for (; *name; name += strcspn(name, ",") + strlen(", "))
		if (strcspn(name, ",") == len && strncmp(name, spec, len) == 0)
			return 0;
	err_set(e, -EINVAL, "there is no simulated GPU '%.*s'", (int)len, spec);
	return err_hint(e, "the models are: %.*s", (int)(strlen(sim_models) - strlen(", ")), sim_models);
}

/* The form that the simulated GPU reads: a model always comes first. */
static char *sim_spec(const char *words)
{
	size_t first = strcspn(words, ",");

	if (first && !memchr(words, '=', first))
		return xstrdup(words);
	return xasprintf(SIM_DEFAULT "%s%s", *words && *words != ',' ? "," : "", words);
}

static int set_sim(const struct server *s, const char *gpu, struct err *e)
{
	char *lib, *dir, *value, *spec;
	int rc;

	if (!str_starts(gpu, "sim") || (gpu[3] && gpu[3] != ':')) {
		err_set(e, -EINVAL, "unknown GPU '%s'", gpu);
		return err_hint(e, "--gpu takes sim or sim:MODEL");
	}
	lib = proc_find_part("sim/libcuda.so.1");
	if (!lib)
		return missing("sim/libcuda.so.1", "the simulated GPU", e);
	spec = sim_spec(gpu[3] ? gpu + 4 : "");
	rc = check_model(spec, e);
	dir = proc_find_part("sim");
	value = rc == 0 && dir ? safe_path(s->dir ? s->dir : "", dir, "sim") : NULL;
	if (rc == 0 && !value)
		rc = err_set(e, -EINVAL, "the loader cannot search a folder named '%s'",
			     dir ? dir : "");
	if (rc == 0) {
		prepend("LD_LIBRARY_PATH", value);
		setenv("CUWHY_SIM", spec, 1);
	}
	free(spec);
	free(value);
	free(dir);
	free(lib);
	return rc;
}

int env_prepare(const struct server *s, const char *gpu, bool no_core_dump, struct err *e)
{
	int rc = set_preload(s, e);

	if (rc == 0 && gpu)
		rc = set_sim(s, gpu, e);
	if (rc == 0 && s->dir && !no_core_dump)
		setenv("CUWHY_CORE_DUMP", s->dir, 1);
	else
		unsetenv("CUWHY_CORE_DUMP");
	return rc;
}
