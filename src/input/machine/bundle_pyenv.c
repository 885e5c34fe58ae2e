/* SPDX-License-Identifier: Apache-2.0
 * Python environments in a bundle: one table per struct of src/pyenv.
 */
#include "input/machine/bundle_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "input/machine/pyenv/process.h"
#include "input/machine/pyenv/pyenv.h"

static const char *const kinds[] = {[PYENV_UNKNOWN] = "unknown", [PYENV_VENV] = "venv", [PYENV_CONDA] = "conda",
				    [PYENV_SYSTEM] = "system", [PYENV_OTHER] = "other", NULL};
static const char *const builds[] = {[TORCH_BUILD_UNKNOWN] = "unknown", [TORCH_BUILD_CPU] = "cpu", [TORCH_BUILD_CUDA] = "cuda",
				     [TORCH_BUILD_ROCM] = "rocm", [TORCH_BUILD_XPU] = "xpu", NULL};
static const char *const folder_kinds[] = {[PY_FOLDER_CWD] = "cwd", [PY_FOLDER_PYTHONPATH] = "pythonpath",
					   [PY_FOLDER_SITE] = "site", [PY_FOLDER_USER] = "user",
					   [PY_FOLDER_BASE] = "base", [PY_FOLDER_PTH] = "pth", NULL};
static const char *const sources[] = {[PY_DIST_INFO] = "dist-info", [PY_EGG_INFO] = "egg-info", [PY_CONDA_META] = "conda-meta",
				      NULL};
static const char *const clashes[] = {[PY_CLASH_VERSION] = "version", [PY_CLASH_MISSING] = "missing", [PY_CLASH_TWICE] = "twice",
				      NULL};
static const char *const whys[] = {[LOADER_NOT_FOUND] = "not-found", [LOADER_PRELOAD] = "preload", [LOADER_CTYPES] = "ctypes",
				   [LOADER_RPATH] = "rpath", [LOADER_LIBRARY_PATH] = "LD_LIBRARY_PATH",
				   [LOADER_RUNPATH] = "runpath", [LOADER_CACHE] = "ld.so.cache", [LOADER_DEFAULT] = "default",
				   [LOADER_PATH] = "path", NULL};
static const char *const sames[] = {[LOADER_SAME_UNKNOWN] = "unknown", [LOADER_SAME_FILE] = "file", [LOADER_SAME_BUILD] = "build",
				    [LOADER_SAME_NOT] = "other", NULL};

static const struct field folder_field[] = {
	F_TEXT(struct py_folder, path), F_WORD(struct py_folder, kind, folder_kinds, PY_FOLDER_SITE),
	F_TEXT(struct py_folder, reason), F_BOOL(struct py_folder, there), F_END,
};
static const struct fields folder = {folder_field, sizeof(struct py_folder), NULL};

static const struct field package_field[] = {
	F_TEXT(struct py_package, name), F_TEXT(struct py_package, version), F_TEXT(struct py_package, build),
	F_TEXT(struct py_package, folder), F_TEXT(struct py_package, info), F_WORD(struct py_package, source, sources, PY_DIST_INFO),
	F_BOOL(struct py_package, watched), F_BOOL(struct py_package, hidden), F_TEXT(struct py_package, reason),
	F_NUMBER(struct py_package, n_files, -1), F_NUMBER(struct py_package, n_missing, -1), F_NUMBER(struct py_package, n_cut, 0),
	F_TEXT(struct py_package, missing), F_END,
};

/* Texts that the judge relies on: without them an entry says nothing. */
static int need(const char *text, const char *what, struct err *e)
{
	return text ? 0 : err_set(e, -EINVAL, "%s in the bundle needs one", what);
}

static int check_package(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return need(((struct py_package *)it)->name, "\"name\": every package", e);
}

static const struct fields package = {package_field, sizeof(struct py_package), check_package};

