/* SPDX-License-Identifier: Apache-2.0
 * Environment variables of interest and what is wrong with them (see variables.h): the rows of kb/variables.def, found by
 * name or by a similar name; values against what their readers accept; and those that contradict each other.
 */
#include "read/machine/variables.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/tree.h"

#define ENVIRON_MAX	(8u << 20)	/* far more than the kernel allows */
#define NAMES_MAX	256		/* no program has a longer name */
#define FINDINGS_MAX	256
#define OUTSIDE_MAX	2000		/* other names that are checked for typos */

enum value_kind {
	VALUE_TEXT,
	VALUE_INT,
	VALUE_NUMBER,
	VALUE_WORD,
	VALUE_LIST,
	VALUE_ALGO,
	VALUE_LEVEL,
	VALUE_ARCHS,
	VALUE_ALLOC,
	VALUE_WORKSPACE,
};
enum var_level { LEVEL_FINE, LEVEL_NOTE, LEVEL_OBSOLETE, LEVEL_DANGEROUS };

struct known_variable {
	const char *name, *reader;
	enum value_kind kind;
	const char *allowed;
	enum var_level level;
	const char *when;		/* "SET", "ON", "OFF" or a value */
	const char *text;		/* "" nothing to say */
};

static const struct known_variable known[] = {
#define VAR(name, reader, kind, allowed, level, when, text)	{#name, reader, VALUE_##kind, allowed, LEVEL_##level, #when, text},
#define NAME(name, reader)					{#name, reader, VALUE_TEXT, "", LEVEL_FINE, "SET", ""},
#include "kb/variables.def"
};

#define N_KNOWN	(sizeof(known) / sizeof(known[0]))

/* NULL: not in the list. */
static const struct known_variable *known_variable(const char *name)
{
	for (size_t i = 0; i < N_KNOWN; i++)
		if (known[i].name[0] == name[0] && strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

/* How many letters one has that the other lacks: at least this many must be edited. Far cheaper than the real distance;
 * letters that share a slot only make the number smaller. */
static size_t letters_apart(const char *a, const char *b)
{
	signed char count[32] = {0};
	size_t more = 0, less = 0;

	for (; *a; a++)
		count[*a & 31]++;	/* upper and lower case alike */
	for (; *b; b++)
		count[*b & 31]--;
	for (int i = 0; i < 32; i++) {
		more += count[i] > 0 ? (size_t)count[i] : 0;
		less += count[i] < 0 ? (size_t)-count[i] : 0;
	}
	return more > less ? more : less;
}

static bool is_special(const char *name)
{
	return str_starts(name, "CUDA_") || str_starts(name, "NCCL_") || str_starts(name, "PYTORCH_") ||
	       str_starts(name, "TORCH_") || str_starts(name, "NVIDIA_") || str_starts(name, "LD_LIBRARY_");
}

/* Longer names may have more typos; when the name looks like none of ours, only one or two letters may differ. */
static size_t slips_allowed(size_t len, bool outside)
{
	size_t n = len / 8 + 1;

	return outside ? (len < 10 ? 0 : 2) : n > 3 ? 3 : n;
}

/* The name that was most likely meant; NULL when none is close. `outside`: it does not even start like one of ours. */
static const char *known_nearest(const char *name, bool outside)
{
	size_t len = strlen(name), allowed, best, d;
	const char *found = NULL;

	if (len < 6 || len > 64)
		return NULL;
	allowed = slips_allowed(len, outside);
	best = allowed + 1;
	for (size_t i = 0; i < N_KNOWN; i++) {
		const char *k = known[i].name;
		size_t n = strlen(k);

		if (n + allowed < len || len + allowed < n || (outside && !is_special(k)))
			continue;
		if (strcasecmp(name, k) == 0)
			return k;
		if (letters_apart(name, k) > allowed)
			continue;
		d = str_distance(name, k);
		if (d < best) {
			best = d;
			found = k;
		}
	}
	return found;
}

/* Whose names start like this; `closed`: all of them are in the list, so an unknown one is worth reporting. */
static const struct { const char *prefix; bool closed; } families[] = {
	{"CUDA_", true},      {"NCCL_", true},	 {"PYTORCH_", true}, {"TORCH_NCCL_", true}, {"CUBLAS_", true},
	{"CUDNN_", true},     {"CUDA", false},	 {"TORCH", false},   {"NVIDIA_", false},    {"CUBLASLT_", false},
	{"TRITON_", false},   {"XLA_", false},	 {"JAX_", false},    {"NVSHMEM_", false},   {"CUFFT_", false},
	{"CUSPARSE_", false}, {"NVRTC_", false}, {"CUPTI_", false},  {"GLOO_", false},	    {"KINETO_", false},
	{"NVCC_", false},
};

static int family_of(const char *name)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strncasecmp(name, families[i].prefix, strlen(families[i].prefix)) == 0)
			return (int)i;
	return -1;
}

