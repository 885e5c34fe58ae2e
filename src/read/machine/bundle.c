/* SPDX-License-Identifier: Apache-2.0
 * A machine as one JSON object and back: the bundle (see machine.h; docs/develop/bundle.md describes it).
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/fs.h"
#include "base/str.h"
#include "compat/compat.h"
#include "read/machine/machine.h"

#define MARK		"cuwhy_bundle"
#define BUNDLE_MAX	(64u << 20)
#define GPUS_MAX	256

/* A member of a struct inside the struct, under a key of its own. */
#define IN(key_, kind_, type, member, unknown_, signed_) \
	{.key = key_, .kind = kind_, .at = offsetof(type, member), .size = sizeof(((type *)0)->member), \
		.unknown = (int64_t)(unknown_), .is_signed = signed_ \
	}
#define IN_NUMBER(key, type, member, unknown) \
	IN(key, FIELD_NUMBER, type, member, unknown, (__typeof__(((type *)0)->member))-1 < 1)
#define IN_CHARS(key, type, member) IN(key, FIELD_CHARS, type, member, 0, false)

static const struct field holder_field[] = {
	F_NUMBER(struct gpu_holder, pid, 0),	  F_NUMBER(struct gpu_holder, instance, UINT32_MAX),
	F_NUMBER(struct gpu_holder, kind, 0),	  F_WORD(struct gpu_holder, state, usage_states, HOLDER_UNKNOWN),
	F_NUMBER(struct gpu_holder, own_user, 0), F_NUMBER(struct gpu_holder, bytes, USAGE_UNKNOWN),
	F_CHARS(struct gpu_holder, command),	  F_END,
};
static const struct fields holder_fields = {holder_field, sizeof(struct gpu_holder), NULL};

static const struct field gpu_field[] = {
	IN_NUMBER("index", struct gpu_state, card.index, UINT32_MAX), IN_CHARS("uuid", struct gpu_state, card.uuid),
	IN_CHARS("pci", struct gpu_state, card.pci), IN_CHARS("name", struct gpu_state, card.name),
	IN_NUMBER("total", struct gpu_state, card.total, USAGE_UNKNOWN),
	IN_NUMBER("reserved", struct gpu_state, card.reserved, USAGE_UNKNOWN),
	IN_NUMBER("used", struct gpu_state, card.used, USAGE_UNKNOWN),
	IN_NUMBER("free", struct gpu_state, card.free, USAGE_UNKNOWN),
#define DETAIL(field, text) IN_NUMBER(#field, struct gpu_state, details.field, -1),
#include "probe/details.def"
#undef DETAIL
	F_LIST(struct gpu_state, "processes", holder, n, holder_fields),
	F_BOOL(struct gpu_state, holders_known), F_END,
};
static const struct fields gpu_fields = {gpu_field, sizeof(struct gpu_state), NULL};

static const struct field nvml_field[] = {
	F_CHARS(struct gpu_usage, driver), F_CHARS(struct gpu_usage, nvml), F_NUMBER(struct gpu_usage, cuda, -1),
	F_NUMBER(struct gpu_usage, code, 0), F_WORD(struct gpu_usage, trouble, usage_troubles, USAGE_COMPLETE),
	F_CHARS(struct gpu_usage, why), F_LIST(struct gpu_usage, "gpus", gpu, n, gpu_fields), F_END,
};

static int complete_nvml(void *it, struct pool *pool, struct err *e)
{
	struct gpu_usage *u = it;

	(void)pool;
	if (u->n > GPUS_MAX)
		return err_set(e, -EINVAL, "the bundle has %zu GPUs, more than the limit of %d", u->n, GPUS_MAX);
	for (size_t i = 0; i < u->n; i++) {
		struct gpu_state *g = &u->gpu[i];

		if (g->card.index == UINT32_MAX)
			g->card.index = (uint32_t)i;
		g->card.mig = g->details.mig == 1;
		g->cap = g->n;
	}
	u->cap = u->n;
	return 0;
}

static const struct fields nvml_fields = {nvml_field, sizeof(struct gpu_usage), complete_nvml};

static const struct field device_field[] = {
	F_CHARS(struct cuda_device, name), F_CHARS(struct cuda_device, uuid), F_CHARS(struct cuda_device, pci),
	F_NUMBER(struct cuda_device, cc_major, -1), F_NUMBER(struct cuda_device, cc_minor, -1),
	F_NUMBER(struct cuda_device, compute_mode, -1), F_NUMBER(struct cuda_device, total, USAGE_UNKNOWN),
	F_NUMBER(struct cuda_device, peers, 0), F_NUMBER(struct cuda_device, peers_known, 0), F_END,
};
static const struct fields device_fields = {device_field, sizeof(struct cuda_device), NULL};

