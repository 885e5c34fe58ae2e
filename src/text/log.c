/* SPDX-License-Identifier: Apache-2.0
 * Reads logs (see log.h): every line that the stream hands on is cleaned, searched for words, and given to the readers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "text/log_priv.h"
#include "text/stream.h"
#include "base/banned.h"

static const char *const errors[] = {
#define MARK_ERROR(words) words,
#include "kb/text_marks.def"
};

static const char *const notes[] = {
#define MARK_NOTE(words) words,
#include "kb/text_marks.def"
};

static const char *const footers[] = {
#define MARK_FOOTER(words) words,
#include "kb/text_marks.def"
};

static const char *const fine[] = {
#define MARK_FINE(words) words,
#include "kb/text_marks.def"
	NULL
};

static const char *const progress[] = {
#define MARK_PROGRESS(words) words,
#include "kb/text_marks.def"
	NULL
};

#define ENV_LINES	20000
#define FOLDS_MAX	400	/* lines that one line holds */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

bool line_has_any(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(s, *words))
			return true;
	return false;
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Words of errors first, then footers, then those of rules in order, each once. */
static void collect_words(struct text_log *l, const char *const *words, size_t n)
{
	size_t start;

	l->words = xcalloc(COUNT(errors) + COUNT(footers) + COUNT(notes) + n + 1, sizeof(*l->words));
	for (size_t i = 0; i < COUNT(errors); i++)
		l->words[l->n_words++] = errors[i];
	l->n_errors = l->n_words;
	for (size_t i = 0; i < COUNT(footers); i++)
		l->words[l->n_words++] = footers[i];
	l->n_fixed = start = l->n_words;
	for (size_t i = 0; i < COUNT(notes); i++)
		l->words[l->n_words++] = notes[i];
	for (size_t i = 0; i < n; i++)
		l->words[l->n_words++] = words[i];
	qsort(l->words + start, l->n_words - start, sizeof(*l->words), compare_words);
	n = start;
	for (size_t i = start; i < l->n_words; i++)
		if (i == start || strcmp(l->words[i], l->words[n - 1]))
			l->words[n++] = l->words[i];
	l->n_words = n;
}

struct text_log *log_new(const char *const *words, size_t n)
{
	struct text_log *l = xcalloc(1, sizeof(*l));

	collect_words(l, words, n);
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

static void take_hit(void *arg, size_t which)
{
	struct text_log *l = arg;

	if (l->n_found < COUNT(l->found))
		l->found[l->n_found++] = which;
}

static void note_hit(struct text_log *l, size_t which)
{
	struct text_hit *h = &l->hit[which];

	l->error_here |= which < l->n_errors;
	if (!h->count++) {
		h->line = l->line.number;
		h->file = l->file;
		h->text = pool_copy(&l->pool, line_words(&l->line), strnlen(line_words(&l->line), 400));
	}
}

/* The words that are in the line. False when it is PyTorch's footer, which is evidence of nothing. */
static bool find_words(struct text_log *l)
{
	l->n_found = 0;
	l->error_here = false;
	needles_in_line(l->needles, l->line.text, l->line.len, take_hit, l);
	for (size_t i = 0; i < l->n_found; i++)
		if (l->found[i] >= l->n_errors && l->found[i] < l->n_fixed)
			return false;
	for (size_t i = 0; i < l->n_found; i++)
		note_hit(l, l->found[i]);
	if (l->error_here && line_has_any(l->line.text, fine))
		l->error_here = false;
	return true;
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
	if (!find_words(l))
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

/* An assertion without any error line is one all the same. */
void log_finish(struct text_log *l)
{
	for (size_t i = 0; i < l->n_events; i++)
		while (str_ends(l->event[i].message, "\n"))
			l->event[i].message = pool_copy(&l->pool, l->event[i].message, strlen(l->event[i].message) - 1);
}

size_t log_events(const struct text_log *l, const struct text_event **list)
{
	*list = l->event;
	return l->n_events;
}

size_t log_asserts(const struct text_log *l, const struct text_assert **list)
{
	*list = l->assertion;
	return l->n_asserts;
}

size_t log_xids(const struct text_log *l, const char *const **lines)
{
	*lines = l->xid;
	return l->n_xids;
}

const struct text_hit *log_hit(const struct text_log *l, const char *word)
{
	size_t low = l->n_fixed, high = l->n_words;

	for (size_t i = 0; i < l->n_fixed; i++)
		if (!strcmp(l->words[i], word))
			return l->hit[i].count ? &l->hit[i] : NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int d = strcmp(word, l->words[mid]);

		if (!d)
			return l->hit[mid].count ? &l->hit[mid] : NULL;
		if (d < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

const struct text_env *log_env(const struct text_log *l)
{
	return &l->env;
}

uint64_t log_lines(const struct text_log *l)
{
	return l->lines;
}

uint64_t log_bytes(const struct text_log *l)
{
	return l->bytes;
}

bool log_binary(const struct text_log *l)
{
	return l->strange * 16 > l->read;
}

bool log_progress(const struct text_log *l)
{
	return l->progress != 0;
}

bool log_progress_before(const struct text_log *l, uint64_t line)
{
	return l->progress && l->progress < line;
}

bool log_progress_after(const struct text_log *l, uint64_t line)
{
	return l->progress_last > line;
}

size_t log_ranks(const struct text_log *l)
{
	size_t n = 0;

	for (size_t i = 0; i < RANKS_MAX; i++)
		n += (l->rank[i / 8] >> (i % 8)) & 1;
	return n;
}

const char *log_tail(struct text_log *l)
{
	char *text = pool_strdup(&l->pool, "");
	size_t first = l->ring_n > RING_LINES ? l->ring_n - RING_LINES : 0;

	for (size_t i = first; i < l->ring_n; i++)
		text = pool_printf(&l->pool, "%s%s\n", text, l->ring[i % RING_LINES]);
	return text;
}
