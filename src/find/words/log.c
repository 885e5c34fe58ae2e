/* SPDX-License-Identifier: Apache-2.0
 * Reads logs (see log.h): every line that the stream hands on is cleaned, searched for words, and given to the readers of assertions, of the
 * machine, and of what each process says.
 */
#include "find/words/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "find/words/log_parts.h"
#include "read/text/line.h"
#include "read/text/said.h"
#include "read/text/stream.h"
#include "read/text/unpack.h"

#define ENV_LINES	20000	/* that are searched for the machine */

static void note_rank(struct text_log *l, int rank)
{
	if (rank >= 0 && rank < RANKS_MAX)
		l->machine.rank[rank / 8] |= (unsigned char)(1u << (rank % 8));
}

static void note_xid(struct text_log *l, const struct text_line *line)
{
	if (l->machine.n_xids < LOG_XIDS_MAX && says(line->text, SAID_xid))
		l->machine.xid[l->machine.n_xids++] = pool_strdup(&l->pool, line->text);
}

/* The same error as in the line before, with other numbers: it says nothing new about the machine, and starts nothing. */
static bool is_error_again(struct text_log *l, const struct text_line *line)
{
	uint64_t shape = l->here.error ? log_shape_of(line->text) : 0, last = l->here.error_shape;

	l->here.error_shape = shape;
	return shape && shape == last;
}

static void log_line(void *arg, struct text_line *line)
{
	struct text_log *l = arg;
	struct talk *t;
	bool again, fails;

	line->order = ++l->input.order;
	l->here.line = line;
	if (line->rank < 0)
		line->rank = l->input.rank;
	note_rank(l, line->rank);
	if (printed_asserts_line(&l->asserts, &l->pool, line))
		return;
	t = log_talk_of(l, line->who);
	log_note_underline(l, line);
	l->here.len_before = line->len;
	l->input.passed += line->len + 1;
	fails = text_words_line(&l->in_text, &l->pool, line->text);
	if (quoted_line(&l->input.quoted, line) && !in_traceback(t))
		return;
	log_note_complaint(l, t, line);
	if (log_is_code_around(t, line) || !log_find_words(l, !in_traceback(t)))
		return;
	note_xid(l, line);
	again = is_error_again(l, line);
	if (l->here.error && !again && l->machine.lines > ENV_LINES - 500)
		l->machine.lines = ENV_LINES - 500;
	if (!again && l->machine.lines < ENV_LINES) {	/* what a log says about the machine is near its errors or its ends */
		env_line(&l->machine.env, line_words(line), line->order, l->input.file, line->number);
		crash_line(&l->machine.crash, line_words(line));
		l->machine.lines++;
	}
	log_note_alarm(l, t, line);
	if (fails)
		log_note_trouble(l, t, line);
	if (!again)
		log_note_restart(l, t, line);
	if (says(line_words(line), SAID_smi_table))
		l->machine.answered = line->order, l->machine.answered_progress = l->runs.progress;
	log_talk_line(l, t, line);
	if (line->len) {
		if (l->events.n && log_went_on_here(l, line))
			log_note_progress(l, line);
		if (log_shows_progress(l, line)) {
			t->progress++;
			t->shape = log_shape_of(line->text);
			log_note_run_progress(l, line);
		}
		log_keep_line(l, line);
	}
}

static void log_take_line(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	struct text_log *l = arg;

	(void)gap;
	/* Bytes that text does not have: with enough of them it is not text. */
	for (size_t i = 0; i < len && i < 512; i++)
		l->input.strange += ((unsigned char)s[i] < 0x20 && !strchr("\t\r\033\b", s[i])) || s[i] == 0;
	l->input.read += len < 512 ? len : 512;
	log_note_stamp(l, s, len, number);
	clothes_line(l->input.clothes, s, len, number);
}

struct text_log *log_new(void)
{
	struct text_log *l = xcalloc(1, sizeof(*l));

	log_begin_words(l);
	l->input.clothes = clothes_new(log_line, l);
	l->told.opening = true;
	env_init(&l->machine.env);
	return l;
}