static const struct field cuda_field[] = {
	IN_CHARS("path", struct cuda_answer, library.path),
	IN_NUMBER("init", struct cuda_answer, library.init, -1),
	IN_NUMBER("version", struct cuda_answer, library.version, -1),
	IN_NUMBER("count", struct cuda_answer, library.count, -1),
	F_WORD(struct cuda_answer, trouble, usage_troubles, USAGE_COMPLETE), F_CHARS(struct cuda_answer, why),
	F_LIST(struct cuda_answer, "devices", device, n, device_fields), F_END,
};

static int complete_cuda(void *it, struct pool *pool, struct err *e)
{
	struct cuda_answer *a = it;

	(void)pool;
	(void)e;
	a->n = a->n > CUDA_DEVICES_MAX ? CUDA_DEVICES_MAX : a->n;
	if (a->library.count < 0 && a->n)
		a->library.count = (int32_t)a->n;
	return 0;
}

static const struct fields cuda_fields = {cuda_field, sizeof(struct cuda_answer), complete_cuda};

static const char *const folder_kinds[] = {[PY_FOLDER_CWD] = "cwd", [PY_FOLDER_PYTHONPATH] = "pythonpath",
					   [PY_FOLDER_SITE] = "site", [PY_FOLDER_USER] = "user",
					   [PY_FOLDER_BASE] = "base", [PY_FOLDER_PTH] = "pth", NULL};
static const char *const sources[] = {
	[PY_DIST_INFO] = "dist-info", [PY_EGG_INFO] = "egg-info", [PY_CONDA_META] = "conda-meta", NULL};
static const char *const clashes[] = {
	[PY_CLASH_VERSION] = "version", [PY_CLASH_MISSING] = "missing", [PY_CLASH_TWICE] = "twice", NULL};
static const char *const whys[] = {[LOADER_NOT_FOUND] = "not-found", [LOADER_PRELOAD] = "preload", [LOADER_CTYPES] = "ctypes",
				   [LOADER_RPATH] = "rpath", [LOADER_LIBRARY_PATH] = "LD_LIBRARY_PATH",
				   [LOADER_RUNPATH] = "runpath", [LOADER_CACHE] = "ld.so.cache", [LOADER_DEFAULT] = "default",
				   [LOADER_PATH] = "path", NULL};
static const char *const sames[] = {
	[LOADER_SAME_UNKNOWN] = "unknown", [LOADER_SAME_FILE] = "file", [LOADER_SAME_BUILD] = "build", [LOADER_SAME_NOT] = "other", NULL};

static const struct field folder_field[] = {
	F_TEXT(struct py_folder, path), F_WORD(struct py_folder, kind, folder_kinds, PY_FOLDER_SITE),
	F_TEXT(struct py_folder, reason), F_BOOL(struct py_folder, there), F_END,
};
static const struct fields folder_fields = {folder_field, sizeof(struct py_folder), NULL};

static const struct field package_field[] = {
	F_TEXT(struct py_package, name), F_TEXT(struct py_package, version), F_TEXT(struct py_package, build),
	F_TEXT(struct py_package, folder),
	F_TEXT(struct py_package, info),
	F_WORD(struct py_package, source, sources, PY_DIST_INFO),
	F_BOOL(struct py_package, watched), F_BOOL(struct py_package, hidden), F_TEXT(struct py_package, reason),
	F_NUMBER(struct py_package, n_files, -1),
	F_NUMBER(struct py_package, n_missing, -1),
	F_NUMBER(struct py_package, n_cut, 0),
	F_TEXT(struct py_package, missing), F_END,
};

/* Texts that the judge relies on: without them an entry is useless. */
static int text_needed(const char *text, const char *what, struct err *e)
{
	return text ? 0 : err_set(e, -EINVAL, "%s in the bundle needs one", what);
}

static int complete_package(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return text_needed(((struct py_package *)it)->name, "\"name\": every package", e);
}

static const struct fields package_fields = {package_field, sizeof(struct py_package), complete_package};