/* Images, build scripts and plugins define names of their own. */
static bool is_elsewhere(const char *name)
{
	static const char *const ends[] = {"_VERSION", "_HOME", "_ROOT",    "_DIR",	"_PATH",      "_LIB",
					   "_LIBS",    "_INC",	"_INCLUDE", "_LIBRARY", "_LIBRARIES", "_INCLUDES",
					   "_FLAGS",   "_URL",	"_IMAGE",   "_TAG",	"_ARCH",      "_LIST"};
	static const char *const begins[] = {"NCCL_OFI_",      "NCCL_GPUDIRECT",    "NCCL_FASTRAK_", "NCCL_TEST",
					     "NCCL_UCX_",      "NCCL_PLUGIN",	    "NCCL_TUNER_",   "NCCL_SHIMNET_",
					     "NCCL_PROFILER_", "NCCL_SHARP_",	    "CUDA_PATH_V",   "CUDA_PYTHON_",
					     "PYTORCH_TEST",   "PYTORCH_BUILD",	    "CUDA_COMPUTE",  "NCCL_INSPECTOR_",
					     "PYTORCH_MPS_",   "PYTORCH_TUNABLEOP_"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (str_ends(name, ends[i]))
			return true;
	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		if (str_starts(name, begins[i]))
			return true;
	return false;
}

/* Not empty, 0, false, no or off. */
static bool value_is_on(const char *value)
{
	static const char *const off[] = {"", "0", "false", "no", "off", "n", "f"};

	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		if (strcasecmp(value, off[i]) == 0)
			return false;
	return true;
}

/* Is the word of `len` bytes one of "a|b|c", in any case? */
static bool is_one_of(const char *word, size_t len, const char *allowed)
{
	size_t n;

	for (;; allowed += n + 1) {
		n = strcspn(allowed, "|");
		if (n == len && strncasecmp(word, allowed, n) == 0)
			return true;
		if (!allowed[n])
			return false;
	}
}

static const char *check_int(struct pool *pool, const char *value, const char *range)
{
	long long low, high, n;
	char *end;

	if (sscanf(range, "%lld..%lld", &low, &high) != 2)
		return NULL;
	errno = 0;
	n = strtoll(value, &end, 10);
	if (end == value || *end)
		return pool_printf(pool, "'%.80s' is not a whole number", value);
	if (errno || n < low || n > high)
		return pool_printf(pool, "%.40s is not between %lld and %lld", value, low, high);
	return NULL;
}

static const char *check_number(struct pool *pool, const char *value, const char *range)
{
	long long low, high;
	double n;
	char *end;

	if (sscanf(range, "%lld..%lld", &low, &high) != 2)
		return NULL;
	n = strtod(value, &end);
	if (end == value || *end || n != n)
		return pool_printf(pool, "'%.80s' is not a number", value);
	if (n < (double)low || n > (double)high)
		return pool_printf(pool, "%.40s is not between %lld and %lld", value, low, high);
	return NULL;
}

static const char *with_spaces(struct pool *pool, const char *allowed)
{
	char *copy = pool_strdup(pool, allowed);

	for (char *s = copy; *s; s++)
		if (*s == '|')
			*s = ' ';
	return copy;
}

static const char *check_word(struct pool *pool, const char *value, const char *allowed)
{
	if (is_one_of(value, strlen(value), allowed))
		return NULL;
	return pool_printf(pool, "'%.80s' is none of: %s", value, with_spaces(pool, allowed));
}

static const char *check_list(struct pool *pool, const char *value, const char *allowed)
{
	size_t n;

	for (;; value += n + 1) {
		while (*value == ' ')
			value++;
		n = strcspn(value, ",");
		if (!is_one_of(value, n, allowed))
			return pool_printf(pool, "'%.*s' is none of: %s", (int)(n < 80 ? n : 80), value,
					   with_spaces(pool, allowed));
		if (!value[n])
			return NULL;
	}
}

/* "^Tree,Ring"; "allreduce:tree;..." is a language of its own */
static const char *check_algo(struct pool *pool, const char *value, const char *allowed)
{
	if (strpbrk(value, ":;"))
		return NULL;
	return check_list(pool, value + (*value == '^'), allowed);
}

static const char *check_level(struct pool *pool, const char *value)
{
	if (*value && value[strspn(value, "0123456789")] == '\0')
		return NULL;	/* the old numbers */
	return check_word(pool, value, "LOC|NVL|NVB|C2C|PIX|PXB|P2C|PXN|PHB|NODE|SYS");
}

/* "8.0;9.0a+PTX", "Ampere Hopper", "All" */
static const char *check_archs(struct pool *pool, const char *value)
{
	static const char names[] = "All|Common|Kepler|Kepler+Tesla|Kepler+Tegra|Maxwell|Maxwell+Tegra|Pascal|Volta|Turing|Ampere|Ada|Hopper|"
				    "Blackwell|Blackwell+Tegra";
	size_t n, digits;

	for (; *value; value += n) {
		value += strspn(value, " ;");
		n = strcspn(value, " ;");
		if (n == 0 || is_one_of(value, n, names) ||
		    is_one_of(value, n, "Hopper+PTX|Ampere+PTX|Ada+PTX|Blackwell+PTX|Turing+PTX|Volta+PTX"))
			continue;
		digits = strspn(value, "0123456789");
		if (digits && digits < 3 && value[digits] == '.' && isdigit((unsigned char)value[digits + 1])) {
			digits += 2;
			digits += value[digits] == 'a' || value[digits] == 'f';
			if (digits == n || (n == digits + 4 && strncmp(value + digits, "+PTX", 4) == 0))
				continue;
		}
		return pool_printf(
			pool,
			"'%.*s' is not an architecture (8.0, 9.0a, 12.0+PTX): PyTorch rejects it when an extension is built",
			(int)(n < 60 ? n : 60), value);
	}
	return NULL;
}

/* ":4096:8", ":16:8:4096:2" or "0:0" */
static const char *check_workspace(struct pool *pool, const char *value)
{
	const char *s = value;
	int pairs = 0;
	size_t n;

	if (strcmp(value, "0:0") == 0)
		return NULL;
	for (; *s == ':'; pairs++)
		for (int k = 0; k < 2; k++) {
			n = *s == ':' ? strspn(s + 1, "0123456789") : 0;
			if (n == 0 || n > 9)
				goto bad;
			s += 1 + n;
		}
	if (pairs && !*s)
		return NULL;
bad:
	return pool_printf(pool, "'%.80s' does not have the form :4096:8 or :16:8", value);
}

static const char *check_alloc(struct pool *pool, const struct variable *v)
{
	struct alloc_conf c;

	alloc_conf_parse(&c, pool, v->name, v->value);
	for (int i = 0; i < c.n; i++)
		if (c.item[i].mistake && c.item[i].fatal)
			return pool_printf(pool, "%s: %s", c.item[i].key, c.item[i].mistake);
	return c.mistake;
}

static const char *value_check(struct pool *pool, const struct known_variable *k, const struct variable *v)
{
	switch (k->kind) {
	case VALUE_TEXT:
		return NULL;
	case VALUE_INT:
		return check_int(pool, v->value, k->allowed);
	case VALUE_NUMBER:
		return check_number(pool, v->value, k->allowed);
	case VALUE_WORD:
		return check_word(pool, v->value, k->allowed);
	case VALUE_LIST:
		return check_list(pool, v->value, k->allowed);
	case VALUE_ALGO:
		return check_algo(pool, v->value, k->allowed);
	case VALUE_LEVEL:
		return check_level(pool, v->value);
	case VALUE_ARCHS:
		return check_archs(pool, v->value);
	case VALUE_ALLOC:
		return check_alloc(pool, v);
	case VALUE_WORKSPACE:
		return check_workspace(pool, v->value);
	}
	return NULL;
}

/* What is wrong with the value; NULL when it is fine. The pool owns the text. */
static const char *value_mistake(struct pool *pool, const struct known_variable *k, const struct variable *v)
{
	const char *mistake;
	size_t n = strlen(v->value);

	if (v->odd && k->kind != VALUE_TEXT)
		return pool_printf(pool, "the value has %zu bytes, or bytes that are not text", v->length);
	if (n == 0)
		return NULL;	/* every reader treats an empty value as "not set", or it is reported elsewhere */
	mistake = value_check(pool, k, v);
	if (mistake && n > 1 && (*v->value == '"' || *v->value == '\'') && v->value[n - 1] == *v->value)
		return pool_printf(pool, "the quotation marks are part of the value %.80s", v->value);
	return mistake;
}

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

static bool is_taken(const struct variables *v, const char *name, size_t n)
{
	for (size_t i = 0; i < v->n_set; i++)
		if (strncmp(v->set[i].name, name, n) == 0 && !v->set[i].name[n])
			return true;
	return false;
}

static void variable_take(struct variables *v, struct pool *pool, const char *entry, size_t *outside)
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
	if (is_taken(v, name, n))
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

static void finding_add(struct variables *v, struct pool *pool, const struct var_finding *f)
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

static bool known_applies(const struct known_variable *k, const char *value)
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

static void judge_known(struct variables *v, struct pool *pool, const struct variable *one,
			const struct known_variable *k)
{
	static const enum var_kind kinds[] = {VAR_NOTE, VAR_NOTE, VAR_OBSOLETE, VAR_DANGEROUS};
	struct var_finding f = {.name = one->name, .advice = pool_printf(pool, "unset %s", one->name)};

	f.text = value_mistake(pool, k, one);
	if (f.text) {
		f.kind = VAR_BAD_VALUE;
		finding_add(v, pool, &f);
	} else if (k->level != LEVEL_FINE && known_applies(k, one->value)) {
		f.kind = kinds[k->level];
		f.text = k->text;
		if (f.kind == VAR_NOTE)
			f.advice = NULL;
		finding_add(v, pool, &f);
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
		f.text = pool_printf(pool, "no program reads it; did you mean %s?", near);
		f.advice = pool_printf(pool, "export %s=\"$%s\"", near, one->name);
	} else if (family >= 0 && families[family].closed && !is_elsewhere(one->name)) {
		f.text = "no program that cuwhy knows reads it";
	} else {
		return;
	}
	finding_add(v, pool, &f);
}

/* CUDA_VISIBLE_DEVICES without the GPUs: what is wrong on any machine. */
static void judge_visible(struct variables *v, struct pool *pool)
{
	const char *value = variables_get(v, "CUDA_VISIBLE_DEVICES");
	struct var_finding f = {
		.kind = VAR_BAD_VALUE, .name = "CUDA_VISIBLE_DEVICES", .advice = "unset CUDA_VISIBLE_DEVICES"};
	struct visible seen;

	if (!value)
		return;
	visible_parse(&seen, pool, value, NULL, -1);
	if (seen.end == VISIBLE_NOT_A_NUMBER || seen.end == VISIBLE_MIXED) {
		f.text = pool_printf(
			pool,
			"CUDA stops at '%.60s', which is not a GPU here: the %d before it are visible, the rest are not",
			seen.stopped_at, seen.n);
	} else if (seen.end == VISIBLE_TWICE) {
		f.text = pool_printf(pool, "'%.60s' is named twice: CUDA then sees no GPU at all", seen.stopped_at);
	} else if (seen.end == VISIBLE_MIG_SECOND) {
		f.text = "it names more than one MIG instance: a process can use only the first one";
	} else if (seen.n == 0) {
		f.kind = VAR_NOTE;
		f.text = "it hides every GPU";
	} else {
		return;
	}
	finding_add(v, pool, &f);
}

static void contradict(struct variables *v, struct pool *pool, enum var_kind kind, const char *name, const char *other,
		       const char *text)
{
	struct var_finding f = {.kind = kind, .name = name, .other = other, .text = text, .advice = pool_printf(pool, "unset %s", name)};

	finding_add(v, pool, &f);
}

static bool is_on(const struct variables *v, const char *name)
{
	const char *value = variables_get(v, name);

	return value && value_is_on(value);
}

static bool is_set(const struct variables *v, const char *name)
{
	const char *value = variables_get(v, name);

	return value && *value;
}

/* Variables that make another one pointless. */
static void look_at_pointless(struct variables *v, struct pool *pool)
{
	static const struct { const char *on, *other, *text; } pairs[] = {
		{"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_ALLOC_CONF", "without the cache its settings have no effect"},
		{"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF",
		 "without the cache its settings have no effect"},
		{"CUDA_CACHE_DISABLE", "CUDA_CACHE_PATH", "the cache is turned off, so its path does not matter"},
		{"CUDA_CACHE_DISABLE", "CUDA_CACHE_MAXSIZE", "the cache is turned off, so its size does not matter"},
		{"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL",
		 "direct access between GPUs is turned off, so its level does not matter"},
		{"NCCL_IB_DISABLE", "NCCL_IB_HCA", "InfiniBand is turned off, so the adapter does not matter"},
	};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (is_on(v, pairs[i].on) && is_set(v, pairs[i].other))
			contradict(v, pool, VAR_CONTRADICTS, pairs[i].on, pairs[i].other, pairs[i].text);
	if (is_set(v, "NCCL_DEBUG_SUBSYS") && !is_set(v, "NCCL_DEBUG"))
		contradict(v, pool, VAR_CONTRADICTS, "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG",
			   "without NCCL_DEBUG it has no effect");
}

static void look_at_jit(struct variables *v, struct pool *pool)
{
	static const char *const force[] = {"CUDA_FORCE_PTX_JIT", "CUDA_FORCE_JIT"};
	static const char *const disable[] = {"CUDA_DISABLE_PTX_JIT", "CUDA_DISABLE_JIT"};

	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++)
			if (is_on(v, force[i]) && is_on(v, disable[k]))
				contradict(v, pool, VAR_CONTRADICTS, disable[k], force[i],
					   "one wants PTX only, the other forbids it: no kernel can be loaded");
}

