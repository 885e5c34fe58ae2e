/* SPDX-License-Identifier: Apache-2.0
 * What the terminal can do and wants.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/str.h"
#include "base/term.h"

#define WIDTH_DEFAULT 100
#define WIDTH_LEAST 40
#define WIDTH_MOST 10000	/* more is a mistake */

bool term_parse_color(const char *word, enum color *c)
{
	static const char *const words[] = {"auto", "always", "never"};
	int i;

	for (i = 0; i < 3; i++) {
		if (strcmp(word, words[i]) == 0) {
			*c = (enum color)i;
			return true;
		}
	}
	return false;
}

bool term_color(int fd, enum color c)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (c != COLOR_AUTO)
		return c == COLOR_ALWAYS;
	if (no && *no)
		return false;
	if (!term || !*term || strcmp(term, "dumb") == 0)
		return false;
	return isatty(fd) == 1;
}

bool term_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < 3; i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static int width_asked_for(void)
{
	const char *columns = getenv("COLUMNS");
	char *end;
	long n = columns ? strtol(columns, &end, 10) : 0;

	if (!columns || end == columns || *end || n <= 0 || n > WIDTH_MOST)
		return WIDTH_DEFAULT;
	return n < WIDTH_LEAST ? WIDTH_LEAST : (int)n;
}

int term_width(int fd)
{
	struct winsize ws;

	if (ioctl(fd, TIOCGWINSZ, &ws) != 0 || ws.ws_col == 0)
		return width_asked_for();
	return ws.ws_col < WIDTH_LEAST ? WIDTH_LEAST : ws.ws_col;
}

struct guard {
	int fd;
	char held[4];		/* the beginning of a character whose end has not been printed yet */
	size_t n_held;
};

static struct guard guarded[] = {{.fd = STDOUT_FILENO}, {.fd = STDERR_FILENO}};
static FILE *bytes_out;		/* NULL = stdout is not guarded */
static bool style_passes;

static bool write_all(int fd, const char *bytes, size_t n)
{
	while (n) {
		ssize_t done = write(fd, bytes, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return false;
		bytes += done;
		n -= (size_t)done;
	}
	return true;
}

/* Bytes at the end that may be the beginning of a character. */
static size_t cut_character(const char *text, size_t n)
{
	uint32_t code;

	for (size_t back = n < 3 ? n : 3; back; back--)
		if (str_character(text + n - back, back, &code) == 0)
			return back;
	return 0;
}

static ssize_t guard_write(void *cookie, const char *bytes, size_t n)
{
	struct guard *g = cookie;
	char text[1024];

	if (style_passes)
		return write_all(g->fd, bytes, n) ? (ssize_t)n : 0;
	for (size_t at = 0; at < n;) {
		size_t len = g->n_held, more = n - at < sizeof(text) - len ? n - at : sizeof(text) - len;

		memcpy(text, g->held, len);
		memcpy(text + len, bytes + at, more);
		at += more;
		len += more;
		g->n_held = cut_character(text, len);
		len -= g->n_held;
		memcpy(g->held, text + len, g->n_held);
		if (!write_all(g->fd, text, str_plain(text, text, len)))
			return 0;	/* glibc: an error, with errno */
	}
	return (ssize_t)n;
}

static FILE *guard_new(struct guard *g)
{
	return fopencookie(g, "w", (cookie_io_functions_t){.write = guard_write});
}

void term_guard(void)
{
	FILE *out = guard_new(&guarded[0]), *err = guard_new(&guarded[1]);

	if (!out || !err)
		return;
	if (isatty(STDOUT_FILENO) == 1)
		setvbuf(out, NULL, _IOLBF, 0);
	setvbuf(err, NULL, _IONBF, 0);
	bytes_out = stdout;
	stdout = out;
	stderr = err;
}

FILE *term_bytes(void)
{
	fflush(stdout);
	return bytes_out ? bytes_out : stdout;
}

void term_look(FILE *out, enum look look)
{
	/* the plain eight colors: what they look like is up to the terminal, so that they can be read on any background */
	static const char *const codes[] = {
		[LOOK_PLAIN] = "\033[0m", [LOOK_BOLD] = "\033[1m", [LOOK_ERROR] = "\033[1;31m",
		[LOOK_CODE] = "\033[36m", [LOOK_DIM] = "\033[2m",
	};

	fflush(out);
	style_passes = true;
	fputs(codes[look], out);
	fflush(out);
	style_passes = false;
}