static const struct field clash_field[] = {
	F_WORD(struct py_clash, kind, clashes, PY_CLASH_VERSION),
	F_TEXT(struct py_clash, package),
	F_TEXT(struct py_clash, version),
	F_TEXT(struct py_clash, requirement), F_TEXT(struct py_clash, name), F_TEXT(struct py_clash, installed), F_END,
};

static int complete_clash(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return text_needed(((struct py_clash *)it)->package, "\"package\": every clash", e);
}

static const struct fields clash_fields = {clash_field, sizeof(struct py_clash), complete_clash};

static const struct field torch_field[] = {
	F_TEXT(struct py_torch, dir), F_TEXT(struct py_torch, reason), F_TEXT(struct py_torch, version),
	F_TEXT(struct py_torch, metadata_version), F_WORD(struct py_torch, build, torch_builds, TORCH_BUILD_UNKNOWN),
	F_TEXT(struct py_torch, cuda), F_TEXT(struct py_torch, hip), F_TEXT(struct py_torch, git),
	F_TEXT(struct py_torch, cuda_library), F_NUMBER(struct py_torch, cxx11_abi, -1), F_TEXT(struct py_torch, shadow),
	F_WORD(struct py_torch, shadow_kind, folder_kinds, PY_FOLDER_CWD), F_END,
};

/* In a bundle written by hand, a version alone means that it is installed. */
static int complete_torch(void *it, struct pool *pool, struct err *e)
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

static const struct fields torch_fields = {torch_field, sizeof(struct py_torch), complete_torch};

static const struct field extension_field[] = {
	F_TEXT(struct py_extension, path), F_TEXT(struct py_extension, package), F_TEXT(struct py_extension, version),
	F_BOOL(struct py_extension, fatbin), F_BOOL(struct py_extension, torch), F_BOOL(struct py_extension, vendor),
	F_NUMBER(struct py_extension, cxx11_abi, -1), F_NUMBER(struct py_extension, n_unresolved, -1),
	F_TEXT(struct py_extension, unresolved), F_TEXT(struct py_extension, reason), F_TEXT(struct py_extension, python), F_END,
};

static int complete_extension(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return text_needed(((struct py_extension *)it)->path, "\"path\": every extension", e);
}

static const struct fields extension_fields = {extension_field, sizeof(struct py_extension), complete_extension};

static const struct field file_field[] = {
	F_TEXT(struct loader_file, soname), F_TEXT(struct loader_file, path), F_TEXT(struct loader_file, real),
	F_TEXT(struct loader_file, version), F_TEXT(struct loader_file, needed_by),
	F_WORD(struct loader_file, why, whys, LOADER_NOT_FOUND), F_TEXT(struct loader_file, because),
	F_TEXT(struct loader_file, wheel), F_TEXT(struct loader_file, wheel_version),
	F_WORD(struct loader_file, same, sames, LOADER_SAME_UNKNOWN), F_BOOL(struct loader_file, late),
	F_TEXT(struct loader_file, broken), F_TEXT(struct loader_file, skipped), F_END,
};

static int complete_file(void *it, struct pool *pool, struct err *e)
{
	(void)pool;
	return text_needed(((struct loader_file *)it)->soname, "\"soname\": every file of the loader", e);
}

static const struct fields file_fields = {file_field, sizeof(struct loader_file), complete_file};

static const struct field loader_field[] = {
	F_BOOL(struct loader_result, known), F_TEXT(struct loader_result, reason),
	F_LIST(struct loader_result, "files", file, n_files, file_fields), F_BOOL(struct loader_result, preloads),
	F_BOOL(struct loader_result, cut), F_END,
};

/* The sums follow from the files. */
static int complete_loader(void *it, struct pool *pool, struct err *e)
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

static const struct fields loader_fields = {loader_field, sizeof(struct loader_result), complete_loader};

static const struct field env_field[] = {
	F_WORD(struct pyenv, kind, pyenv_kinds, PYENV_UNKNOWN), F_NUMBER(struct pyenv, origin, 0), F_TEXT(struct pyenv, prefix),
	F_TEXT(struct pyenv, interpreter), F_TEXT(struct pyenv, base), F_TEXT(struct pyenv, reason),
	F_NUMBER(struct pyenv, major, -1), F_NUMBER(struct pyenv, minor, -1), F_NUMBER(struct pyenv, micro, -1),
	F_LIST(struct pyenv, "folders", folder, n_folders, folder_fields),
	F_LIST(struct pyenv, "packages", package, n_packages, package_fields),
	F_TEXTS(struct pyenv, "leftovers", leftover, n_leftovers),
	F_LIST(struct pyenv, "clashes", clash, n_clashes, clash_fields),
	F_OBJECT(struct pyenv, torch, torch_fields),
	F_LIST(struct pyenv, "extensions", extension, n_extensions, extension_fields),
	F_OBJECT(struct pyenv, loader, loader_fields), F_BOOL(struct pyenv, cut), F_END,
};