static void look_at_allocator(struct variables *v, struct pool *pool)
{
	const char *new = variables_get(v, "PYTORCH_ALLOC_CONF"), *old = variables_get(v, "PYTORCH_CUDA_ALLOC_CONF");

	if (new && old && *new && *old && strcmp(new, old) != 0)
		contradict(v, pool, VAR_CONTRADICTS, "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
			   "both are set and differ: older PyTorch releases read the first, newer ones the second");
}

static void look_at_ranks(struct variables *v, struct pool *pool, const char *rank, const char *size)
{
	const char *r = variables_get(v, rank), *n = variables_get(v, size);
	uint64_t a, b;

	if (r && n && str_u64(r, &a) && str_u64(n, &b) && a >= b)
		contradict(v, pool, VAR_CONTRADICTS, rank, size,
			   pool_printf(pool, "%s is %.20s, but there are only %.20s, counted from 0", rank, r, n));
}

static int items_of(const char *list)
{
	int n = *list != '\0';

	for (; *list; list++)
		n += *list == ',';
	return n;
}

/* NVIDIA_VISIBLE_DEVICES says which GPUs the container has; inside they are counted from 0 again. */
static void look_at_visible(struct variables *v, struct pool *pool)
{
	const char *cuda = variables_get(v, "CUDA_VISIBLE_DEVICES"), *nvidia = variables_get(v, "NVIDIA_VISIBLE_DEVICES");
	const char *text = NULL;
	struct visible seen;
	int n;

	if (!cuda || !*cuda || !nvidia)
		return;
	visible_parse(&seen, pool, cuda, NULL, -1);
	if (seen.n <= 0 || seen.gpu[0] < 0)
		return;
	n = items_of(nvidia);
	if (strcmp(nvidia, "none") == 0)
		text = "the container was started without a GPU, but CUDA_VISIBLE_DEVICES names one";
	else if (*nvidia && strcmp(nvidia, "all") != 0 && strcmp(nvidia, "void") != 0)
		for (int i = 0; i < seen.n && !text; i++)
			if (seen.gpu[i] >= n)
				text = pool_printf(
					pool,
					"in a container with %d GPU%s they are counted from 0 again: there is no GPU %d",
					n, n == 1 ? "" : "s", seen.gpu[i]);
	if (text)
		contradict(v, pool, VAR_CONTRADICTS, "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", text);
}

