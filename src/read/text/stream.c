/* SPDX-License-Identifier: Apache-2.0
 * Skims a text block by block (see stream.h).
 */
#include "read/text/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/progress.h"
#include "base/needles.h"

#define BLOCK		(512u << 10)
#define KEEP		(96u << 10)	/* of skipped text: context for what may follow */
#define START		(256u << 10)	/* bytes at the beginning that are always passed on */
#define BEFORE		40		/* lines before an interesting one */
#define AFTER		120		/* and after it */
#define BEFORE_BYTES	(16u << 10)
#define END_LINES	400		/* at the end of the text */
#define ATTENTION	64		/* hits of one needle that get context lines; later ones are passed on alone */
#define ENOUGH		200000		/* and after this many they are skipped */
#define STRETCH		(4u << 20)	/* bytes of text */
#define SPARING		8		/* hits of a needle in a stretch, if it is of the kind that needs no more */

struct stream {
	struct needles *needles;
	stream_fn *line;
	void *arg;
	char *buf;
	size_t len;		/* bytes in it */
	size_t done;		/* bytes that were scanned */
	size_t told;		/* bytes up to which lines were passed on or dropped */
	uint64_t number;	/* of the line that begins at `counted` */
	size_t counted;
	uint64_t bytes, told_bytes;
	size_t attentive;	/* lines to pass on whatever is in them */
	uint64_t stretch_ends;	/* bytes */
	uint32_t *places;	/* of each needle */
	uint8_t *recent;	/* those in this stretch */
	const bool *sparing;	/* NULL: no needle is of that kind */
	bool gap, in_long, utf16, ended;
};

struct stream *stream_new(struct needles *n, stream_fn *line, void *arg)
{
	struct stream *st = xcalloc(1, sizeof(*st));

	st->needles = n;
	st->line = line;
	st->arg = arg;
	st->buf = xmalloc(KEEP + BLOCK);
	st->places = xcalloc(needles_count(n) + 1, sizeof(*st->places));
	st->recent = xcalloc(needles_count(n) + 1, sizeof(*st->recent));
	st->number = 1;
	return st;
}

void stream_free(struct stream *st)
{
	if (!st)
		return;
	for (size_t i = 0; i < needles_count(st->needles); i++)
		needles_mute(st->needles, i, false);	/* for the next text */
	free(st->recent);
	free(st->places);
	free(st->buf);
	free(st);
}

void stream_hasty(struct stream *st)
{
	st->told_bytes = START;
}

void stream_sparing(struct stream *st, const bool *sparing)
{
	st->sparing = sparing;
}

uint64_t stream_bytes(const struct stream *st)
{
	return st->bytes;
}

static size_t count_newlines(const char *s, size_t n)
{
	size_t all = 0;

	for (; n >= 64; n -= 64, s += 64) {	/* a fixed count fits into a byte each, so the compiler can vectorize */
		unsigned char sum = 0;

		for (int i = 0; i < 64; i++)
			sum += s[i] == '\n';
		all += sum;
	}
	while (n--)
		all += *s++ == '\n';
	return all;
}

static void count_to(struct stream *st, size_t at)
{
	if (at > st->counted) {
		st->number += count_newlines(st->buf + st->counted, at - st->counted);
		st->counted = at;
	}
}

static void stream_tell(struct stream *st, size_t at, size_t end)
{
	size_t len = end - at;

	count_to(st, at);
	st->line(st->arg, st->buf + at, len < STREAM_LINE_MAX ? len : STREAM_LINE_MAX, st->number,
		 st->gap || at > st->told);
	st->gap = false;
	st->told = end < st->len ? end + 1 : end;
}

/* Where the line that contains `at` begins, not before `from`. */
static size_t line_start(const struct stream *st, size_t from, size_t at)
{
	const char *nl = at > from ? memrchr(st->buf + from, '\n', at - from) : NULL;

	return nl ? (size_t)(nl - st->buf) + 1 : from;
}

static size_t line_end(const struct stream *st, size_t at, size_t limit)
{
	const char *nl = memchr(st->buf + at, '\n', limit - at);

	return nl ? (size_t)(nl - st->buf) : limit;
}