static int packages_in_order(const void *a, const void *b)
{
	const struct py_package *x = a, *y = b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->hidden - y->hidden;
}

/* They are looked up by name, so the order in the file does not matter. */
static int complete_env(void *it, struct pool *pool, struct err *e)
{
	struct pyenv *p = it;

	(void)pool;
	(void)e;
	xsort(p->package, p->n_packages, sizeof(*p->package), packages_in_order);
	return 0;
}

static const struct fields env_fields = {env_field, sizeof(struct pyenv), complete_env};

static const struct field driver_field[] = {
	F_TEXT(struct loader_driver, path), F_TEXT(struct loader_driver, real), F_TEXT(struct loader_driver, version),
	F_WORD(struct loader_driver, why, whys, LOADER_NOT_FOUND), F_TEXT(struct loader_driver, because),
	F_TEXT(struct loader_driver, broken), F_BOOL(struct loader_driver, compat), F_BOOL(struct loader_driver, stub),
	F_BOOL(struct loader_driver, wsl),	     F_TEXT(struct loader_driver, other),
	F_TEXT(struct loader_driver, other_version), F_END,
};
static const struct fields driver_fields = {driver_field, sizeof(struct loader_driver), NULL};

static const struct field envs_field[] = {
	F_LIST(struct pyenvs, "environments", env, n_envs, env_fields),
	F_TEXT(struct pyenvs, reason),
	F_TEXT(struct pyenvs, pythonhome),
	F_TEXT(struct pyenvs, pythonpath),
	F_OBJECT(struct pyenvs, libcuda, driver_fields),
	F_OBJECT(struct pyenvs, libnvml, driver_fields),
	F_END,
};
static const struct fields envs_fields = {envs_field, sizeof(struct pyenvs), NULL};

static const struct field library_field[] = {
	F_TEXT(struct process_library, path),	 F_TEXT(struct process_library, name),
	F_TEXT(struct process_library, version), F_BOOL(struct process_library, deleted),
	F_BOOL(struct process_library, cuda),	 F_END,
};

static int complete_library(void *it, struct pool *pool, struct err *e)
{
	const struct process_library *l = it;

	(void)pool;
	return text_needed(l->path, "\"path\": every library of the process", e) ||
			       text_needed(l->name, "\"name\": every library of the process", e)
		       ? -EINVAL
		       : 0;
}

static const struct fields library_fields = {library_field, sizeof(struct process_library), complete_library};

static const struct field process_field[] = {
	F_BOOL(struct py_process, known), F_TEXT(struct py_process, reason), F_TEXT(struct py_process, exe),
	F_LIST(struct py_process, "libraries", library, n_libraries, library_fields),
	F_TEXT(struct py_process, environ_reason),
	F_BOOL(struct py_process, cut), F_END,
};
static const struct fields process_fields = {process_field, sizeof(struct py_process), NULL};

#define CODE_MAX	4096		/* libraries, and sets in each */
#define TARGETS_MAX	512
#define COUNT_MAX	1000000
#define NOT_SAID	INT64_MIN	/* of a number that is always written */

/* What a bundle has of a library: fat binaries with the same targets are one set, its targets are words, "sm_90 sm_90a
 * compute_120@8.7 lto_90". In a bundle written by hand, one line of words is enough: `archs`. */
struct bundle_set {
	int64_t count;
	const char *targets;
	bool linked;
};

struct bundle_code {
	int64_t env;
	const char *path, *package, *version, *reason;
	bool torch;
	struct bundle_set *set;
	ptrdiff_t n_sets;
	const char *damaged, *archs;
};

static const struct field set_field[] = {
	F_NUMBER(struct bundle_set, count, 0), F_TEXT(struct bundle_set, targets), F_BOOL(struct bundle_set, linked), F_END,
};
static const struct fields set_fields = {set_field, sizeof(struct bundle_set), NULL};

