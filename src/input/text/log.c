/* SPDX-License-Identifier: Apache-2.0
 * Reads logs (see log.h): every line that the stream hands on is cleaned, searched for words, and given to the readers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "input/text/log_priv.h"
#include "input/text/stream.h"
#include "base/banned.h"

static const char *const progress[] = {
#define MARK_PROGRESS(words) words,
#include "kb/text_marks.def"
	NULL
};

#define ENV_LINES	20000
#define FOLDS_MAX	400	/* lines that one line holds */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

struct text_log *log_new(const char *const *words, size_t n)
{
	struct text_log *l = xcalloc(1, sizeof(*l));

	log_collect_words(l, words, n);
	l->needles = needles_new(l->words, l->n_words, NEEDLE_MIN);
	l->fast = needles_new(l->words, l->n_words, NEEDLE_FAST);
	l->hit = xcalloc(l->n_words + 1, sizeof(*l->hit));
	env_init(&l->env);
	return l;
}

void log_free(struct text_log *l)
{
	if (!l)
		return;
	needles_free(l->needles);
	needles_free(l->fast);
	free(l->words);
	free(l->hit);
	pool_release(&l->pool);
	free(l);
}

static void note_rank(struct text_log *l, int rank)
{
	if (rank >= 0 && rank < RANKS_MAX)
		l->rank[rank / 8] |= (unsigned char)(1u << (rank % 8));
}

static void note_xid(struct text_log *l, const struct text_line *line)
{
	if (l->n_xids < LOG_XIDS_MAX && strstr(line->text, "Xid") && (strstr(line->text, "NVRM") || strstr(line->text, "Xid (")))
		l->xid[l->n_xids++] = pool_strdup(&l->pool, line->text);
}

static void keep_in_ring(struct text_log *l, const struct text_line *line)
{
	str_copy(l->ring[l->ring_n++ % RING_LINES], RING_WIDTH, line->text);
}

static bool shows_progress(const struct text_log *l, const struct text_line *line)
{
	return !l->error_here && line->indent < 16 && strpbrk(line->text, "0123456789") && line_has_any(line->text, progress) &&
	       !strstr(line->text, "File \"");
}

static void read_line(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	struct text_line *line = &l->line;

	line_clean(line, s, len, number);
	note_rank(l, line->rank);
	if (assert_line(l, line))
		return;
	if (!log_find_words(l))
		return;
	note_xid(l, line);
	if (l->error_here && l->env_lines > ENV_LINES - 500)
		l->env_lines = ENV_LINES - 500;
	if (l->env_lines < ENV_LINES) {	/* what a log has to say of the machine stands near its errors or its ends */
		env_line(&l->env, line_words(line), number);
		l->env_lines++;
	}
	talk_line(l, line);
	if (line->len) {
		if (shows_progress(l, line)) {
			l->progress = l->progress ? l->progress : number;
			l->progress_last = number;
		}
		keep_in_ring(l, line);
	}
}

/* Bytes that text does not have: enough of them and it is none. */
static void look_at_bytes(struct text_log *l, const char *s, size_t len)
{
	for (size_t i = 0; i < len && i < 512; i++)
		l->strange += ((unsigned char)s[i] < 0x20 && !strchr("\t\r\033\b", s[i])) || s[i] == 0;
	l->read += len < 512 ? len : 512;
}

/* A line that stands in a string of JSON, without the signs before its quotes. */
static void read_unquoted(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	char plain[2048];
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < sizeof(plain); i++)
		if (s[i] != '\\' || i + 1 == len || s[i + 1] != '"')
			plain[n++] = s[i];
	read_line(l, plain, n, number);
}

/* Logs in JSON write a whole traceback into one line: "message": "Traceback (most recent call last):\\n  File …". */
static void read_folded(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	/* paths of Windows have the same two characters */
	static const char *const marks[] = {"Traceback (most recent call last):\\n", "\\n  File \\\"", "\\n  File \"", "\\nCUDA kernel errors might"};
	bool folded = false;
	unsigned parts = 0;

	for (size_t i = 0; i < COUNT(marks); i++)
		folded |= memmem(s, len, marks[i], strlen(marks[i])) != NULL;
	if (!folded) {
		read_line(l, s, len, number);
		return;
	}
	while (len && parts++ < FOLDS_MAX) {
		const char *fold = memmem(s, len, "\\n", 2);
		size_t n = fold ? (size_t)(fold - s) : len;

		read_unquoted(l, s, n, number);
		s += n + (fold ? 2 : 0);
		len -= n + (fold ? 2 : 0);
	}
}

/* Progress bars write over themselves with '\r': what they wrote last is what was seen. */
static void take_line(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	struct text_log *l = arg;
	unsigned parts = 0;

	(void)gap;
	look_at_bytes(l, s, len);
	while (len && parts++ < 64) {
		const char *cr = memchr(s, '\r', len);
		size_t n = cr ? (size_t)(cr - s) : len;

		if (n || !cr)
			read_folded(l, s, n, number);
		s += n + (cr != NULL);
		len -= n + (cr != NULL);
	}
	if (!len && !parts)
		read_line(l, "", 0, number);
}

void log_hasty(struct text_log *l)
{
	l->hasty = true;
}

static void begin_input(struct text_log *l, const char *name)
{
	l->env_lines = 0;
	l->file = pool_strdup(&l->pool, name);
	for (size_t i = 0; i < TALKS_MAX; i++)
		l->talk[i] = (struct talk){0};
}

static void end_input(struct text_log *l, struct stream *st)
{
	stream_end(st);
	l->lines += stream_lines(st);
	l->bytes += stream_bytes(st);
	stream_free(st);
}

int log_read_fd(struct text_log *l, const char *name, int fd, int copy)
{
	struct stream *st = stream_new(l->fast, take_line, l);
	int rc;

	begin_input(l, name);
	rc = stream_read_fd(st, fd, copy);
	end_input(l, st);
	return rc;
}

void log_read_text(struct text_log *l, const char *name, const char *text, size_t len)
{
	struct stream *st = stream_new(l->fast, take_line, l);

	begin_input(l, name);
	if (l->hasty)
		stream_hasty(st);
	while (len) {
		size_t size;
		char *room = stream_room(st, &size);

		if (size > len)
			size = len;
		memcpy(room, text, size);
		stream_filled(st, size);
		text += size;
		len -= size;
	}
	end_input(l, st);
}
