/* SPDX-License-Identifier: Apache-2.0
 * One line of a log as its writer meant it: without colors and the prefixes of torchrun, Ray, Slurm, Docker and loggers.
 */
#ifndef CUWHY_TEXT_LINE_H
#define CUWHY_TEXT_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_MAX_KEPT	16384
#define LINE_WHO_MAX	24

struct text_line {
	bool prefixed;		/* a program's prefix was taken off */
	bool alarm;		/* its writer calls it an error: by its words, or by its level */
	bool leveled;		/* only by that level, which some loggers give to all that a program prints */
	char text[LINE_MAX_KEPT];	/* ends with a NUL; no control characters; spaces before it are kept */
	size_t len;
	size_t indent;			/* spaces before the first word */
	char who[LINE_WHO_MAX];		/* the process that wrote it, as its prefix says; "" when none */
	int rank;			/* -1 = not known */
	uint64_t number;
	uint64_t order;			/* among all lines that were read: several may have been one, or be of another file */
};

/* Fills all of it. `s` has neither '\n' nor '\r'. */
void line_clean(struct text_line *l, const char *s, size_t len, uint64_t number);

/* Bytes of escape sequences that a line begins with: its color. */
size_t line_color(const char *s, size_t len);

/* The rank that a log's name tells: "rank3.log", "attempt_0/3/stderr.log"; -1: none. */
int line_rank_of_file(const char *path);

/* What follows the indentation. */
static inline const char *line_words(const struct text_line *l)
{
	return l->text + l->indent;
}

/* The times in a log: which of two files failed first, and whether they can be of one run. */

/* The time that begins a line, behind a prefix at most: "2025-03-04 11:12:13,123", "2025-03-04T11:12:13.5Z". Seconds since 1970; a
 * time without a zone is taken for UTC. */
bool stamp_of_line(const char *s, size_t len, double *seconds);

#endif