static bool list_names(const char *list, const char *word)
{
	size_t n = strlen(word), len;

	for (;; list += len + 1) {
		len = strcspn(list, ",");
		if (len == n && strncmp(list, word, n) == 0)
			return true;
		if (!list[len])
			return false;
	}
}

static void look_at_pairs(struct variables *v, struct pool *pool)
{
	const char *home = variables_get(v, "CUDA_HOME"), *path = variables_get(v, "CUDA_PATH");
	const char *capabilities = variables_get(v, "NVIDIA_DRIVER_CAPABILITIES");

	look_at_pointless(v, pool);
	look_at_jit(v, pool);
	look_at_allocator(v, pool);
	look_at_ranks(v, pool, "RANK", "WORLD_SIZE");
	look_at_ranks(v, pool, "LOCAL_RANK", "LOCAL_WORLD_SIZE");
	look_at_visible(v, pool);
	if (home && path && *home && *path && strcmp(home, path) != 0)
		contradict(v, pool, VAR_CONTRADICTS, "CUDA_PATH", "CUDA_HOME",
			   "they name different toolkits: PyTorch uses CUDA_HOME, others use CUDA_PATH");
	if (is_on(v, "NCCL_P2P_DISABLE") && is_on(v, "NCCL_SHM_DISABLE"))
		contradict(v, pool, VAR_DANGEROUS, "NCCL_SHM_DISABLE", "NCCL_P2P_DISABLE",
			   "both paths within a machine are turned off: all traffic goes through network sockets");
	if (capabilities && *capabilities && !list_names(capabilities, "all") && !list_names(capabilities, "compute"))
		contradict(v, pool, VAR_BAD_VALUE, "NVIDIA_DRIVER_CAPABILITIES", NULL,
			   "without 'compute' the container gets no libcuda: CUDA cannot be used");
}

static int variable_by_name(const void *a, const void *b)
{
	return strcmp(((const struct variable *)a)->name, ((const struct variable *)b)->name);
}

static int finding_gravest_first(const void *a, const void *b)
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
		variable_take(v, pool, env[i], &outside);
	xsort(v->set, v->n_set, sizeof(*v->set), variable_by_name);
	for (size_t i = 0; i < v->n_set; i++) {
		const struct known_variable *k = known_variable(v->set[i].name);

		if (k)
			judge_known(v, pool, &v->set[i], k);
		else
			judge_unknown(v, pool, &v->set[i]);
	}
	judge_visible(v, pool);
	look_at_pairs(v, pool);
	xsort(v->finding, v->n_findings, sizeof(*v->finding), finding_gravest_first);
}

bool variables_is_known(const char *name)
{
	return known_variable(name) != NULL;
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
	static const char *const id[] = {"note",      "obsolete",    "unknown",	 "misspelt",
					 "dangerous", "contradicts", "bad-value"};

	return id[kind];
}

const char *environ_get(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return (*env)[n + 1] ? *env + n + 1 : NULL;
	return NULL;
}

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
