/* SPDX-License-Identifier: Apache-2.0
 * Environment variables of interest and what is wrong with them (see variables.h).
 */
#include "input/machine/variables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/tree.h"
#include "input/machine/variables_priv.h"
#include "base/banned.h"

#define ENVIRON_MAX	(8u << 20)	/* the kernel lets a program have no more by far */
#define NAMES_MAX	256		/* a longer name is nobody's */
#define FINDINGS_MAX	256
#define OUTSIDE_MAX	2000		/* names of others that are looked at for slips */

/* Whose names begin so; `closed`: all of them are in the list, so an unknown one is remarkable. */
static const struct { const char *prefix; bool closed; } families[] = {
	{"CUDA_", true}, {"NCCL_", true}, {"PYTORCH_", true}, {"TORCH_NCCL_", true}, {"CUBLAS_", true}, {"CUDNN_", true}, {"CUDA", false},
	{"TORCH", false}, {"NVIDIA_", false}, {"CUBLASLT_", false}, {"TRITON_", false}, {"XLA_", false}, {"JAX_", false}, {"NVSHMEM_", false},
	{"CUFFT_", false}, {"CUSPARSE_", false}, {"NVRTC_", false}, {"CUPTI_", false}, {"GLOO_", false}, {"KINETO_", false}, {"NVCC_", false},
};

static int family_of(const char *name)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strncasecmp(name, families[i].prefix, strlen(families[i].prefix)) == 0)
			return (int)i;
	return -1;
}

/* Images, build scripts and plugins make names of their own. */
static bool is_elsewhere(const char *name)
{
	static const char *const ends[] = {"_VERSION", "_HOME", "_ROOT", "_DIR", "_PATH", "_LIB", "_LIBS", "_INC", "_INCLUDE", "_LIBRARY",
					   "_LIBRARIES", "_INCLUDES", "_FLAGS", "_URL", "_IMAGE", "_TAG", "_ARCH", "_LIST"};
	static const char *const begins[] = {"NCCL_OFI_", "NCCL_GPUDIRECT", "NCCL_FASTRAK_", "NCCL_TEST", "NCCL_UCX_", "NCCL_PLUGIN",
					     "NCCL_TUNER_", "NCCL_SHIMNET_", "NCCL_PROFILER_", "NCCL_SHARP_", "CUDA_PATH_V", "CUDA_PYTHON_",
					     "PYTORCH_TEST", "PYTORCH_BUILD", "CUDA_COMPUTE", "NCCL_INSPECTOR_", "PYTORCH_MPS_", "PYTORCH_TUNABLEOP_"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (str_ends(name, ends[i]))
			return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (str_starts(name, begins[i]))
			return true;
	return false;
}

void variables_add(struct variables *v, struct pool *pool, const struct var_finding *f)
{
	struct var_finding *bigger;
	size_t n = v->n_findings;

	if (n >= FINDINGS_MAX)
		return;
	if ((n & (n - 1)) == 0) {
		bigger = pool_alloc(pool, (n ? n * 2 : 1) * sizeof(*bigger));
		if (n)
			memcpy(bigger, v->finding, n * sizeof(*bigger));
		v->finding = bigger;
	}
	v->finding[v->n_findings++] = *f;
}

/* ---- which are set -------------------------------------------------------------------------------------------- */

static const char *clean_value(struct pool *pool, const char *value, size_t len, bool *odd)
{
	char *copy = pool_copy(pool, value, len < VALUE_MAX ? len : VALUE_MAX);

	*odd = len > VALUE_MAX;
	for (char *s = copy; *s; s++)
		if ((unsigned char)*s < ' ' || *s == 127) {
			*odd = *odd || *s != '\t';
			*s = ' ';
		}
	for (char *s = copy; *s; s++)
		if ((unsigned char)*s >= 0x80) {
			char *before = pool_strdup(pool, copy);

			str_make_utf8(copy);
			*odd = *odd || strcmp(before, copy) != 0;
			break;
		}
	return copy;
}

static bool has(const struct variables *v, const char *name, size_t n)
{
	for (size_t i = 0; i < v->n_set; i++)
		if (strncmp(v->set[i].name, name, n) == 0 && !v->set[i].name[n])
			return true;
	return false;
}

static void take(struct variables *v, struct pool *pool, const char *entry, size_t *outside)
{
	const char *eq = strchr(entry, '=');
	const struct known_variable *k;
	struct variable *one;
	char name[NAMES_MAX];
	size_t n = eq ? (size_t)(eq - entry) : 0;

	if (n == 0 || n >= sizeof(name))
		return;
	memcpy(name, entry, n);
	name[n] = '\0';
	k = known_variable(name);
	if (!k && family_of(name) < 0 && (++*outside > OUTSIDE_MAX || !known_nearest(name, true)))
		return;
	if (has(v, name, n))
		return;
	if (v->n_set == VARIABLES_MAX) {
		v->left_out = true;
		return;
	}
	one = &v->set[v->n_set++];
	str_make_utf8(name);
	one->name = pool_strdup(pool, name);
	one->length = strlen(eq + 1);
	one->value = clean_value(pool, eq + 1, one->length, &one->odd);
	one->reader = k ? k->reader : NULL;
}

/* ---- what is wrong with one ------------------------------------------------------------------------------------- */

static bool applies(const struct known_variable *k, const char *value)
{
	if (!k->text[0] || !value[0])
		return false;
	if (strcmp(k->when, "SET") == 0)
		return true;
	if (strcmp(k->when, "ON") == 0)
		return value_is_on(value);
	if (strcmp(k->when, "OFF") == 0)
		return !value_is_on(value);
	return strcasecmp(value, k->when) == 0;
}

static void judge_known(struct variables *v, struct pool *pool, const struct variable *one, const struct known_variable *k)
{
	static const enum var_kind kinds[] = {VAR_NOTE, VAR_NOTE, VAR_OBSOLETE, VAR_DANGEROUS};
	struct var_finding f = {.name = one->name, .advice = pool_printf(pool, "unset %s", one->name)};

	f.text = value_mistake(pool, k, one);
	if (f.text) {
		f.kind = VAR_BAD_VALUE;
		variables_add(v, pool, &f);
	} else if (k->level != LEVEL_FINE && applies(k, one->value)) {
		f.kind = kinds[k->level];
		f.text = k->text;
		if (f.kind == VAR_NOTE)
			f.advice = NULL;
		variables_add(v, pool, &f);
	}
}

static void judge_unknown(struct variables *v, struct pool *pool, const struct variable *one)
{
	int family = family_of(one->name);
	const char *near = known_nearest(one->name, family < 0);
	struct var_finding f = {.kind = VAR_UNKNOWN, .name = one->name};

	if (near && !(family >= 0 && is_elsewhere(one->name) && strcasecmp(near, one->name) != 0)) {
		f.kind = VAR_MISSPELT;
		f.other = near;
		f.text = pool_printf(pool, "nobody reads it; %s is meant?", near);
		f.advice = pool_printf(pool, "export %s=\"$%s\"", near, one->name);
	} else if (family >= 0 && families[family].closed && !is_elsewhere(one->name)) {
		f.text = "no program that cuwhy knows reads it";
	} else {
		return;
	}
	variables_add(v, pool, &f);
}

/* CUDA_VISIBLE_DEVICES without the GPUs: what no machine could make sense of. */
static void judge_visible(struct variables *v, struct pool *pool)
{
	const char *value = variables_get(v, "CUDA_VISIBLE_DEVICES");
	struct var_finding f = {.kind = VAR_BAD_VALUE, .name = "CUDA_VISIBLE_DEVICES", .advice = "unset CUDA_VISIBLE_DEVICES"};
	struct visible seen;

	if (!value)
		return;
	visible_parse(&seen, pool, value, NULL, -1);
	if (seen.end == VISIBLE_NOT_A_NUMBER || seen.end == VISIBLE_MIXED) {
		f.text = pool_printf(pool, "CUDA stops at '%.60s', which is no GPU here: the %d before it are seen, the rest is not",
				     seen.stopped_at, seen.n);
	} else if (seen.end == VISIBLE_TWICE) {
		f.text = pool_printf(pool, "'%.60s' is named twice: CUDA then sees no GPU at all", seen.stopped_at);
	} else if (seen.end == VISIBLE_MIG_SECOND) {
		f.text = "it names more than one MIG instance: a process can use the first only";
	} else if (seen.n == 0) {
		f.kind = VAR_NOTE;
		f.text = "it hides every GPU";
	} else {
		return;
	}
	variables_add(v, pool, &f);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct variable *)a)->name, ((const struct variable *)b)->name);
}

