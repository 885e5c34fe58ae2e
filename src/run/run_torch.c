/* SPDX-License-Identifier: Apache-2.0
 * Before a dry run starts: can the PyTorch that the program would import run on a simulated GPU? Python is not run for this.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"
#include "formats/elf_file.h"
#include "read/machine/pyenv/pyenv.h"

#define TORCH_OLDEST	"2.4"	/* the oldest release whose imports the stand-ins were checked against */
#define SYMBOLS_MAX	1000000

static bool is_python(const char *path)
{
	const char *slash = strrchr(path, '/');

	return str_starts(slash ? slash + 1 : path, "python");
}

/* The interpreter in the first line of a script: "#!/venv/bin/python", "#!/usr/bin/env python3". */
static char *script_python(const char *path)
{
	char line[256], *rest = NULL, *word, *found = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	line[n < 0 ? 0 : n] = '\0';
	if (!str_starts(line, "#!"))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	for (word = strtok_r(line + 2, " \t", &rest); word && !found; word = strtok_r(NULL, " \t", &rest))
		found = is_python(word) ? env_find_program(word) : NULL;
	return found;
}

static char *python_of(char **argv)
{
	char *path = env_find_program(argv[0]), *python;

	if (!path || is_python(path))
		return path;
	python = script_python(path);
	free(path);
	return python;
}

static const char *const torch_libraries[] = {"libc10_cuda.so", "libtorch_cuda.so", "libtorch_cuda_linalg.so",
					      "libtorch_python.so"};
static const char *const prefixes[] = {"cuda",	   "__cuda", "cublas", "cudnn", "cufft", "curand",
				       "cusolver", "cusparse", "nccl",  "nvrtc", "nvshmem", "nvtx"};

enum { STAND_INS_MAX = 64 };

struct search {
	struct elf_file *stand_in;
	size_t n_stand_ins;
	char missing[128];
};

static bool has_stand_in(void *arg, const char *name, bool weak)
{
	struct search *s = arg;
	bool ours = false;

	for (size_t i = 0; !weak && !ours && i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		ours = str_starts(name, prefixes[i]);
	if (!ours)
		return true;
	for (size_t i = 0; i < s->n_stand_ins; i++)
		if (elf_exports(&s->stand_in[i], name))
			return true;
	str_copy(s->missing, sizeof(s->missing), name);
	return false;
}

static void open_stand_ins(struct search *s, struct pool *pool, const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL && s->n_stand_ins < STAND_INS_MAX) {
		char *path = fs_join(folder, entry->d_name);

		if (elf_open(&s->stand_in[s->n_stand_ins], pool, "", path, EM_X86_64) == 0)
			s->n_stand_ins++;
		free(path);
	}
	if (dir)
		closedir(dir);
}

/* A function that this PyTorch imports and no stand-in has; "" if there is none. */
static void find_missing(struct search *s, struct pool *pool, const char *torch)
{
	char *folder = proc_find_part("sim");

	if (folder)
		open_stand_ins(s, pool, folder);
	for (size_t i = 0; folder && i < sizeof(torch_libraries) / sizeof(torch_libraries[0]); i++) {
		char *path = xasprintf("%s/lib/%s", torch, torch_libraries[i]);
		struct elf_file f;

		if (!s->missing[0] && elf_open(&f, pool, "", path, EM_X86_64) == 0) {
			elf_symbols(&f, true, SYMBOLS_MAX, has_stand_in, s);
			elf_close(&f);
		}
		free(path);
	}
	for (size_t i = 0; i < s->n_stand_ins; i++)
		elf_close(&s->stand_in[i]);
	free(folder);
}

static int check_version(const struct py_torch *t, struct err *e)
{
	int major = 0, minor = 0;

	if (!t->version || sscanf(t->version, "%d.%d", &major, &minor) != 2 || major > 2 || (major == 2 && minor >= 4))
		return 0;
	return err_set(e, -EINVAL,
		       "PyTorch %s in '%s' is too old for a simulated GPU, which needs " TORCH_OLDEST " or newer",
		       t->version, t->dir);
}

static int check_build(const struct py_torch *t, struct err *e)
{
	const char *version = t->version ? t->version : "";

	switch (t->build) {
	case TORCH_BUILD_CPU:
		err_set(e, -EINVAL,
			"PyTorch %s in '%s' is built for CPUs alone: a simulated GPU needs one that is built for CUDA",
			version, t->dir);
		return err_hint(e, "on Linux, `pip install torch` installs one; no GPU is needed for it");
	case TORCH_BUILD_ROCM:
	case TORCH_BUILD_XPU:
		return err_set(
			e, -EINVAL,
			"PyTorch %s in '%s' is built for GPUs of another vendor (%s), the simulated ones are NVIDIA's",
			version, t->dir, torch_build_name(t->build));
	case TORCH_BUILD_CUDA:
		if (t->cuda && strtol(t->cuda, NULL, 10) < 12)
			return err_set(e, -EINVAL, "PyTorch %s in '%s' is built for CUDA %s, the simulated GPU is for CUDA 12 and 13",
				       version, t->dir, t->cuda);
		return check_version(t, e);
	case TORCH_BUILD_UNKNOWN:
		break;
	}
	return 0;
}

static int check_functions(const struct py_torch *t, struct pool *pool, struct err *e)
{
	struct elf_file stand_ins[STAND_INS_MAX];
	struct search s = {.stand_in = stand_ins};

	find_missing(&s, pool, t->dir);
	if (!s.missing[0])
		return 0;
	return err_set(e, -EINVAL, "PyTorch %s in '%s' needs %s, which the simulated GPU does not have yet",
		       t->version ? t->version : "", t->dir, s.missing);
}

int torch_check(char **argv, struct err *e)
{
	char *python = python_of(argv);
	struct pyenv_input in = {.root = "", .environ = (const char *const *)environ, .python = python, .no_extensions = true,
				 .no_loader = true};
	const struct py_torch *t;
	struct pyenvs all;
	int rc = 0;

	if (!python)
		return 0;
	pyenv_scan(&all, &in);
	t = all.n_envs ? &all.env[0].torch : NULL;
	if (t && t->dir) {
		rc = check_build(t, e);
		if (rc == 0 && t->build == TORCH_BUILD_CUDA)
			rc = check_functions(t, &all.pool, e);
	}
	pyenv_release(&all);
	free(python);
	return rc;
}
