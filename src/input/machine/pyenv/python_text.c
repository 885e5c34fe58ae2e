/* SPDX-License-Identifier: Apache-2.0
 * Facts from the text of Python files (see python_text.h).
 */
#include "input/machine/pyenv/python_text.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "base/banned.h"

#define VALUE_MAX 200

static enum py_value value_at(const struct scan *s, const char *p, const char **value)
{
	const char *end;
	char *copy;

	p += strspn(p, " \t");
	if (str_starts(p, "None"))
		return PY_VALUE_NONE;
	if (*p != '"' && *p != '\'')
		return PY_VALUE_OTHER;
	end = strpbrk(p + 1, *p == '"' ? "\"\n" : "'\n");
	if (!end || *end == '\n' || end - p > VALUE_MAX || end == p + 1)
		return PY_VALUE_OTHER;
	copy = pool_copy(s->pool, p + 1, (size_t)(end - p) - 1);
	str_make_utf8(copy);
	*value = copy;
	return PY_VALUE_TEXT;
}

enum py_value py_assignment(const struct scan *s, const char *text, const char *name, const char **value)
{
	enum py_value kind = PY_VALUE_ABSENT;
	size_t n = strlen(name);

	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *p = line + n;
		size_t len = strcspn(line, "\n");

		if (len <= n || strncmp(line, name, n) != 0)
			continue;
		p += strspn(p, " \t");
		if (*p == ':')		/* a type stands between name and value */
			p += strcspn(p, "=\n");
		if (*p == '=' && p[1] != '=')
			kind = value_at(s, p + 1, value);
	}
	return kind;
}

/* ---- torch/__init__.py ------------------------------------------------------------------------------ */

/* The next text in quotes before `end`, comments left out; *at is moved behind it. NULL: no more. */
static const char *next_quoted(const struct scan *s, const char **at, const char *end)
{
	const char *p = *at, *close;

	while (p < end && *p != '"' && *p != '\'') {
		if (*p == '#')
			p += strcspn(p, "\n");
		p += p < end;
	}
	if (p >= end)
		return NULL;
	close = memchr(p + 1, *p, (size_t)(end - p) - 1);
	if (!close || close - p > VALUE_MAX) {
		*at = end;
		return NULL;
	}
	*at = close + 1;
	return pool_copy(s->pool, p + 1, (size_t)(close - p) - 1);
}

static bool is_pattern(const char *text)
{
	return str_starts(text, "lib") && strstr(text, ".so");
}

static int read_pairs(const struct scan *s, const char *at, const char *end, struct torch_preload *to)
{
	const char *folder = NULL, *text;
	int n = 0;

	while (n < PRELOADS_MAX && (text = next_quoted(s, &at, end))) {
		if (folder && is_pattern(text) && !strchr(folder, '/'))
			to[n++] = (struct torch_preload){folder, text};
		if (strcmp(text, "lib") != 0)	/* torch 1.13 joins "cublas", "lib" and the name */
			folder = text;
	}
	return n;
}

/* The body of a function: up to the next line that starts without a space and is no closing bracket. */
static const char *function_end(const char *p)
{
	for (p += strcspn(p, "\n"); *p; p += 1 + strcspn(p + 1, "\n"))
		if (p[1] && !strchr(" \t\n\r#)", p[1]))
			return p;
	return p;
}

static int read_list(const struct scan *s, const char *text, struct torch_preload *to)
{
	const char *list = strstr(text, "cuda_libs"), *end;

	list = list ? strchr(list, '=') : NULL;
	end = list ? strpbrk(list, "[{") : NULL;
	if (!end)
		return 0;
	list = end;
	/* patterns have brackets of their own, "libcublas.so.*[0-9]", so the end is a bracket on a line of its own */
	for (end = list + strcspn(list, "\n"); *end; end += 1 + strcspn(end + 1, "\n")) {
		const char *p = end + 1 + strspn(end + 1, " \t");

		if (*p == ']' || *p == '}')
			break;
		if (!end[1])
			break;
	}
	return read_pairs(s, list, end, to);
}

/* Calls with texts open just these; a call without, the whole list. */
static void read_always(const struct scan *s, const char *at, const char *end, struct torch_preloads *out)
{
	const char *p, *close, *q;

	p = memmem(at, (size_t)(end - at), "not in _maps", 12);
	for (q = p; q && q > at && q[-1] != '\n'; q--)
		;
	if (q)
		out->when = next_quoted(s, &q, p);
	for (p = at; p < end && (p = memmem(p, (size_t)(end - p), "_preload_cuda", 13)); p = close) {
		const char *line = p;

		close = p + strcspn(p, "\n");
		while (line > at && line[-1] != '\n')
			line--;
		if (line[strspn(line, " \t")] == '#')
			continue;
		if (strstr(p, "()") && strstr(p, "()") < close) {
			memcpy(out->always, out->rescue, sizeof(out->always));
			out->n_always = out->n_rescue;
		} else if (out->n_always < PRELOADS_MAX - 4) {
			struct torch_preload one[PRELOADS_MAX];
			int n = read_pairs(s, p, close, one);

			if (n > 0)
				out->always[out->n_always++] = one[0];
		}
	}
}

void torch_preloads_read(const struct scan *s, const char *text, struct torch_preloads *out)
{
	const char *start = strstr(text, "def _load_global_deps"), *end, *maps, *except, *old;

	*out = (struct torch_preloads){0};
	if (!start)
		return;
	out->known = true;
	end = function_end(start);
	out->n_rescue = read_list(s, text, out->rescue);
	old = out->n_rescue ? NULL : strstr(text, "def _preload_cuda_deps");
	if (old)
		out->n_rescue = read_pairs(s, old, function_end(old), out->rescue);
	maps = memmem(start, (size_t)(end - start), "/proc/self/maps", 15);
	except = maps ? memmem(maps, (size_t)(end - maps), "except OSError", 14) : NULL;
	if (maps)
		read_always(s, maps, except ? except : end, out);
}
