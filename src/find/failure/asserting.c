/* SPDX-License-Identifier: Apache-2.0
 * Matches the line of a failed assertion with kernels (see asserting.h).
 *
 * The names of kernels tell where they were compiled: nvcc writes the file into those in an anonymous namespace
 * ("_GLOBAL__N__5cd812b1_7_Loss_cu_5b0651e1"), and which functions of PyTorch's are in which of its files is in kb/assert_kernels.def.
 */
#include "find/failure/asserting.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "base/str.h"
#include "case/signature.h"
#include "case/source.h"
#include "compat/cuda_errors.h"
#include "find/failure/incident.h"
#include "find/words/printed_assert.h"
#include "read/recording/printed_lines.h"
#include "read/recording/trace.h"

#define FUNCTION_LINES 1000	/* of a kernel in Python, at most */

static const struct { const char *file, *function; } compiled[] = {
#define COMPILED(file, function) {file, function},
#include "kb/assert_kernels.def"
};

/* "void at::native::(anonymous namespace)::gather<float>(…)" -> "gather"; "" for a lambda, and what Triton says for all. */
static const char *plain_function(const char *function, struct pool *pool)
{
	const char *name = kernel_short_name(function, pool), *s;

	while ((s = strstr(name, "::")) != NULL)
		name = s + 2;
	return str_starts(name, "operator") || !strcmp(name, "unknown") ? "" : name;
}

/* Triton does not say which function it was; the file does: "def gather(x):" before the line. */
static const char *python_function(struct source_book *book, const char *file, uint32_t line, struct pool *pool)
{
	const char *source, *name;

	for (uint32_t n = line; n > 0 && n + FUNCTION_LINES > line; n--) {
		source = source_line(book, file, n, pool, NULL);
		if (!source)
			return "";
		name = source + strspn(source, " \t");
		if (str_starts(name, "def "))
			return pool_copy(pool, name + 4, strcspn(name + 4, "( :"));
	}
	return "";
}

static const struct text_assert *parse(const struct printed_line *p, struct pool *pool)
{
	struct printed_asserts *all = pool_alloc(pool, sizeof(*all));
	struct text_line *line = pool_alloc(pool, sizeof(*line));

	*all = (struct printed_asserts){.n = 0};
	line_clean(line, p->text, strlen(p->text), 0);
	return printed_asserts_line(all, pool, line) && all->n ? &all->list[0] : NULL;
}

void asserting_find(struct asserting *a, const struct incident *i, const struct trace *t, struct pool *pool)
{
	struct printed_line list[PRINTED_MAX];
	size_t n = i->code == CODE_ASSERT || i->code == CODE_LAUNCH_FAILED ? trace_printed(t, list, pool) : 0;
	const struct printed_line *first = NULL;

	for (size_t k = 0; k < n && !first; k++)	/* in the order of time */
		first = list[k].assertion ? &list[k] : NULL;
	*a = (struct asserting){.line = first ? parse(first, pool) : NULL, .function = ""};
	if (!a->line)
		return;
	a->count = first->count;
	memcpy(a->block, first->block, sizeof(a->block));
	memcpy(a->thread, first->thread, sizeof(a->thread));
	if (a->line->function)
		a->function = plain_function(a->line->function, pool);
	if (a->line->file && str_ends(a->line->file, ".py") && !a->function[0])
		a->function = python_function(trace_sources(t), a->line->file, a->line->source_line, pool);
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Does the identifier, which begins with its length in a mangled name, name this file? "7_Loss_cu_5b0651e1" and Loss.cu. */
static bool names_file(const char *id, const char *file)
{
	char *s;
	size_t n = strtoul(id, &s, 10);

	if (s == id || *s++ != '_' || n != strlen(file))
		return false;
	for (size_t i = 0; i < n; i++)
		if (s[i] != file[i] && !(s[i] == '_' && !isalnum((unsigned char)file[i])))
			return false;
	return true;
}

/* The file that the compiler wrote into the kernel's name, after "8 digits_"; NULL: none. Before CUDA 12 it had another form. */
static const char *own_file(const char *mangled)
{
	static const char anonymous[] = "_GLOBAL__N__";
	const char *s = strstr(mangled, anonymous);

	if (!s)
		return NULL;
	s += strlen(anonymous);
	return strspn(s, "0123456789abcdef") == 8 && s[8] == '_' && isdigit((unsigned char)s[9]) ? s + 9 : NULL;
}

/* `function`, preceded by its length. */
static bool has_function(const char *mangled, const char *function)
{
	size_t n = strlen(function);

	for (const char *s = mangled; (s = strstr(s, function)) != NULL; s++) {
		const char *digits = s;

		while (digits > mangled && isdigit((unsigned char)digits[-1]))
			digits--;
		if (digits < s && strtoul(digits, NULL, 10) == n)
			return true;
	}
	return false;
}

static enum fits fits_file(const char *mangled, const char *path)
{
	const char *file = file_name(path), *own = own_file(mangled);

	/* a header's assertion can be in any kernel, a source file's only in its own */
	if (str_ends(file, ".cu") && own)
		return names_file(own, file) ? FITS_FILE : FITS_NOT;
	for (size_t i = 0;
	     str_starts(mangled, "_ZN2at6native") && strstr(path, "ATen/") && i < sizeof(compiled) / sizeof(compiled[0]);
	     i++)
		if (has_function(mangled, compiled[i].function))
			return !strcmp(file, compiled[i].file) ? FITS_FILE : str_ends(file, ".cu") ? FITS_NOT : FITS_PERHAPS;
	return str_ends(file, ".py") && (own || str_starts(mangled, "_ZN2at")) ? FITS_NOT : FITS_PERHAPS;
}

enum fits asserting_fits(const struct asserting *a, struct trace *t, const struct cw_launch *l, struct pool *pool)
{
	const struct cw_function *f = l->func ? trace_function(t, l->func) : NULL;
	const char *mangled = f ? trace_string(t, f->name) : "", *name;
	enum fits fits = a->line->file ? fits_file(mangled, a->line->file) : FITS_PERHAPS;

	if (fits == FITS_NOT || !a->function[0] || !mangled[0])
		return fits;
	name = plain_function(trace_function_name(t, l->func), pool);
	return !strcmp(name, a->function) ? FITS_FUNCTION : fits;
}
