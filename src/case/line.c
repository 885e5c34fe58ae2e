/* SPDX-License-Identifier: Apache-2.0
 * Lines of Python: whose code a file is (see line.h). The definition of "the user's own code" is here and nowhere else.
 */
#include "case/line.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "case/source.h"

#define SOURCE_LINE_MAX 160	/* longer lines are cut for display */

/* The package that `path` begins with: "torch/nn/x.py" -> torch. */
static enum owner package_owner(const char *path)
{
	static const struct { const char *name; enum owner owner; } packages[] = {
		{"torch/", OWNER_TORCH},	{"functorch/", OWNER_TORCH}, {"torchgen/", OWNER_TORCH},
		{"triton/", OWNER_TRITON},	{"cupy/", OWNER_CUPY},	     {"cupyx/", OWNER_CUPY},
		{"cupy_backends/", OWNER_CUPY},
	};

	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (str_starts(path, packages[i].name))
			return packages[i].owner;
	return OWNER_LIBRARY;
}

/* ".../lib/python3.12/threading.py", also lib64; the version may have any number of digits. */
static bool is_stdlib(const char *file)
{
	const char *s = file;

	while ((s = strstr(s, "/python3.")) != NULL) {
		const char *digits = s + strlen("/python3.");

		if (isdigit((unsigned char)*digits) &&
		    ((s - file >= 4 && !strncmp(s - 4, "/lib", 4)) ||
		     (s - file >= 6 && !strncmp(s - 6, "/lib64", 6)))) {
			while (isdigit((unsigned char)*digits) || *digits == 't')
				digits++;
			if (*digits == '/')
				return true;
		}
		s++;
	}
	return false;
}

static bool is_notebook(const char *file)
{
	return str_starts(file, "<ipython-input-") || strstr(file, "/ipykernel_") ||
	       str_starts(file, "<stdin>") || str_starts(file, "<python-input-") || str_starts(file, "<cell ");
}

static bool is_generated(const char *file)
{
	return file[0] == '<' || file[0] == '\0' || strstr(file, "/torchinductor_") ||
	       strstr(file, "/.triton/") || strstr(file, "/triton/cache/") ||
	       strstr(file, "/torch_compile_debug/");
}

/* "/x/torch/lib/libtorch_cuda.so" means that /x/torch/ is PyTorch, wherever it was installed. */
static bool under_torch(const char *file, const char *torch_path)
{
	const char *lib = torch_path ? strstr(torch_path, "/torch/lib") : NULL;

	return lib && !strncmp(file, torch_path, (size_t)(lib - torch_path) + strlen("/torch/"));
}

/* Cython names its files relative to the package: "cupy_backends/cuda/api/runtime.pyx". */
static bool is_cython(const char *file)
{
	return str_ends(file, ".pyx") || str_ends(file, ".pxd") || str_ends(file, ".pxi");
}

enum owner frame_owner(const char *file, const char *torch_path)
{
	const char *s;

	if (is_notebook(file))
		return OWNER_USER;
	if (is_generated(file))
		return OWNER_GENERATED;
	s = strstr(file, "/site-packages/");
	if (s)
		return package_owner(s + strlen("/site-packages/"));
	s = strstr(file, "/dist-packages/");
	if (s)
		return package_owner(s + strlen("/dist-packages/"));
	if (under_torch(file, torch_path))
		return OWNER_TORCH;
	if (is_cython(file))
		return package_owner(file);
	return is_stdlib(file) ? OWNER_STDLIB : OWNER_USER;
}

/* The word after this one; NULL at the end. */
static const char *next_word(const char *s)
{
	s = strchr(s, ' ');
	return s ? s + 1 : NULL;
}

/* What multiprocessing starts its children with is not the user's. */
static const char *typed_text(const char *text)
{
	return text && text[0] && !str_starts(text, "from multiprocessing.") ? text : NULL;
}

