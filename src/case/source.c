/* SPDX-License-Identifier: Apache-2.0
 * Lines of source code, to be quoted (see source.h).
 */
#include "case/source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"

#define SOURCE_BYTES_MAX (16u << 20)	/* a person does not write more by hand */
#define CONTEXT_BYTES	(128 << 10)	/* before and behind a line */
#define KEPT_FILES_MAX	256
#define KEPT_LINES_MAX	1024		/* of a file */
#define TRAINS		"trains"	/* beside the lines of a file */
#define LOADS		"loads"

void source_book_release(struct source_book *b)
{
	json_decref(b->kept);
	*b = (struct source_book){0};
}

static bool is_source(const char *file)
{
	static const char *const endings[] = {".py", ".pyw", ".pyx", ".pyi", ".pxd", ".pxi", ".cu",
					      ".cuh", ".c",  ".cc",  ".cpp", ".h",   ".hpp"};

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
		if (str_ends(file, endings[i]))
			return true;
	return false;
}

const char *source_unread(const char *file)
{
	if (file[0] == '<')
		return "this code is not in a file";
	return is_source(file) ? NULL : "the file is not named like source code, so it was not read";
}

/* Below the current folder, which the reader chose. Homes are no projects: everything is below them. */
static bool is_below_here(const char *name)
{
	char here[4096], home[4096];
	const char *given = getenv("HOME");
	size_t n;

	if (!getcwd(here, sizeof(here)) || !strcmp(here, "/"))
		return false;
	if (given && realpath(given, home) && !strcmp(here, home))
		return false;
	n = strlen(here);
	return !strncmp(name, here, n) && name[n] == '/';
}

/* A link that is named like source code may lead to anything: what counts is the file itself. */
static bool may_read(const struct source_book *b, int fd)
{
	char link[64], name[4096];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, name, sizeof(name) - 1);
	if (n < 0)
		return false;
	name[n] = '\0';
	return is_source(name) && (!b->foreign || is_below_here(name));
}

static int source_open(const struct source_book *b, const char *file)
{
	char path[4096];
	int fd, n;

	n = file[0] == '/' ? snprintf(path, sizeof(path), "%s", file)
			   : snprintf(path, sizeof(path), "%s/%s", b->cwd[0] ? b->cwd : ".", file);
	if (n < 0 || (size_t)n >= sizeof(path) || source_unread(file))
		return -1;
	fd = fs_open_foreign(path, SOURCE_BYTES_MAX, NULL);
	if (fd < 0 || may_read(b, fd))
		return fd;
	close(fd);
	return -1;
}

static bool lines_read(const struct source_book *b, const char *file, struct buf *text)
{
	int fd = source_open(b, file);
	bool read = fd >= 0 && buf_read_fd(text, fd) == 0;

	if (fd >= 0)
		close(fd);
	return read;
}

static json_t *kept_of(const struct source_book *b, const char *file, const char *key)
{
	return json_object_get(json_object_get(b->kept, file), key);
}

static void lines_keep(struct source_book *b, const char *file, const char *key, json_t *value)
{
	json_t *lines;

	b->kept = b->kept ? b->kept : json_object();
	lines = json_object_get(b->kept, file);
	if (!lines && json_object_size(b->kept) < KEPT_FILES_MAX && json_object_set_new(b->kept, file, json_object()) == 0)
		lines = json_object_get(b->kept, file);
	if (lines && json_object_size(lines) < KEPT_LINES_MAX)
		json_object_set_new(lines, key, value);
	else
		json_decref(value);
}

static const char *line_in(const char *s, const char *end, uint32_t number)
{
	for (uint32_t at = 1; s && at < number; at++) {
		s = memchr(s, '\n', (size_t)(end - s));
		s = s ? s + 1 : NULL;
	}
	return s == end ? NULL : s;
}