static const struct field code_field[] = {
	F_NUMBER(struct bundle_code, env, NOT_SAID), F_TEXT(struct bundle_code, path), F_TEXT(struct bundle_code, package),
	F_TEXT(struct bundle_code, version), F_TEXT(struct bundle_code, reason), F_BOOL(struct bundle_code, torch),
	F_KNOWN_LIST(struct bundle_code, "sets", set, n_sets, set_fields), F_TEXT(struct bundle_code, damaged),
	F_TEXT(struct bundle_code, archs), F_END,
};
static const struct fields code_fields = {code_field, sizeof(struct bundle_code), NULL};

struct bundle_ptxas {
	int64_t env, cuda;
	const char *path;
};

static const struct field ptxas_field[] = {
	F_NUMBER(struct bundle_ptxas, env, NOT_SAID),
	F_NUMBER(struct bundle_ptxas, cuda, NOT_SAID),
	F_TEXT(struct bundle_ptxas, path),
	F_END,
};
static const struct fields ptxas_fields = {ptxas_field, sizeof(struct bundle_ptxas), NULL};

static const char *const prefixes[] = {[FATBIN_SASS] = "sm_", [FATBIN_PTX] = "compute_", [FATBIN_LTO] = "lto_"};
#define N_PREFIXES (sizeof(prefixes) / sizeof(prefixes[0]))

static const char *target_words(struct pool *pool, const struct fatbin *f, const struct fatbin_set *s)
{
	const char *words;
	struct buf b;

	buf_init(&b, 1 << 16);
	for (size_t i = 0; i < s->n; i++) {
		const struct fatbin_target *t = &f->target[s->target[i]];

		if (t->kind >= N_PREFIXES)
			continue;
		buf_printf(&b, "%s%s%d", b.len ? " " : "", prefixes[t->kind], t->arch);
		if (t->suffix)
			buf_add(&b, &t->suffix, 1);
		if (t->kind == FATBIN_PTX && t->ptx)
			buf_printf(&b, "@%d.%d", t->ptx / 10, t->ptx % 10);
	}
	words = pool_copy(pool, b.data ? b.data : "", b.len);
	buf_release(&b);
	return words;
}

static json_t *code_to_json(const struct machine_code *c)
{
	struct bundle_code o = {.env = (int64_t)c->env, .path = c->path, .package = c->package, .version = c->version,
				.reason = c->reason, .torch = c->torch, .n_sets = -1};
	struct pool pool = {0};
	json_t *j;

	if (c->fatbin) {
		o.n_sets = (ptrdiff_t)c->fatbin->n_sets;
		o.set = pool_alloc(&pool, (c->fatbin->n_sets + 1) * sizeof(*o.set));
		o.damaged = c->fatbin->damaged ? c->fatbin->why : NULL;
	}
	for (ptrdiff_t i = 0; i < o.n_sets; i++) {
		const struct fatbin_set *s = &c->fatbin->set[i];

		o.set[i] = (struct bundle_set){s->count, target_words(&pool, c->fatbin, s), s->linked};
	}
	j = fields_write(&code_fields, &o);
	pool_release(&pool);
	return j;
}

static json_t *part_write_code(const struct machine *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_code; i++)
		json_array_append_new(list, code_to_json(&m->code[i]));
	return list;
}

static json_t *part_write_ptxas(const struct machine *m)
{
	json_t *list = json_array();

	for (size_t i = 0; i < m->n_ptxas; i++) {
		const struct machine_ptxas *p = &m->ptxas[i];

		json_array_append_new(
			list, fields_write(&ptxas_fields, &(struct bundle_ptxas){(int64_t)p->env, p->cuda, p->path}));
	}
	return list;
}

static bool target_read(const char *word, size_t len, struct fatbin_target *t, int ptx)
{
	char text[32], *end;
	size_t k = 0;

	if (len >= sizeof(text))
		return false;
	memcpy(text, word, len);
	text[len] = '\0';
	while (k < N_PREFIXES && !str_starts(text, prefixes[k]))
		k++;
	if (k == N_PREFIXES || !isdigit((unsigned char)text[strlen(prefixes[k])]))
		return false;
	*t = (struct fatbin_target){.kind = (enum fatbin_kind)k};
	t->arch = (int)strtol(text + strlen(prefixes[k]), &end, 10);
	if (*end == 'a' || *end == 'f')
		t->suffix = *end++;
	if (k == FATBIN_PTX)
		t->ptx = ptx;
	if (k == FATBIN_PTX && *end == '@') {
		t->ptx = (int)strtol(end + 1, &end, 10) * 10;
		if (*end == '.')
			t->ptx += (int)strtol(end + 1, &end, 10);
	}
	return *end == '\0' && t->arch >= 10 && t->arch < 1000;
}