const char *command_text(const char *cmdline)
{
	for (const char *s = next_word(cmdline); s && s[0] == '-' && s[1] != ' '; s = next_word(s)) {
		size_t n = strcspn(s, " "), i = 1;

		while (i < n && !strchr("cmWX-", s[i]))
			i++;
		if (i == n)
			continue;
		if (s[i] == 'c')
			return typed_text(i + 1 < n ? s + i + 1 : next_word(s));
		if (s[i] == 'm')
			return NULL;
		if (i + 1 == n && !(s = next_word(s)))	/* -W and -X have an argument */
			return NULL;
	}
	return NULL;
}

/* The line of that number, counted from 1; NULL when there are fewer. */
static const char *nth_line(const char *text, uint32_t number)
{
	for (; text && number > 1; number--) {
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return text;
}

static bool line_defines(const char *line, const char *function)
{
	static const char *const words[] = {"def ", "async def ", "class "};
	size_t len = strlen(function);

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *name = str_starts(line, words[i]) ? line + strlen(words[i]) : NULL;

		if (name && !strncmp(name, function, len) && !isalnum((unsigned char)name[len]) && name[len] != '_')
			return true;
	}
	return false;
}

/* <lambda>, <listcomp> and their kin may be anywhere on a line. */
static bool line_has(const char *line, const char *function)
{
	const char *word = !strcmp(function, "<lambda>") ? "lambda" : "for ", *s = strstr(line, word);

	return s && s < line + strcspn(line, "\n");
}

bool text_defines(const char *text, bool cut, const char *function, uint32_t first_line)
{
	const char *line = nth_line(text, first_line);

	if (!line)
		return cut;
	if (function[0] == '<')
		return line_has(line, function);
	for (int decorators = 0; line && decorators < 16; decorators++) {
		line += strspn(line, " \t");
		if (line_defines(line, function))
			return true;
		if (line[0] != '@')
			return false;
		line = nth_line(line, 2);
	}
	return !line && cut;
}

const char *function_base(const char *qualified)
{
	const char *dot = strrchr(qualified, '.');

	return dot && dot[1] ? dot + 1 : qualified;
}

const char *file_shown(const char *file, const char *cwd)
{
	size_t n = strlen(cwd);

	return n > 1 && !strncmp(file, cwd, n) && file[n] == '/' && file[n + 1] ? file + n + 1 : file;
}

bool line_same(const struct line *a, const struct line *b)
{
	return a->file && b->file && a->number == b->number && !strcmp(a->file, b->file);
}

bool place_same(const struct place *a, const struct place *b)
{
	return a->file && b->file && a->line == b->line && !strcmp(a->file, b->file);
}

/* Printable text only: the line goes to a terminal. */
static char *tidy_line(const char *line, struct pool *pool)
{
	size_t n = 0;
	char *copy;

	while (isspace((unsigned char)*line))
		line++;
	while (line[n] && line[n] != '\n' && n < SOURCE_LINE_MAX)
		n++;
	while (n && (line[n] & 0xc0) == 0x80)
		n--;	/* never cut a UTF-8 character in two */
	copy = pool_copy(pool, line, n);
	str_make_line(copy);
	return n ? copy : NULL;
}

char *place_source(const struct place *p, struct source_book *from, struct pool *pool)
{
	const char *line = NULL;

	if (p->text)
		line = p->line ? nth_line(p->text, p->line) : NULL;
	else if (p->file && p->line)
		line = source_line(from, p->file, p->line, pool, NULL);
	return line ? tidy_line(line, pool) : NULL;
}

void place_skip_decorators(struct place *p, struct source_book *from, struct pool *pool)
{
	struct place at = *p;

	if (!p->file || p->line != p->first_line)
		return;
	for (int i = 0; i < 16; i++, at.line++) {
		const char *text = place_source(&at, from, pool);

		if (!text || (at.line == p->line && text[0] != '@'))
			return;
		if (str_starts(text, "def ") || str_starts(text, "async def ")) {
			*p = at;
			return;
		}
	}
}
