/* SPDX-License-Identifier: Apache-2.0
 * Skims a text block by block (see stream.h).
 */
#include "input/text/stream.h"

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

struct stream {
	const struct needles *needles;
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
	uint32_t *places;	/* of each needle */
	bool gap, in_long, utf16, ended;
};

struct stream *stream_new(const struct needles *n, stream_fn *line, void *arg)
{
	struct stream *st = xcalloc(1, sizeof(*st));

	st->needles = n;
	st->line = line;
	st->arg = arg;
	st->buf = xmalloc(KEEP + BLOCK);
	st->places = xcalloc(needles_count(n) + 1, sizeof(*st->places));
	st->number = 1;
	return st;
}

void stream_free(struct stream *st)
{
	if (!st)
		return;
	free(st->places);
	free(st->buf);
	free(st);
}

void stream_hasty(struct stream *st)
{
	st->told_bytes = START;
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
static size_t tell_place(struct stream *st, size_t pos, size_t at, size_t limit, uint32_t places)
{
	size_t start = line_start(st, pos, at), end = line_end(st, at, limit);

	if (at - start > STREAM_LINE_MAX / 8)
		start = at - STREAM_LINE_MAX / 8;
	else if (places < ATTENTION)
		tell_before(st, start, BEFORE, BEFORE_BYTES);
	if (start < st->told)
		start = st->told;
	stream_tell(st, start, end);
	if (places < ATTENTION)
		st->attentive = AFTER;
	return end < limit ? end + 1 : limit;
}

/* The first interesting place in a part of a very long line, with its surroundings. */
static void tell_long(struct stream *st, size_t pos, size_t end)
{
	size_t which, at, from;
	const char *hit = needles_find(st->needles, st->buf + pos, st->buf + end, &which);

	if (!hit)
		return;
	at = (size_t)(hit - st->buf);
	from = at > pos + STREAM_LINE_MAX / 8 ? at - STREAM_LINE_MAX / 8 : pos;
	stream_tell(st, from, end);
}

/* Continues a line that began earlier. Returns where the next one begins. */
static size_t look_long(struct stream *st, size_t limit)
{
	size_t end = line_end(st, st->done, limit);

	tell_long(st, st->done, end);
	st->in_long = false;
	return end < limit ? end + 1 : limit;
}

/* Scans whole lines: [done, limit). */
static void stream_look(struct stream *st, size_t limit)
{
	size_t pos = st->in_long ? look_long(st, limit) : st->done, which;

	while (pos < limit) {
		const char *hit;

		if (st->attentive || st->told_bytes + pos < START) {
			size_t end = line_end(st, pos, limit);

			stream_tell(st, pos, end);
			if (end - pos > STREAM_LINE_MAX)	/* the part that was cut off may be interesting, too */
				tell_long(st, pos + STREAM_LINE_MAX, end);
			st->attentive -= st->attentive > 0;
			pos = end < limit ? end + 1 : limit;
			continue;
		}
		hit = needles_find(st->needles, st->buf + pos, st->buf + limit, &which);
		if (!hit)
			break;
		if (st->places[which] < ENOUGH)
			pos = tell_place(st, pos, (size_t)(hit - st->buf), limit, st->places[which]++);
		else
			pos = (size_t)(hit - st->buf) + 1;
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
	if (nl) {
		stream_look(st, (size_t)(nl - st->buf) + 1);
	} else if (st->len == KEEP + BLOCK && st->done <= KEEP) {
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

int stream_read_fd(struct stream *st, int fd, int copy)
{
	for (;;) {
		size_t size;
		char *room = stream_room(st, &size);
		ssize_t n = read(fd, room, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return 0;
		/* the reader of the copy may go away; we still want the answer */
		progress_add((uint64_t)n);
		if (copy >= 0 && copy_on(copy, room, (size_t)n) < 0)
			copy = -1;
		stream_filled(st, (size_t)n);
	}
}
