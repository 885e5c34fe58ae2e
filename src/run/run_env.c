/* SPDX-License-Identifier: Apache-2.0
 * Where our parts are, and the environment that makes the program load them.
 *
 * LD_PRELOAD and LD_AUDIT are inherited by everything the program starts, so its value must work for all of it. A 32-bit program
 * cannot load the recorder, and its loader would print an error. The loader expands $LIB differently in 32-bit
 * programs, so there they find an empty library. What $LIB becomes depends on the distribution; only the word "lib"
 * means 64 bits on some and 32 on others, so there are two trees (PRELOAD in the Makefile).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"
#include "formats/elf_file.h"
#include "sim/cuda/sim_spec.h"
#include "writes/scratch.h"

#define RECORDER	"libcuwhy-rec.so"
#define SIM_LOADER	"libcuwhy-sim-loader.so"
#define SIM_DEFAULT	"rtx4090"	/* for `--gpu sim` alone */

static const char *const trees[] = {"preload/lib-is-32", "preload/lib-is-64"};

static int missing(const char *name, const char *what, struct err *e)
{
	char *dir = proc_self_dir();

	err_set(e, -ENOENT, "%s '%s' is missing", what, name);
	err_hint(e, "it belongs next to the executable in '%s', or in '../lib/cuwhy' from there",
		 dir ? dir : "?");
	free(dir);
	return -ENOENT;
}

/* Does the loader find the recorder by this name, and not the empty library? The question to ask is the one that
 * every program's loader will be asked, so it is asked here: without CUWHY_SOCK, the recorder does nothing. */
static bool loads(const char *value)
{
	void *lib = dlopen(value, RTLD_LAZY | RTLD_LOCAL);
	bool found = lib && dlsym(lib, "cuwhy_rec_version");

	if (lib)
		dlclose(lib);
	return found;
}