static int gravest_first(const void *a, const void *b)
{
	const struct var_finding *x = a, *y = b;

	return x->kind != y->kind ? (int)y->kind - (int)x->kind : strcmp(x->name, y->name);
}

void variables_judge(struct variables *v, struct pool *pool, const char *const *env)
{
	size_t outside = 0;

	*v = (struct variables){.known = env != NULL};
	if (!env)
		return;
	v->set = pool_alloc(pool, VARIABLES_MAX * sizeof(*v->set));
	for (size_t i = 0; env[i]; i++)
		take(v, pool, env[i], &outside);
	qsort(v->set, v->n_set, sizeof(*v->set), by_name);
	for (size_t i = 0; i < v->n_set; i++) {
		const struct known_variable *k = known_variable(v->set[i].name);

		if (k)
			judge_known(v, pool, &v->set[i], k);
		else
			judge_unknown(v, pool, &v->set[i]);
	}
	judge_visible(v, pool);
	variables_look_at_pairs(v, pool);
	if (v->n_findings)
		qsort(v->finding, v->n_findings, sizeof(*v->finding), gravest_first);
}

const struct variable *variables_find(const struct variables *v, const char *name)
{
	for (size_t i = 0; i < v->n_set; i++)
		if (strcmp(v->set[i].name, name) == 0)
			return &v->set[i];
	return NULL;
}

const char *variables_get(const struct variables *v, const char *name)
{
	const struct variable *one = variables_find(v, name);

	return one ? one->value : NULL;
}

const char *variables_kind_id(enum var_kind kind)
{
	static const char *const id[] = {"note", "obsolete", "unknown", "misspelt", "dangerous", "contradicts", "bad-value"};

	return id[kind];
}

/* ---- of another process ------------------------------------------------------------------------------------------ */

const char *const *variables_read(struct pool *pool, const char *root, int pid)
{
	const char **list, *text;
	size_t n = 0, len = 0;
	char path[64];
	struct buf b;
	int rc;

	if (!root[0] && pid == 0)
		return (const char *const *)environ;
	snprintf(path, sizeof(path), pid ? "/proc/%d/environ" : "/proc/self/environ", pid);
	buf_init(&b, ENVIRON_MAX);
	rc = tree_read(root, path, &b);
	text = rc == 0 ? pool_copy(pool, b.data, b.len) : NULL;
	len = b.len;
	buf_release(&b);
	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i++)
		n += text[i] == '\0';
	list = pool_alloc(pool, (n + 2) * sizeof(*list));
	for (n = 0; len > 0; n++) {
		size_t one = strnlen(text, len);

		list[n] = text;
		text += one + (one < len);
		len -= one + (one < len);
	}
	return list;
}