void log_free(struct text_log *l)
{
	if (!l)
		return;
	clothes_free(l->input.clothes);
	log_release_words(l);
	free(l->input.files);
	text_words_release(&l->in_text);
	pool_release(&l->pool);
	free(l);
}

void log_hasty(struct text_log *l)
{
	l->input.hasty = true;
}

static void begin_input(struct text_log *l, const char *name)
{
	l->machine.lines = 0;
	l->input.strange = l->input.read = 0;
	l->input.file = pool_strdup(&l->pool, name);
	l->input.rank = line_rank_of_file(name);
	l->input.quoted = (struct quoted){0};
	l->runs.restarts = (struct restarts){0};
	l->input.files = xrealloc(l->input.files, l->input.n_files + 1, sizeof(*l->input.files));
	l->input.files[l->input.n_files++] =
		(struct text_file){.name = l->input.file, .rank = l->input.rank, .order = l->input.order + 1};
	l->stamps.n = 0;
	clothes_begin(l->input.clothes);
	for (size_t i = 0; i < TALKS_MAX && l->input.n_files > 1; i++)
		l->talks.list[i] = (struct talk){0};
}

static void end_input(struct text_log *l, struct stream *st)
{
	stream_end(st);
	clothes_end(l->input.clothes);
	for (size_t i = 0; i < TALKS_MAX; i++)
		log_cut_traceback(l, &l->talks.list[i]);
	for (size_t i = 0; i < l->events.n; i++)
		l->events.list[i].handled |=
			l->events.list[i].file == l->input.file && log_went_on_after(l, &l->events.list[i]);
	l->input.bytes += stream_bytes(st);
	stream_free(st);
}

/* A pipe cannot be looked at twice, and may give less than was asked for. */
static ssize_t read_head(int fd, unsigned char *head)
{
	size_t n = 0;

	while (n < UNPACK_HEAD) {
		ssize_t more = read(fd, head + n, UNPACK_HEAD - n);

		if (more < 0 && errno == EINTR)
			continue;
		if (more < 0)
			return -errno;
		n += (size_t)more;
		if (!more || (head[0] != 0x1f && head[0] != 0xfd && head[0] != 0x28))	/* text: waiting would hold up the copy */
			break;
	}
	return (ssize_t)n;
}

static struct stream *log_stream(struct text_log *l)
{
	struct stream *st = stream_new(l->search.fast, log_take_line, l);

	stream_sparing(st, AT(l->search.words->asked));
	return st;
}

int log_read_fd(struct text_log *l, const char *name, int fd, int copy)
{
	struct stream *st = log_stream(l);
	unsigned char head[UNPACK_HEAD];
	ssize_t n = read_head(fd, head);
	enum packing kind = n > 0 ? unpack_kind(head, (size_t)n) : PACKED_NOT;
	int rc = n < 0 ? (int)n : 0;

	begin_input(l, name);
	if (n > 0 && kind)
		rc = unpack_fd(st, fd, kind, head, (size_t)n);
	else if (n > 0)
		rc = stream_read_fd(st, fd, copy, (const char *)head, (size_t)n);
	end_input(l, st);
	return rc;
}

void log_read_text(struct text_log *l, const char *name, const char *text, size_t len)
{
	struct stream *st = log_stream(l);

	begin_input(l, name);
	if (l->input.hasty)
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

size_t log_files(const struct text_log *l, const struct text_file **list)
{
	*list = l->input.files;
	return l->input.n_files;
}

const struct text_words *log_words(const struct text_log *l)
{
	return &l->in_text;
}

size_t log_xids(const struct text_log *l, const char *const **lines)
{
	*lines = l->machine.xid;
	return l->machine.n_xids;
}

const struct text_env *log_env(const struct text_log *l)
{
	return &l->machine.env;
}

const char *log_crashed(const struct text_log *l)
{
	return l->machine.crash.library;
}

uint64_t log_bytes(const struct text_log *l)
{
	return l->input.bytes;
}

bool log_binary(const struct text_log *l)
{
	return l->input.strange * 16 > l->input.read;
}

size_t log_ranks(const struct text_log *l)
{
	size_t n = 0;

	for (size_t i = 0; i < RANKS_MAX; i++)
		n += (l->machine.rank[i / 8] >> (i % 8)) & 1;
	return n;
}