/* The lines around one, without secrets: what a line says about itself may begin some lines above, or end below. */
static char *without_secrets(const char *text, const char *end, const char *line, uint32_t *number)
{
	const char *from = line - text > CONTEXT_BYTES ? line - CONTEXT_BYTES : text,
		   *to = end - line > CONTEXT_BYTES ? line + CONTEXT_BYTES : end;

	while (from > text && from[-1] != '\n')
		from--;
	to = to < end && memchr(to, '\n', (size_t)(end - to)) ? memchr(to, '\n', (size_t)(end - to)) : end;
	*number = 1;
	for (const char *s = from; s < line; s++)
		*number += *s == '\n';
	return private_hide_secrets(xasprintf("%.*s", (int)(to - from), from), NULL);
}

static char *line_of_text(const struct buf *text, uint32_t number, struct pool *pool)
{
	const char *end = text->data + text->len, *s = text->data ? line_in(text->data, end, number) : NULL, *shown;
	char *around, *line = NULL;

	if (!s)
		return NULL;
	around = without_secrets(text->data, end, s, &number);
	shown = line_in(around, around + strlen(around), number);
	line = pool_copy(pool, shown ? shown : "", shown ? strnlen(shown, SOURCE_TEXT_MAX) : 0);
	free(around);
	line[strcspn(line, "\r\n")] = '\0';
	str_make_utf8(line);
	return line;
}

char *source_line(struct source_book *b, const char *file, uint32_t number, struct pool *pool, bool *read_now)
{
	char key[16], *line = NULL;
	const json_t *kept;
	struct buf text;

	snprintf(key, sizeof(key), "%u", number);
	kept = kept_of(b, file, key);
	if (read_now)
		*read_now = false;
	if (json_is_string(kept))
		return pool_copy(pool, json_string_value(kept), strnlen(json_string_value(kept), SOURCE_TEXT_MAX));
	buf_init(&text, SOURCE_BYTES_MAX);
	if (lines_read(b, file, &text))
		line = line_of_text(&text, number, pool);
	buf_release(&text);
	if (line && !b->foreign)
		lines_keep(b, file, key, json_string(line));
	if (read_now)
		*read_now = line != NULL;
	return line;
}

/* `key`: under which the answer is kept. */
static int source_says(struct source_book *b, const char *file, const char *key, const char *words, const char *or_words)
{
	const json_t *kept = kept_of(b, file, key);
	struct buf text;
	int says = -1;

	if (json_is_boolean(kept))
		return json_is_true(kept);
	buf_init(&text, SOURCE_BYTES_MAX);
	if (lines_read(b, file, &text))
		says = strstr(text.data, words) || strstr(text.data, or_words);
	buf_release(&text);
	if (says >= 0 && !b->foreign)
		lines_keep(b, file, key, json_boolean(says));
	return says;
}

int source_trains(struct source_book *b, const char *file)
{
	return source_says(b, file, TRAINS, ".backward(", "autograd.grad(");
}

int source_loads(struct source_book *b, const char *file)
{
	return source_says(b, file, LOADS, "DataLoader(", "NeighborLoader(");
}

bool source_text(const struct source_book *b, const char *file, struct buf *text)
{
	buf_init(text, SOURCE_BYTES_MAX);
	return !b->foreign && lines_read(b, file, text) && text->data;
}

const json_t *source_note(const struct source_book *b, const char *file, const char *key)
{
	return kept_of(b, file, key);
}

void source_keep_note(struct source_book *b, const char *file, const char *key, json_t *note)
{
	if (b->foreign)
		json_decref(note);
	else
		lines_keep(b, file, key, note);
}

int64_t source_written(const struct source_book *b, const char *file)
{
	int fd = source_open(b, file);
	struct stat st;
	int64_t at = fd >= 0 && fstat(fd, &st) == 0 ? (int64_t)st.st_mtime : 0;

	if (fd >= 0)
		close(fd);
	return at;
}