/* Passes on the lines before `at`, which begins a line: at most this many, not before `told`. */
static void tell_before(struct stream *st, size_t at, size_t lines, size_t bytes)
{
	size_t from = at, lowest = st->told > at ? at : st->told;

	if (at - lowest > bytes)
		lowest = at - bytes;
	while (lines-- && from > lowest)
		from = line_start(st, lowest, from - 1);
	/* never pass on half of a line that began earlier */
	if (from == lowest && lowest > 0 && st->buf[lowest - 1] != '\n' && lowest != st->told)
		from = line_end(st, lowest, at) < at ? line_end(st, lowest, at) + 1 : at;
	while (from < at) {
		size_t end = line_end(st, from, at);

		stream_tell(st, from, end);
		from = end + 1;
	}
}

/* An interesting place: its line, or the part of a very long line around it. Returns where to go on. */
static size_t tell_place(struct stream *st, size_t pos, size_t at, size_t limit, bool context)
{
	size_t start = line_start(st, pos, at), end = line_end(st, at, limit);

	if (at - start > STREAM_LINE_MAX / 8)
		start = at - STREAM_LINE_MAX / 8;
	else if (context)
		tell_before(st, start, BEFORE, BEFORE_BYTES);
	if (start < st->told)
		start = st->told;
	stream_tell(st, start, end);
	if (context)
		st->attentive = AFTER;
	return end < limit ? end + 1 : limit;
}

static bool is_sparing(const struct stream *st, size_t which)
{
	return st->sparing && st->sparing[which];
}

/* Some words are in every other line of a log: its speed must not depend on them. */
static void note_place(struct stream *st, size_t which)
{
	st->places[which]++;
	if (st->places[which] >= ENOUGH || (is_sparing(st, which) && ++st->recent[which] >= SPARING))
		needles_mute(st->needles, which, true);
}

/* The interesting places in a part of a very long line, each with its surroundings. */
static void tell_long(struct stream *st, size_t pos, size_t end)
{
	const char *hit;
	size_t which, at, from;

	while (pos < end && (hit = needles_find(st->needles, st->buf + pos, st->buf + end, &which))) {
		at = (size_t)(hit - st->buf);
		from = at > pos + STREAM_LINE_MAX / 8 ? at - STREAM_LINE_MAX / 8 : pos;
		stream_tell(st, from, end);
		note_place(st, which);
		pos = from + STREAM_LINE_MAX;
	}
}

/* Continues a line that began earlier. Returns where the next one begins. */
static size_t look_long(struct stream *st, size_t limit)
{
	size_t end = line_end(st, st->done, limit);

	tell_long(st, st->done, end);
	st->in_long = false;
	return end < limit ? end + 1 : limit;
}

static void begin_stretch(struct stream *st, uint64_t at)
{
	st->stretch_ends = at + STRETCH - at % STRETCH;
	for (size_t i = 0; i < needles_count(st->needles); i++) {
		st->recent[i] = 0;
		needles_mute(st->needles, i, st->places[i] >= ENOUGH);
	}
}

/* Where the search from `pos` on ends: a stretch ends with a line, so that it does not matter in which pieces the text comes. */
static size_t stretch_end(struct stream *st, size_t pos, size_t limit)
{
	size_t end;

	if (st->told_bytes + pos >= st->stretch_ends)
		begin_stretch(st, st->told_bytes + pos);
	if (st->told_bytes + limit <= st->stretch_ends)
		return limit;
	end = line_end(st, (size_t)(st->stretch_ends - st->told_bytes), limit);
	return end < limit ? end + 1 : limit;
}