/* The index of a target in the library's list; a new one is added. */
static int target_place(struct fatbin *f, const struct fatbin_target *t)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->target[i].kind == t->kind && f->target[i].arch == t->arch && f->target[i].suffix == t->suffix &&
		    f->target[i].ptx == t->ptx)
			return (int)i;
	if (f->n == TARGETS_MAX)
		return -1;
	f->target[f->n] = *t;
	return (int)f->n++;
}

static int set_add(struct fatbin *f, struct pool *pool, const char *words, uint32_t count, bool linked, int ptx,
		   struct err *e)
{
	struct fatbin_set *s = &f->set[f->n_sets];
	uint16_t *places = pool_alloc(pool, (strlen(words) / 2 + 1) * sizeof(*places));
	struct fatbin_target t;
	int at;

	*s = (struct fatbin_set){.count = count, .linked = linked, .target = places};
	for (words += strspn(words, " "); *words; words += strspn(words, " ")) {
		size_t len = strcspn(words, " ");

		at = target_read(words, len, &t, ptx) ? target_place(f, &t) : -1;
		if (at < 0)
			return err_set(e, -EINVAL,
				       "'%.*s' in the bundle is not a GPU code target such as sm_90 or compute_90@8.7",
				       (int)(len < 40 ? len : 40), words);
		places[s->n++] = (uint16_t)at;
		s->general |= !t.suffix && t.kind != FATBIN_LTO;
		words += len;
	}
	for (size_t i = 0; i < s->n; i++) {
		f->target[places[i]].in += count;
		f->target[places[i]].in_general += s->general ? count : 0;
	}
	f->binaries += count;
	f->general += s->general ? count : 0;
	f->n_sets++;
	return 0;
}

/* PTX without a version is assumed to be from the toolkit that the environment's torch was built with. */
static int code_usual_ptx(const struct machine *m, size_t env)
{
	const char *cuda = env < m->envs.n_envs ? m->envs.env[env].torch.cuda : NULL;
	int major = 0, minor = 0;

	if (!cuda || sscanf(cuda, "%d.%d", &major, &minor) != 2 || major < 0 || major > 99 || minor < 0 || minor > 99)
		return 0;
	return compat_ptx_of_cuda(major * 1000 + minor * 10);
}

static int set_wrong(struct err *e)
{
	return err_set(e, -EINVAL, "a set of GPU code in the bundle should have \"targets\" (a text) and \"count\"");
}

static struct fatbin *code_fatbin(struct machine *m, const struct bundle_code *o, int ptx, struct err *e)
{
	struct fatbin *f = pool_alloc(&m->pool, sizeof(*f));
	size_t n = o->n_sets > 0 && !o->archs ? (size_t)o->n_sets : 0;

	f->target = pool_alloc(&m->pool, TARGETS_MAX * sizeof(*f->target));
	f->set = pool_alloc(&m->pool, (n + 1) * sizeof(*f->set));
	if (o->archs && set_add(f, &m->pool, o->archs, 1, false, ptx, e))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct bundle_set *s = &o->set[i];

		if ((!s->targets || s->count < 0 || s->count > COUNT_MAX) && set_wrong(e))
			return NULL;
		if (set_add(f, &m->pool, s->targets, s->count ? (uint32_t)s->count : 1, s->linked, ptx, e))
			return NULL;
	}
	f->damaged = o->damaged != NULL;
	str_copy(f->why, sizeof(f->why), o->damaged ? o->damaged : "");
	return f;
}

static int code_from_json(struct machine *m, const json_t *j, struct machine_code *c, struct err *e)
{
	const json_t *sets = json_object_get(j, "sets");
	struct bundle_code o;

	if (!json_is_object(j) || (sets && !json_is_array(sets)))
		return err_set(e, -EINVAL,
			       "an entry of 'code' in the bundle should be an object with \"sets\" or \"archs\"");
	fields_read_fitting(&code_fields, j, &o, &m->pool);
	if (o.env == NOT_SAID)
		o.env = 0;
	if (o.env < 0 || (size_t)o.env >= m->envs.n_envs)
		return err_set(e, -EINVAL,
			       "an entry of 'code' in the bundle names an environment that is not in the bundle");
	*c = (struct machine_code){.env = (size_t)o.env, .path = o.path, .package = o.package, .version = o.version,
				   .torch = o.torch, .reason = o.reason};
	if (!c->path)
		c->path = c->torch ? "libtorch_cuda.so" : c->package ? c->package : "a library";
	if (!sets && !o.archs)
		return 0;
	if (json_array_size(sets) > CODE_MAX)
		return err_set(e, -EINVAL, "the bundle lists more than %d sets of GPU code for a library", CODE_MAX);
	if (!o.archs && (size_t)o.n_sets != json_array_size(sets))
		return set_wrong(e);
	c->fatbin = code_fatbin(m, &o, code_usual_ptx(m, c->env), e);
	return c->fatbin ? 0 : -EINVAL;
}

