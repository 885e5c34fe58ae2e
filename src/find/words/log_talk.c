/* SPDX-License-Identifier: Apache-2.0
 * What one process says: tracebacks, exceptions and their messages, each process apart from the others (see log.h).
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "case/known_message.h"
#include "find/words/complaint.h"
#include "find/words/log_parts.h"
#include "find/words/observe.h"
#include "read/text/exception.h"
#include "read/text/line.h"
#include "read/text/said.h"

#define MESSAGE_LINES	14
#define STRAYS_MAX	6	/* lines inside a traceback that belong to another process */

struct talk *log_talk_of(struct text_log *l, const char *who)
{
	struct talk *oldest = &l->talks.list[0];

	for (size_t i = 0; i < TALKS_MAX; i++) {
		struct talk *t = &l->talks.list[i];

		if (t->used && !strcmp(t->who, who)) {
			t->used = ++l->talks.clock;
			return t;
		}
		if (t->used < oldest->used)
			oldest = t;
	}
	*oldest = (struct talk){.used = ++l->talks.clock};
	str_copy(oldest->who, sizeof(oldest->who), who);
	return oldest;
}

/* The next line of the message. False when it has ended. */
static bool continue_message(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line);
	size_t name;

	if (says(s, SAID_native_frame))
		return true;
	if (!line->len)
		return t->event && !t->event->message[0];
	if (says(s, SAID_ends_message) || exception_line(s, false, &name) || ++t->lines > MESSAGE_LINES ||
	    (t->event && t->event->listed && quoted_item(s)) || log_found_message(l))
		return false;
	if (t->event)
		t->event->marked |= l->here.error;
	if (t->event && strlen(t->event->message) < MESSAGE_MAX)
		t->event->message =
			pool_printf(&l->pool, "%s%s%s", t->event->message, t->event->message[0] ? "\n" : "", s);
	return true;
}

/* All of its error phrases are cited. */
static bool is_cited(const struct text_log *l)
{
	const char *text = line_words(l->here.line);
	bool cited = false;

	for (size_t i = 0; i < l->search.n_found; i++) {
		const char *at = l->search.found[i] < l->search.words->n_errors
					 ? strcasestr(text, word_text(l->search.words, l->search.found[i]))
					 : NULL;

		if (at && !quoted_citation(text, at))
			return false;
		cited |= at != NULL;
	}
	return cited;
}

/* "First it said CUDA out of memory, then …": words lead to it, and no colon. */
static bool is_in_sentence(const struct text_log *l)
{
	const char *text = line_words(l->here.line);

	for (size_t i = 0; i < l->search.n_found; i++) {
		const char *at = l->search.found[i] < l->search.words->n_errors
					 ? strcasestr(text, word_text(l->search.words, l->search.found[i]))
					 : NULL;

		if (at && (at < text + 2 || at[-1] != ' ' || !isalpha((unsigned char)at[-2])))
			return false;
	}
	return is_prose(text);
}

static void start_message(struct text_log *l, struct talk *t, const struct text_line *line, const char *s, size_t name)
{
	const char *message = s + name;

	l->here.exception = true;
	message += strspn(message, ": ");
	if (*message == '(' && name && s[name] == '(')
		message = s + name;
	t->event = log_add_event(l, t, line, s, name, message);
	if (t->event) {
		t->event->raised = name && s == line_words(line);
		t->event->listed = !t->event->raised && quoted_item(line_words(line));
		t->event->cited = is_cited(l);
		t->event->in_sentence = !name && s == line_words(line) && !line->prefixed && is_in_sentence(l);
	}
	if (t->event)
		t->event->n_frames = traceback_keep(&t->traceback, &l->pool, &t->event->frame);
	t->state = TALK_MESSAGE;
	t->headed = t->chained = false;
	t->lines = 0;
	t->traceback.n = 0;
}

/* A message that was copied without the exception's name: in backticks, or as the beginning of the text. */
static const char *copied_message(const struct text_log *l, const char *s)
{
	const char *at = strchr(s, '`');

	if (l->told.opening && known_message(s, NULL))
		return s;
	return at && known_message(at + 1, NULL) ? at + 1 : NULL;
}

/* "!!! Exception during processing !!! Expected …", "inference failed: expected scalar type …": a message whose exception a program
 * caught and logged without its name. "Error occurred when executing KSampler:": it follows. NULL: neither. */
