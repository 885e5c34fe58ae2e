/* SPDX-License-Identifier: Apache-2.0
 * What the terminal can do and wants.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/term.h"

#define WIDTH_DEFAULT 100
#define WIDTH_LEAST 40

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

int term_width(int fd)
{
	struct winsize ws;

	if (ioctl(fd, TIOCGWINSZ, &ws) != 0 || ws.ws_col == 0)
		return WIDTH_DEFAULT;
	return ws.ws_col < WIDTH_LEAST ? WIDTH_LEAST : ws.ws_col;
}