static const struct field clash_field[] = {
	F_WORD(struct py_clash, kind, clashes, PY_CLASH_VERSION), F_TEXT(struct py_clash, package), F_TEXT(struct py_clash, version),
	F_TEXT(struct py_clash, requirement), F_TEXT(struct py_clash, name), F_TEXT(struct py_clash, installed), F_END,
};

static int check_clash(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return need(((struct py_clash *)it)->package, "\"package\": every clash", e);
}

static const struct fields clash = {clash_field, sizeof(struct py_clash), check_clash};

static const struct field torch_field[] = {
	F_TEXT(struct py_torch, dir), F_TEXT(struct py_torch, reason), F_TEXT(struct py_torch, version),
	F_TEXT(struct py_torch, metadata_version), F_WORD(struct py_torch, build, builds, TORCH_BUILD_UNKNOWN),
	F_TEXT(struct py_torch, cuda), F_TEXT(struct py_torch, hip), F_TEXT(struct py_torch, git),
	F_TEXT(struct py_torch, cuda_library), F_NUMBER(struct py_torch, cxx11_abi, -1), F_TEXT(struct py_torch, shadow),
	F_WORD(struct py_torch, shadow_kind, folder_kinds, PY_FOLDER_CWD), F_END,
};

/* Written by hand, a version alone means that there is one. */
static int check_torch(void *it, struct pool *pool, struct err *e)
{
	struct py_torch *t = it;

	(void)pool;
	(void)e;
	if (!t->dir && t->version)
		t->dir = "torch";
	if (t->build == TORCH_BUILD_UNKNOWN && t->cuda)
		t->build = TORCH_BUILD_CUDA;
	return 0;
}

static const struct fields torch = {torch_field, sizeof(struct py_torch), check_torch};

static const struct field extension_field[] = {
	F_TEXT(struct py_extension, path), F_TEXT(struct py_extension, package), F_TEXT(struct py_extension, version),
	F_BOOL(struct py_extension, fatbin), F_BOOL(struct py_extension, torch), F_BOOL(struct py_extension, vendor),
	F_NUMBER(struct py_extension, cxx11_abi, -1), F_NUMBER(struct py_extension, n_unresolved, -1),
	F_TEXT(struct py_extension, unresolved), F_TEXT(struct py_extension, reason), F_TEXT(struct py_extension, python), F_END,
};

static int check_extension(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return need(((struct py_extension *)it)->path, "\"path\": every extension", e);
}

static const struct fields extension = {extension_field, sizeof(struct py_extension), check_extension};

static const struct field file_field[] = {
	F_TEXT(struct loader_file, soname), F_TEXT(struct loader_file, path), F_TEXT(struct loader_file, real),
	F_TEXT(struct loader_file, version), F_TEXT(struct loader_file, needed_by),
	F_WORD(struct loader_file, why, whys, LOADER_NOT_FOUND), F_TEXT(struct loader_file, because),
	F_TEXT(struct loader_file, wheel), F_TEXT(struct loader_file, wheel_version),
	F_WORD(struct loader_file, same, sames, LOADER_SAME_UNKNOWN), F_BOOL(struct loader_file, late),
	F_TEXT(struct loader_file, broken), F_TEXT(struct loader_file, skipped), F_END,
};

static int check_file(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return need(((struct loader_file *)it)->soname, "\"soname\": every file of the loader", e);
}

static const struct fields file = {file_field, sizeof(struct loader_file), check_file};

static const struct field loader_field[] = {
	F_BOOL(struct loader_result, known), F_TEXT(struct loader_result, reason),
	F_LIST(struct loader_result, "files", file, n_files, file), F_BOOL(struct loader_result, preloads),
	F_BOOL(struct loader_result, cut), F_END,
};

/* The sums follow from the files. */
static int check_loader(void *it, struct pool *pool, struct err *e)
{
	struct loader_result *l = it;

	(void)pool;
	(void)e;
	l->n_other = l->n_not_found = 0;
	l->known |= l->n_files > 0;
	for (size_t i = 0; i < l->n_files; i++) {
		l->n_other += l->file[i].same == LOADER_SAME_NOT;
		l->n_not_found += !l->file[i].path && !l->file[i].late;
	}
	return 0;
}