static const char *announced_message(const struct text_log *l, const char *s)
{
	const char *at;

	if (says(s, SAID_announces))
		return s + strlen(s);
	for (size_t row = 0; (at = says_before(s, SAID_announced, &row)) != NULL;)
		if (known_message(at, NULL))
			return at;
	return copied_message(l, s);
}

/* "is_gds_supported: cudaDeviceGetAttribute failed, deviceId=1, err=101": no known words, but a code of CUDA's. */
static bool is_failed_call(const struct text_log *l, const struct text_line *line)
{
	const char *s = line_words(line);

	return line->alarm && !line->leveled && !l->here.fine && names_gpu(s) && text_code(s) && !quoted_code(s) &&
	       !quoted_item(s);
}

/* "Exception has occurred: RuntimeError", of a debugger, which shows the message below it; NULL: it is another line. */
static const char *debugger_exception(const char *s, size_t *name)
{
	const char *after;

	return says_at(s, SAID_debugger, &after) && exception_line(after, false, name) ? after : NULL;
}

/* Outside of a traceback: an exception's line, or an error phrase. */
static void idle_line(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line), *inner;
	size_t name = 0;

	if (str_starts(s, "what():")) {
		s += 7 + strspn(s + 7, " ");
		if (!exception_line(s, false, &name))
			name = 0;
		start_message(l, t, line, s, name);
	} else if (exception_line(s, false, &name)) {
		start_message(l, t, line, s, name);
	} else if ((inner = debugger_exception(s, &name)) != NULL) {
		start_message(l, t, line, inner, name);
		if (t->event)
			t->event->raised = true;
	} else if (!l->here.fine && (inner = exception_within(s, &name)) != NULL) {
		start_message(l, t, line, inner, name);
	} else if (!l->here.fine && !quoted_code(s) && (inner = announced_message(l, s)) != NULL) {
		start_message(l, t, line, inner, 0);
		if (t->event)
			t->event->marked |= *inner != '\0';
	} else if (l->here.error || is_failed_call(l, line)) {
		start_message(l, t, line, s, 0);
	}
}

static void note_frame(struct text_log *l, struct talk *t, const struct text_line *line)
{
	l->here.exception = true;
	t->frame_indent = line->indent;
	t->frame_order = line->order;
	t->frame_number = line->number;
	t->frame_rank = line->rank;
}

static void traceback_line(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line);
	size_t name;

	if (!line->len)
		return;
	if (traceback_frame(&t->traceback, s) || traceback_arrow(&t->traceback, s)) {
		note_frame(l, t, line);
		t->strays = 0;
	} else if (line->indent > t->indent) {
		l->here.exception = true;
		traceback_source(&t->traceback, s);
	} else if (exception_line(s, true, &name)) {
		start_message(l, t, line, s, name);
	} else if (l->here.error || ++t->strays > STRAYS_MAX) {
		/* the traceback was cut off */
		t->state = TALK_IDLE;
		idle_line(l, t, line);
	}
}

void log_talk_line(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line);
	size_t name;

	if (says(s, SAID_traceback)) {
		/* "RuntimeError   Traceback (most recent call last)" of notebooks is no frame */
		if (t->headed)
			log_cut_traceback(l, t);
		t->headed = true;
		t->stack = false;
		t->state = TALK_TRACEBACK;
		t->indent = line->indent;
		t->traceback.n = 0;
		t->strays = 0;
		return;
	}
	if (t->state == TALK_TRACEBACK) {
		traceback_line(l, t, line);
		return;
	}
	if (t->state == TALK_MESSAGE && continue_message(l, t, line))
		return;
	t->state = TALK_IDLE;
	t->chained |= says(s, SAID_chained);
	t->stack |= says(s, SAID_stack);
	if (traceback_frame(&t->traceback, s)) {	/* the beginning of the traceback is missing */
		note_frame(l, t, line);
		return;
	}
	if (t->traceback.n && line->indent > 2 && line->indent < 8 && line->indent > t->frame_indent &&
	    (!l->here.error || line->order == t->frame_order + 1) && !exception_line(s, false, &name)) {
		l->here.exception = true;
		traceback_source(&t->traceback, s);
		return;
	}
	idle_line(l, t, line);
}

bool log_is_code_around(struct talk *t, const struct text_line *line)
{
	static const struct traceback none;
	const char *s = line_words(line);

	if (!isdigit((unsigned char)*s))
		return false;
	if (t->state == TALK_TRACEBACK && t->traceback.n && t->strays < STRAYS_MAX * 4 &&
	    traceback_context(&t->traceback, s)) {
		t->strays++;
		return true;
	}
	return traceback_context(&none, s);
}