/* Scans whole lines: [done, limit). */
static void stream_look(struct stream *st, size_t limit)
{
	size_t pos = st->in_long ? look_long(st, limit) : st->done, end, which;

	while (pos < limit) {
		const char *hit;

		if (st->attentive || st->told_bytes + pos < START) {
			end = line_end(st, pos, limit);
			stream_tell(st, pos, end);
			if (end - pos > STREAM_LINE_MAX)	/* the part that was cut off may be interesting, too */
				tell_long(st, pos + STREAM_LINE_MAX, end);
			st->attentive -= st->attentive > 0;
			pos = end < limit ? end + 1 : limit;
			continue;
		}
		end = stretch_end(st, pos, limit);
		hit = needles_find(st->needles, st->buf + pos, st->buf + end, &which);
		if (hit) {
			bool context = st->places[which] < (is_sparing(st, which) ? SPARING : ATTENTION);

			if (context && !is_sparing(st, which))	/* after an error, what is said counts anew */
				begin_stretch(st, st->told_bytes + pos);
			end = tell_place(st, pos, (size_t)(hit - st->buf), end, context);
			note_place(st, which);
		}
		pos = end;
	}
	st->done = limit;
}

/* Keeps the last bytes as context, moves them to the front. */
static void stream_make_room(struct stream *st)
{
	size_t from = st->done > KEEP ? st->done - KEEP : 0;

	if (!from)
		return;
	count_to(st, from);
	memmove(st->buf, st->buf + from, st->len - from);
	st->gap |= st->told < from;
	st->told = st->told > from ? st->told - from : 0;
	st->counted -= from;
	st->told_bytes += from;
	st->done -= from;
	st->len -= from;
}

char *stream_room(struct stream *st, size_t *size)
{
	if (st->len == KEEP + BLOCK)
		stream_make_room(st);
	*size = KEEP + BLOCK - st->len;
	return st->buf + st->len;
}

/* PowerShell writes two bytes per character: the second ones are dropped. */
static size_t narrow_utf16(struct stream *st, char *s, size_t n)
{
	size_t kept = 0;

	if (!st->bytes && n >= 2 && (unsigned char)s[0] == 0xff && (unsigned char)s[1] == 0xfe)
		st->utf16 = true;
	if (!st->utf16)
		return n;
	for (size_t i = 0; i < n; i++)
		if (s[i] && (unsigned char)s[i] < 0xfe)
			s[kept++] = s[i];
	return kept;
}

void stream_filled(struct stream *st, size_t n)
{
	size_t kept = narrow_utf16(st, st->buf + st->len, n);
	char *nl;

	st->bytes += n;
	nl = kept ? memrchr(st->buf + st->len, '\n', kept) : NULL;
	st->len += kept;
	if (nl)
		stream_look(st, (size_t)(nl - st->buf) + 1);
	if (st->len == KEEP + BLOCK && st->done <= KEEP) {
		/* a line longer than the buffer: scanned in parts that overlap */
		stream_look(st, st->len - STREAM_LINE_MAX / 8);
		st->in_long = true;
	}
	if (st->len == KEEP + BLOCK)
		stream_make_room(st);
}

void stream_end(struct stream *st)
{
	if (st->ended)
		return;
	st->ended = true;
	stream_look(st, st->len);
	if (st->told < st->len)
		tell_before(st, st->len, END_LINES, KEEP / 2);
	count_to(st, st->len);
	st->number += st->len && st->buf[st->len - 1] != '\n';
}

static int copy_on(int fd, const char *s, size_t n)
{
	while (n) {
		ssize_t done = write(fd, s, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		s += done;
		n -= (size_t)done;
	}
	return 0;
}

/* What was read, to whom it belongs. */
static void take_bytes(struct stream *st, const char *s, size_t n, int *copy)
{
	progress_add((uint64_t)n);
	if (*copy >= 0 && copy_on(*copy, s, n) < 0)	/* the reader of the copy may go away; we still want the answer */
		*copy = -1;
	stream_filled(st, n);
}

int stream_read_fd(struct stream *st, int fd, int copy, const char *head, size_t n_head)
{
	for (bool first = true;; first = false) {
		size_t size;
		char *room = stream_room(st, &size);
		ssize_t n = (ssize_t)n_head;

		if (first)
			memcpy(room, head, n_head);
		else
			n = read(fd, room, size);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		take_bytes(st, room, (size_t)n, &copy);
	}
}
