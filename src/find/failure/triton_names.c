/* SPDX-License-Identifier: Apache-2.0
 * Names of a Triton kernel's parameters (see triton_names.h).
 *
 * Triton's cache has a folder for each kernel that it compiled, torch.compile's has one for each GPU around these. Which folder is that of the kernel
 * that ran is not known, so all that fit it must say the same: the same name, and parameters of the sizes that the driver reported.
 */
#include "find/failure/triton_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/tree.h"
#include "read/recording/trace.h"

#define FOLDERS_MAX 4096
#define FILE_MAX_BYTES (8u << 20)
#define GPUS_MAX 16
#define SCRATCH 2	/* parameters that Triton adds at the end */

static unsigned size_of(const char *type)
{
	static const struct { const char *type; unsigned size; } sizes[] = {
		{"!tt.ptr<", 8}, {"i64", 8}, {"f64", 8},  {"i32", 4}, {"f32", 4},
		{"i16", 2},	 {"f16", 2}, {"bf16", 2}, {"i8", 1},  {"i1", 1},
	};

	type += strspn(type, " ");
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t n = strlen(sizes[i].type);

		if (strncmp(type, sizes[i].type, n) == 0 && (sizes[i].type[n - 1] == '<' || strchr(" ,)", type[n])))
			return sizes[i].size;
	}
	return 0;
}

/* What "!tt.ptr<f32, 1>" points to. */
static unsigned size_behind(const char *type)
{
	char inner[16];
	size_t n;

	type += strspn(type, " ");
	if (strncmp(type, "!tt.ptr<", 8) != 0)
		return 0;
	n = strcspn(type + 8, ",>");
	if (n >= sizeof(inner) - 1)
		return 0;
	memcpy(inner, type + 8, n);
	inner[n] = ',';
	inner[n + 1] = '\0';
	return strncmp(inner, "!", 1) ? size_of(inner) : 0;
}

/* The end of a parameter: a comma or the last parenthesis, outside of brackets and strings. */
static const char *param_end(const char *s)
{
	unsigned depth = 0;
	bool quoted = false;

	for (; *s; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (quoted)
			continue;
		else if (strchr("(<{[", *s))
			depth++;
		else if (!depth && (*s == ',' || *s == ')'))
			return s;
		else if (strchr(")>}]", *s) && depth)
			depth--;
	}
	return NULL;
}

static bool is_letter(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool copy_word(char *to, size_t size, const char *from)
{
	size_t n = 0;

	while (is_letter(from[n]) || (n && from[n] >= '0' && from[n] <= '9'))
		n++;
	if (!n || n >= size)
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

/* %x_ptr: !tt.ptr<f32> {…} loc("x_ptr"(#loc)). Older releases have the name in its place only, or write %arg0. */
static bool param_read(const char *s, const char *end, struct triton_param *out)
{
	const char *colon = memchr(s, ':', (size_t)(end - s)), *place = strstr(s, "loc(\"");

	s += strspn(s, " \n");
	if (*s != '%' || !colon)
		return false;
	out->size = size_of(colon + 1);
	out->points_to = size_behind(colon + 1);
	out->is_integer = colon[1 + strspn(colon + 1, " ")] == 'i';
	if (place && place < end && is_letter(place[5]) && copy_word(out->name, sizeof(out->name), place + 5) &&
	    place[5 + strlen(out->name)] == '"')
		return out->size != 0;
	return out->size && copy_word(out->name, sizeof(out->name), s + 1) && strncmp(out->name, "arg", 3) != 0;
}

size_t triton_params(const char *text, const char *kernel, struct triton_param out[TRITON_PARAMS])
{
	static const char before[] = "tt.func public @";
	const char *s = strstr(text, before), *end;
	size_t n = 0, len = strlen(kernel);

	if (!s || strncmp(s + sizeof(before) - 1, kernel, len) || s[sizeof(before) - 1 + len] != '(')
		return 0;
	s += sizeof(before) + len;
	do {
		end = param_end(s);
		if (!end || n == TRITON_PARAMS || !param_read(s, end, &out[n]))
			return 0;
		n++;
		s = end + 1;
	} while (*end == ',');
	return n;
}

struct search {
	const struct trace *trace;
	const char *kernel;
	struct pool pool;
	struct triton_param *found;
	size_t n;
};

static bool fits(const struct search *q, const struct triton_param *p, size_t n)
{
	const struct cw_function *f;

	for (uint32_t i = 1; (f = trace_function(q->trace, i)) != NULL; i++) {
		const struct cw_layout *y =
			!strcmp(trace_string(q->trace, f->name), q->kernel) ? trace_layout(q->trace, f) : NULL;
		size_t k = 0;

		while (y && k < n && k < y->n && y->param[k].size == p[k].size)
			k++;
		if (y && k == n && y->n <= n + SCRATCH)
			return true;
	}
	return false;
}

static void search_file(struct search *q, const char *path)
{
	struct triton_param p[TRITON_PARAMS];
	struct buf b;
	size_t n;

	buf_init(&b, FILE_MAX_BYTES);
	n = tree_read("", path, &b) == 0 && b.data ? triton_params(b.data, q->kernel, p) : 0;
	buf_release(&b);
	if (!n || !fits(q, p, n))
		return;
	if (!q->n)
		memcpy(q->found, p, n * sizeof(p[0]));
	for (size_t i = 0; i < n && i < q->n; i++) {
		if (strcmp(q->found[i].name, p[i].name))
			q->found[i].name[0] = '\0';
		if (q->found[i].points_to != p[i].points_to)
			q->found[i].points_to = 0;
		q->found[i].is_integer = q->found[i].is_integer && p[i].is_integer;
	}
	/* one with fewer may be right: what it lacks is not known */
	q->n = q->n && q->n < n ? q->n : n;
}

static void search_folder(struct search *q, const char *folder)
{
	char **names;
	bool cut;
	int n = folder[0] == '/' ? tree_list("", folder, &q->pool, FOLDERS_MAX, &names, &cut) : 0;

	for (int i = 0; i < n; i++) {
		const char *path = pool_printf(&q->pool, "%s/%s/%s.ttir", folder, names[i], q->kernel);

		if (tree_is_file("", path))
			search_file(q, path);
	}
}

static void search_gpus(struct search *q, const char *folder)
{
	for (int i = 0; i < GPUS_MAX; i++)
		search_folder(q, pool_printf(&q->pool, "%s/triton/%d", folder, i));
}

size_t triton_find(const struct trace *t, const char *kernel, struct triton_param out[TRITON_PARAMS])
{
	const char *own = getenv("TRITON_CACHE_DIR"), *home = getenv("HOME"),
		   *torch = getenv("TORCHINDUCTOR_CACHE_DIR"), *user = getenv("USER");
	struct search q = {.trace = t, .kernel = kernel, .found = out};

	if (!kernel[0] || strpbrk(kernel, "/(<: "))
		return 0;
	if (own)
		search_folder(&q, own);
	else if (home)
		search_folder(&q, pool_printf(&q.pool, "%s/.triton/cache", home));
	if (torch)
		search_gpus(&q, torch);
	else if (user)
		search_gpus(&q, pool_printf(&q.pool, "/tmp/torchinductor_%s", user));
	pool_release(&q.pool);
	return q.n;
}

const char *triton_param_name(const struct trace *t, const char *kernel, unsigned index, struct pool *pool)
{
	struct triton_param p[TRITON_PARAMS];

	return index < triton_find(t, kernel, p) && p[index].name[0] ? pool_strdup(pool, p[index].name) : NULL;
}