static int part_read_code(struct machine *m, const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);

	if (list && (!json_is_array(list) || n > CODE_MAX))
		return err_set(e, -EINVAL, "'code' in the bundle should be a list");
	m->code = pool_alloc(&m->pool, (n + 1) * sizeof(*m->code));
	for (size_t i = 0; i < n; i++)
		if (code_from_json(m, json_array_get(list, i), &m->code[m->n_code++], e))
			return -EINVAL;
	return 0;
}

static int part_read_ptxas(struct machine *m, const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);

	if (list && (!json_is_array(list) || n > CODE_MAX))
		return err_set(e, -EINVAL, "'ptxas' in the bundle should be a list");
	m->ptxas = pool_alloc(&m->pool, (n + 1) * sizeof(*m->ptxas));
	for (size_t i = 0; i < n; i++) {
		struct bundle_ptxas o;

		fields_read_fitting(&ptxas_fields, json_array_get(list, i), &o, &m->pool);
		o.env = o.env == NOT_SAID ? 0 : o.env;
		o.cuda = o.cuda == NOT_SAID ? 0 : o.cuda;
		if (o.env < 0 || (size_t)o.env >= m->envs.n_envs || o.cuda < 0 || o.cuda > 100000)
			return err_set(
				e, -EINVAL,
				"an entry of 'ptxas' in the bundle should have \"env\" and \"cuda\" (12080 is 12.8)");
		m->ptxas[m->n_ptxas++] = (struct machine_ptxas){(size_t)o.env, o.path, (int)o.cuda};
	}
	return 0;
}

/* The variables are checked again when a bundle is read: this cuwhy may know more about them. */
static json_t *part_write_variables(const struct machine *m)
{
	json_t *o = m->variables.known ? json_object() : NULL;

	for (size_t i = 0; i < m->variables.n_set; i++)
		json_object_set_new(o, m->variables.set[i].name, json_string(m->variables.set[i].value));
	return o;
}

static int part_read_variables(struct machine *m, const json_t *o, struct err *e)
{
	const char **env, *key;
	size_t n = 0;
	json_t *v;

	if (!o) {
		variables_judge(&m->variables, &m->pool, NULL);
		return 0;
	}
	if (!json_is_object(o))
		return err_set(e, -EINVAL, "'variables' in the bundle should be an object");
	env = pool_alloc(&m->pool, (json_object_size(o) + 1) * sizeof(*env));
	json_object_foreach((json_t *)(uintptr_t)o, key, v) {
		if (!json_is_string(v))
			return err_set(e, -EINVAL, "'variables.%.60s' in the bundle should be a text", key);
		env[n++] = pool_printf(&m->pool, "%s=%s", key, json_string_value(v));
	}
	variables_judge(&m->variables, &m->pool, env);
	return 0;
}

static json_t *part_write_made_by(const struct machine *m)
{
	return m->made_by ? json_string(m->made_by) : NULL;
}

static int part_read_made_by(struct machine *m, const json_t *o, struct err *e)
{
	(void)e;
	m->made_by = json_is_string(o) ? pool_strdup(&m->pool, json_string_value(o)) : NULL;
	return 0;
}

static json_t *part_write_host(const struct machine *m)
{
	return host_to_json(&m->host);
}

static int part_read_host(struct machine *m, const json_t *o, struct err *e)
{
	if (!host_from_json(&m->host, &m->pool, o) && o)
		return err_set(e, -EINVAL, "'host' in the bundle should be an object");
	m->bus_known = m->host.n_gpu >= 0 && host_told(&m->host, "the PCI bus");
	m->nodes_known = m->host.n_node >= 0 && host_told(&m->host, "/dev");
	return 0;
}

static json_t *part_write_nvml(const struct machine *m)
{
	return m->nvml ? fields_write(&nvml_fields, m->nvml) : NULL;
}