/* The name of a part, for LD_PRELOAD or LD_AUDIT, that works in 32-bit programs, too; NULL if there is none. */
static char *part_in_tree(const char *part)
{
	char *tree, *value = NULL, *place;
	size_t i;

	for (i = 0; !value && i < sizeof(trees) / sizeof(trees[0]); i++) {
		tree = proc_find_part(trees[i]);
		value = tree ? fs_join(tree, "$LIB/" RECORDER) : NULL;
		place = value && loads(value) ? place_part(tree) : NULL;
		free(value);
		value = place ? xasprintf("%s/$LIB/%s", place, part) : NULL;
		free(place);
		free(tree);
	}
	return value;
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
static bool names_sanitizer(const char *list)
{
	static const char *const names[] = {"/libasan.so", "/libtsan.so", "/liblsan.so", "/libclang_rt.asan",
					    "/libclang_rt.tsan"};

	for (size_t i = 0; list && i < sizeof(names) / sizeof(names[0]); i++)
		if (strstr(list, names[i]) || str_starts(list, names[i] + 1))
			return true;
	return false;
}

char *env_find_program(const char *name)
{
	const char *p = strchr(name, '/') ? NULL : getenv("PATH");
	size_t len;

	for (; p; p = p[len] ? p + len + 1 : NULL) {
		char *path;

		len = strcspn(p, ":");
		path = len ? xasprintf("%.*s/%s", (int)len, p, name) : xstrdup(name);
		if (access(path, X_OK) == 0 && !fs_is_dir(path))
			return path;
		free(path);
	}
	return strchr(name, '/') ? xstrdup(name) : NULL;
}

static bool links_sanitizer(const char *program)
{
	struct pool pool = {0};
	struct elf_file f;
	char *path = env_find_program(program);
	bool found = false;

	if (path && elf_open(&f, &pool, "", path, 0) == 0) {
		for (unsigned i = 0; !f.broken && !f.foreign && i < f.n_needed; i++)
			found |= names_sanitizer(f.needed[i]);
		elf_close(&f);
	}
	pool_release(&pool);
	free(path);
	return found;
}

const char *env_why_no_recorder(const char *program)
{
	const char *asan = getenv("ASAN_OPTIONS");

	if (names_sanitizer(getenv("LD_PRELOAD")))
		return "LD_PRELOAD has a sanitizer's runtime, which tolerates no recorder";
	if (links_sanitizer(program) && !(asan && strstr(asan, "verify_asan_link_order=0")))
		return "the program is linked with a sanitizer's runtime, which tolerates no recorder";
	return NULL;
}

static int set_preload(const struct server *s, const char *program, struct err *e)
{
	char *recorder = proc_find_part(RECORDER), *value;

	if (!recorder)
		return missing(RECORDER, "the recorder", e);
	unsetenv("CUWHY_SOCK");		/* of a `cuwhy run` that we are in */
	value = s->dir && !env_why_no_recorder(program) ? part_in_tree(RECORDER) : NULL;
	if (s->dir && !value && !env_why_no_recorder(program))
		value = place_part(recorder);
	free(recorder);
	if (value) {
		prepend("LD_PRELOAD", value);
		setenv("CUWHY_SOCK", s->path, 1);
		log_line("env", 1, "LD_PRELOAD=%s", value);
	}
	free(value);
	return 0;
}

/* The form that the simulated GPU reads: a model always comes first. */
static char *sim_spec(const char *words)
{
	bool model = *words && *words != ',' && words[strcspn(words, ",*:=")] != '=';

	return model ? xstrdup(words) : xasprintf(SIM_DEFAULT "%s%s", *words && *words != ',' ? "," : "", words);
}

int env_check_gpu(const char *gpu, char **spec, struct err *e)
{
	struct sim_spec_error why;
	struct sim_config config;

	if (!str_starts(gpu, "sim") || (gpu[3] && gpu[3] != ':')) {
		err_set(e, -EINVAL, "unknown GPU '%s'", gpu);
		return err_hint(e, "--gpu takes sim or sim:MODEL");
	}
	*spec = sim_spec(gpu[3] ? gpu + 4 : "");
	if (sim_spec_read(&config, *spec, &why))
		return 0;
	free(*spec);
	*spec = NULL;
	err_set(e, -EINVAL, "%s", why.what);
	return err_hint(e, "%s", why.hint);
}

/* NVIDIA's other libraries: see src/sim/loader. */
static void set_stand_ins(const char *folder)
{
	char *loader = part_in_tree(SIM_LOADER);

	if (!loader)
		loader = fs_join(folder, SIM_LOADER);
	setenv("CUWHY_SIM_LIBS", folder, 1);
	setenv("TRITON_LIBCUDA_PATH", folder, 1);	/* Triton links to the driver; it asks ldconfig before LD_LIBRARY_PATH */
	prepend("LD_AUDIT", loader);
	free(loader);
}

static int set_sim(const char *spec, struct err *e)
{
	char *dir = proc_find_part("sim"), *lib = proc_find_part("sim/libcuda.so.1"),
	     *value = dir ? place_part(dir) : NULL;
	int rc = 0;

	if (!lib)
		rc = missing("sim/libcuda.so.1", "the simulated GPU", e);
	else if (!value)
		rc = err_set(e, -EINVAL, "the loader cannot search a folder named '%s'", dir ? dir : "");
	if (rc == 0) {
		prepend("LD_LIBRARY_PATH", value);
		set_stand_ins(value);
		setenv("CUWHY_SIM", spec, 1);
	}
	free(value);
	free(dir);
	free(lib);
	return rc;
}

int env_fence(const char *scratch, struct err *e)
{
	char *library = part_in_tree(SCRATCH_LIBRARY), *found = library ? NULL : proc_find_part(SCRATCH_LIBRARY), *both;
	const char *old = getenv("LD_PRELOAD"), *sock = getenv("CUWHY_SOCK");
	size_t n = old && sock ? strcspn(old, ":") : 0;		/* the recorder comes first */

	if (!library && found)
		library = place_part(found);
	free(found);
	if (!library)
		return missing(SCRATCH_LIBRARY, "the library for writes", e);
	if (n)
		both = xasprintf("%.*s:%s%s", (int)n, old, library, old + n);
	else if (old && *old)
		both = xasprintf("%s:%s", library, old);
	else
		both = xstrdup(library);
	setenv("LD_PRELOAD", both, 1);
	setenv(SCRATCH_ENV, scratch, 1);
	free(both);
	free(library);
	return 0;
}

int env_prepare(const struct server *s, const char *program, const char *sim, const struct env_wishes *w, struct err *e)
{
	int rc = set_preload(s, program, e);

	if (rc == 0 && sim)
		rc = set_sim(sim, e);
	if (rc == 0 && sim) {
		char *path = s->dir ? fs_join(s->dir, CARDS_FILE) : NULL;

		/* The processes of this run, and only they, take memory from the same cards; see src/sim/cuda/sim_cards.h. */
		if (path)
			setenv("CUWHY_SIM_CARDS", path, 1);
		else
			unsetenv("CUWHY_SIM_CARDS");
		free(path);
	}
	if (rc == 0 && s->dir && !w->no_core_dump)
		setenv("CUWHY_CORE_DUMP", s->dir, 1);
	else
		unsetenv("CUWHY_CORE_DUMP");
	if (w->dump_memory)
		setenv("CUWHY_DUMP_MEMORY", "1", 1);
	else
		unsetenv("CUWHY_DUMP_MEMORY");
	if (w->no_values)
		setenv("CUWHY_NO_VALUES", "1", 1);	/* users may have set it, too */
	return rc;
}