static const struct fields loader = {loader_field, sizeof(struct loader_result), check_loader};

static const struct field env_field[] = {
	F_WORD(struct pyenv, kind, kinds, PYENV_UNKNOWN), F_NUMBER(struct pyenv, origin, 0), F_TEXT(struct pyenv, prefix),
	F_TEXT(struct pyenv, interpreter), F_TEXT(struct pyenv, base), F_TEXT(struct pyenv, reason),
	F_NUMBER(struct pyenv, major, -1), F_NUMBER(struct pyenv, minor, -1), F_NUMBER(struct pyenv, micro, -1),
	F_LIST(struct pyenv, "folders", folder, n_folders, folder), F_LIST(struct pyenv, "packages", package, n_packages, package),
	F_TEXTS(struct pyenv, "leftovers", leftover, n_leftovers), F_LIST(struct pyenv, "clashes", clash, n_clashes, clash),
	F_OBJECT(struct pyenv, torch, torch), F_LIST(struct pyenv, "extensions", extension, n_extensions, extension),
	F_OBJECT(struct pyenv, loader, loader), F_BOOL(struct pyenv, cut), F_END,
};

static int by_name(const void *a, const void *b)
{
	const struct py_package *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->hidden - y->hidden;
}

/* They are looked up by name, in whatever order people write them. */
static int check_env(void *it, struct pool *pool, struct err *e)
{
	struct pyenv *p = it;

	(void)pool;
	(void)e;
	if (p->n_packages)
		qsort(p->package, p->n_packages, sizeof(*p->package), by_name);
	return 0;
}

static const struct fields env = {env_field, sizeof(struct pyenv), check_env};

static const struct field driver_field[] = {
	F_TEXT(struct loader_driver, path), F_TEXT(struct loader_driver, real), F_TEXT(struct loader_driver, version),
	F_WORD(struct loader_driver, why, whys, LOADER_NOT_FOUND), F_TEXT(struct loader_driver, because),
	F_TEXT(struct loader_driver, broken), F_BOOL(struct loader_driver, compat), F_BOOL(struct loader_driver, stub),
	F_BOOL(struct loader_driver, wsl), F_TEXT(struct loader_driver, other), F_TEXT(struct loader_driver, other_version), F_END,
};
static const struct fields driver = {driver_field, sizeof(struct loader_driver), NULL};

static const struct field envs_field[] = {
	F_LIST(struct pyenvs, "environments", env, n_envs, env), F_TEXT(struct pyenvs, reason), F_TEXT(struct pyenvs, pythonhome),
	F_TEXT(struct pyenvs, pythonpath), F_OBJECT(struct pyenvs, libcuda, driver), F_OBJECT(struct pyenvs, libnvml, driver), F_END,
};
const struct fields bundle_envs = {envs_field, sizeof(struct pyenvs), NULL};

static const struct field library_field[] = {
	F_TEXT(struct process_library, path), F_TEXT(struct process_library, name), F_TEXT(struct process_library, version),
	F_BOOL(struct process_library, deleted), F_BOOL(struct process_library, cuda), F_END,
};

static int check_library(void *it, struct pool *pool, struct err *e)
{
	const struct process_library *l = it;

	(void)pool;
	return need(l->path, "\"path\": every library of the process", e) || need(l->name, "\"name\": every library of the process", e) ?
	       -EINVAL : 0;
}

static const struct fields library = {library_field, sizeof(struct process_library), check_library};

static const struct field process_field[] = {
	F_BOOL(struct py_process, known), F_TEXT(struct py_process, reason), F_TEXT(struct py_process, exe),
	F_LIST(struct py_process, "libraries", library, n_libraries, library), F_TEXT(struct py_process, environ_reason),
	F_BOOL(struct py_process, cut), F_END,
};
const struct fields bundle_process = {process_field, sizeof(struct py_process), NULL};