static int part_read_nvml(struct machine *m, const json_t *o, struct err *e)
{
	if (!o || json_is_null(o))
		return 0;
	m->nvml = pool_alloc(&m->pool, sizeof(*m->nvml));
	return fields_read(&nvml_fields, o, m->nvml, "nvml", &m->pool, e);
}

/* `o` NULL or null: nothing is known. */
static int part_read_struct(struct machine *m, const json_t *o, const char *key, const struct fields *f, void *it,
			    struct err *e)
{
	if (o && !json_is_null(o))
		return fields_read(f, o, it, key, &m->pool, e);
	fields_init(f, it);
	return 0;
}

static json_t *part_write_cuda(const struct machine *m)
{
	return m->cuda_asked ? fields_write(&cuda_fields, &m->cuda) : NULL;
}

static int part_read_cuda(struct machine *m, const json_t *o, struct err *e)
{
	m->cuda_asked = json_is_object(o);
	return part_read_struct(m, o, "cuda", &cuda_fields, &m->cuda, e);
}

static json_t *part_write_python(const struct machine *m)
{
	return fields_write(&envs_fields, &m->envs);
}

static int part_read_python(struct machine *m, const json_t *o, struct err *e)
{
	return part_read_struct(m, o, "python", &envs_fields, &m->envs, e);
}

static json_t *part_write_process(const struct machine *m)
{
	return m->pid ? fields_write(&process_fields, &m->process) : NULL;
}

static int part_read_process(struct machine *m, const json_t *o, struct err *e)
{
	m->pid = json_is_object(o);
	return part_read_struct(m, o, "process", &process_fields, &m->process, e);
}

/* In the order in which they are written and read: code belongs to an environment. */
static const struct part {
	const char *key;
	json_t *(*write)(const struct machine *m);	/* NULL: not collected */
	int (*read)(struct machine *m, const json_t *o, struct err *e);	/* `o` NULL: it is missing */
} parts[] = {
#define PART(key)	{#key, part_write_##key, part_read_##key}
	PART(made_by), PART(host), PART(variables), PART(nvml),	   PART(cuda),
	PART(python),  PART(code), PART(ptxas),	    PART(process),
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

json_t *machine_to_json(const struct machine *m)
{
	json_t *o = json_pack("{s:i}", MARK, BUNDLE_VERSION), *value;

	for (size_t i = 0; i < N_PARTS; i++)
		if ((value = parts[i].write(m)))
			json_object_set_new(o, parts[i].key, value);
	return o;
}

/* Besides the parts there may be a note by its author. */
static bool is_part(const char *key)
{
	for (size_t i = 0; i < N_PARTS; i++)
		if (strcmp(parts[i].key, key) == 0)
			return true;
	return strcmp(key, MARK) == 0 || strcmp(key, "note") == 0;
}

static int check_parts(const json_t *o, struct err *e)
{
	const json_t *version = json_object_get(o, MARK);
	const char *key;
	json_t *v;

	if (!json_is_object(o) || !json_is_integer(version))
		return err_set(e, -EINVAL, "not a cuwhy bundle: \"" MARK "\" is missing");
	if (json_integer_value(version) != BUNDLE_VERSION)
		return err_set(e, -EINVAL, "the bundle has version %lld, this cuwhy reads version %d",
			       (long long)json_integer_value(version), BUNDLE_VERSION);
	json_object_foreach((json_t *)(uintptr_t)o, key, v)
		if (!is_part(key))
			return err_set(e, -EINVAL, "'%.60s' in the bundle is not a part that cuwhy knows", key);
	return 0;
}

int machine_from_json(struct machine *m, const json_t *o, struct err *e)
{
	*m = (struct machine){.bundle = true};
	cuda_answer_init(&m->cuda);
	host_unknown(&m->host);
	if (check_parts(o, e))
		return -EINVAL;
	for (size_t i = 0; i < N_PARTS; i++)
		if (parts[i].read(m, json_object_get(o, parts[i].key), e))
			return -EINVAL;
	return 0;
}

int machine_load(struct machine *m, const char *path, struct err *e)
{
	struct err inner = {0};
	json_t *o = json_read(path, BUNDLE_MAX, &inner);
	int rc;

	*m = (struct machine){.bundle = true};
	if (!o) {
		err_set(e, inner.code, "%s", inner.msg);
		return inner.code == -EINVAL ? err_hint(e, "'cuwhy doctor --bundle FILE' writes a bundle") : inner.code;
	}
	rc = machine_from_json(m, o, e);
	json_decref(o);
	return rc;
}
