/* SPDX-License-Identifier: Apache-2.0
 * Reads tracebacks and lines that tell of errors, for each process that writes into a log apart from the others.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "input/text/log_priv.h"
#include "base/banned.h"

#define STRAYS_MAX	6	/* lines inside of a traceback that belong to somebody else */

static const char *const peers[] = {
#define MARK_PEER(words) words,
#include "kb/text_marks.def"
	NULL
};

static struct talk *talk_of(struct text_log *l, const char *who)
{
	struct talk *oldest = &l->talk[0];

	for (size_t i = 0; i < TALKS_MAX; i++) {
		struct talk *t = &l->talk[i];

		if (t->used && !strcmp(t->who, who)) {
			t->used = ++l->clock;
			return t;
		}
		if (t->used < oldest->used)
			oldest = t;
	}
	*oldest = (struct talk){.used = ++l->clock};
	str_copy(oldest->who, sizeof(oldest->who), who);
	return oldest;
}

/* ---- exceptions ------------------------------------------------------------------------------------- */

/* Letters, digits, '_' and '.', as the name of an exception has them. Its length. */
static size_t name_length(const char *s)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*s) && *s != '_')
		return 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.')
		n++;
	return n;
}

static bool is_exception_name(const char *s, size_t n)
{
	static const char *const ends[] = {"Error", "Exception", "Interrupt", "Warning", "Exit", "OutOfResources",
					   "StopIteration", "NoTritonConfigsError", "Timeout"};

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (n >= strlen(ends[i]) && !strncmp(s + n - strlen(ends[i]), ends[i], strlen(ends[i])))
			return true;
	return false;
}

/* "RuntimeError: message", "torch.cuda.OutOfMemoryError: …", "KeyboardInterrupt". Ray: "RayTaskError(ValueError): ". */
static bool is_exception_line(const char *s, bool in_traceback, size_t *name)
{
	size_t n = name_length(s), after = n;

	if (!n)
		return false;
	if (s[after] == '(' && is_exception_name(s, n))
		after += strcspn(s + after, ")") + 1;
	if (s[after] && s[after] != ':')
		return false;
	if (s[after] == ':' && s[after + 1] && s[after + 1] != ' ')
		return false;
	*name = n;
	return is_exception_name(s, n) || (in_traceback && s[after] == ':' && strchr(s, '.') != NULL && strchr(s, '.') < s + n) ||
	       (in_traceback && !s[after] && isupper((unsigned char)*s));
}

/* "x.py:128: UserWarning: message", "Process failed: RuntimeError: message": an exception within a line. */
static const char *inner_exception(const char *s, size_t *name)
{
	for (const char *at = s; (at = strchr(at, ':')) != NULL; at++) {
		const char *from = at;

		while (from > s && (isalnum((unsigned char)from[-1]) || from[-1] == '_' || from[-1] == '.'))
			from--;
		*name = (size_t)(at - from);
		if (at[1] == ' ' && *name > 5 && is_exception_name(from, *name))
			return from;
	}
	return NULL;
}

/* Two messages are the same when they differ in numbers only. */
static bool same_words(const char *a, const char *b)
{
	for (;;) {
		while (isdigit((unsigned char)*a) || *a == '.')
			a++;
		while (isdigit((unsigned char)*b) || *b == '.')
			b++;
		if (!*a || *a == '\n' || !*b || *b == '\n')	/* the first lines alone: more may follow */
			return (!*a || *a == '\n') && (!*b || *b == '\n');
		if (*a != *b)
			return false;
		a++, b++;
	}
}

static struct text_event *find_event(struct text_log *l, const char *type, const char *message)
{
	for (size_t i = 0; i < l->n_events; i++) {
		struct text_event *e = &l->event[i];

		if (!strcmp(e->type, type) && same_words(e->message, message))
			return e;
	}
	return NULL;
}

static const char *ring_text(struct text_log *l)
{
	return log_tail(l);
}

/* Room for one more. A log full of warnings must not hide the error at its end: the newest of the lesser ones makes room. */
static struct text_event *new_event(struct text_log *l, bool lesser)
{
	size_t i;

	if (l->n_events < LOG_EVENTS_MAX)
		return &l->event[l->n_events++];
	for (i = LOG_EVENTS_MAX; !lesser && i-- > 0;) {
		if (!l->event[i].warning && l->event[i].marked)
			continue;
		for (size_t k = 0; k < TALKS_MAX; k++)
			l->talk[k].event = NULL;
		memmove(&l->event[i], &l->event[i + 1], (LOG_EVENTS_MAX - 1 - i) * sizeof(l->event[0]));
		return &l->event[LOG_EVENTS_MAX - 1];
	}
	return NULL;
}

/* NULL when it was seen before, or there is no room: later ones matter less. */
static struct text_event *add_event(struct text_log *l, const struct text_line *line, const char *type, size_t type_len,
				    const char *message)
{
	char name[128];
	struct text_event *e;

	str_copy(name, type_len + 1 < sizeof(name) ? type_len + 1 : sizeof(name), type);
	e = find_event(l, name, message);
	if (e) {
		e->count++;
		return NULL;
	}
	e = new_event(l, str_ends(name, "Warning") || !l->error_here);
	if (!e)
		return NULL;
	*e = (struct text_event){
		.type = pool_strdup(&l->pool, name), .message = pool_copy(&l->pool, message, strnlen(message, MESSAGE_MAX)),
		.who = pool_strdup(&l->pool, line->who), .rank = line->rank, .line = line->number, .count = 1,
		.file = l->file, .before = l->n_events <= 16 ? ring_text(l) : "",
		.warning = str_ends(name, "Warning"), .marked = l->error_here,
	};
	e->peer = line_has_any(name, peers) || line_has_any(e->message, peers);
	return e;
}

static void give_frames(struct text_log *l, struct talk *t, struct text_event *e)
{
	size_t n = t->n_frames < LOG_FRAMES_MAX ? t->n_frames : LOG_FRAMES_MAX;

	if (!e || !n)
		return;
	e->frame = pool_alloc(&l->pool, n * sizeof(*e->frame));
	e->n_frames = n;
	for (size_t i = 0; i < n; i++) {
		const struct raw_frame *f = &t->frame[(t->n_frames - n + i) % LOG_FRAMES_MAX];

		e->frame[i] = (struct text_frame){
			.file = f->file[0] ? pool_strdup(&l->pool, f->file) : NULL,
			.function = f->function[0] ? pool_strdup(&l->pool, f->function) : NULL,
			.source = f->source[0] ? pool_strdup(&l->pool, f->source) : NULL,
			.line = f->line,
		};
	}
}

/* ---- lines ------------------------------------------------------------------------------------------ */

static bool ends_message(const char *s)
{
	static const char *const starts[] = {
		"Traceback (most recent", "During handling of the above", "The above exception was", "File \"", "+ Exception Group",
		"terminate called", "Exception raised from", "Stack trace", "C++ CapturedTraceback", "Exception in thread", "$ ", ">>> ",
	};

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (str_starts(s, starts[i]))
			return true;
	return false;
}

static bool is_native_frame(const char *s)
{
	return str_starts(s, "frame #") || (s[0] == '#' && isdigit((unsigned char)s[1]));
}

/* What the message goes on with. False when it has ended. */
static bool continue_message(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line);
	size_t name;

	if (is_native_frame(s))
		return true;
	if (!line->len)
		return t->event && !t->event->message[0];
	if (ends_message(s) || is_exception_line(s, false, &name) || ++t->lines > MESSAGE_LINES)
		return false;
	if (t->event)
		t->event->marked |= l->error_here;
	if (t->event && strlen(t->event->message) < MESSAGE_MAX)
		t->event->message = pool_printf(&l->pool, "%s%s%s", t->event->message, t->event->message[0] ? "\n" : "", s);
	return true;
}

static void start_message(struct text_log *l, struct talk *t, const struct text_line *line, const char *s, size_t name)
{
	const char *message = s + name;

	message += strspn(message, ": ");
	if (*message == '(' && name && s[name] == '(')
		message = s + name;
	t->event = add_event(l, line, s, name, message);
	give_frames(l, t, t->event);
	t->state = TALK_MESSAGE;
	t->lines = 0;
	t->n_frames = 0;
}

/* Outside of a traceback: an exception's line, or words that tell of an error. */
static void idle_line(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line), *inner;
	size_t name = 0;

	if (str_starts(s, "what():")) {
		s += 7 + strspn(s + 7, " ");
		if (!is_exception_line(s, false, &name))
			name = 0;
		start_message(l, t, line, s, name);
	} else if (is_exception_line(s, false, &name)) {
		start_message(l, t, line, s, name);
	} else if ((inner = inner_exception(s, &name)) != NULL) {
		start_message(l, t, line, inner, name);
	} else if (l->error_here) {
		start_message(l, t, line, s, 0);
	}
}

static void traceback_line(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line);
	size_t name;

	if (!line->len)
		return;
	if (frame_read(t, s) || frame_arrow(t, s)) {
		t->strays = 0;
	} else if (isdigit((unsigned char)*s) && t->n_frames && t->strays < STRAYS_MAX * 4) {
		t->strays++;	/* lines of code around the one with the arrow */
	} else if (line->indent > t->indent) {
		frame_source(t, s);
	} else if (is_exception_line(s, true, &name)) {
		start_message(l, t, line, s, name);
	} else if (l->error_here || ++t->strays > STRAYS_MAX) {
		/* the traceback was cut off */
		t->state = TALK_IDLE;
		idle_line(l, t, line);
	}
}

void talk_line(struct text_log *l, const struct text_line *line)
{
	struct talk *t = talk_of(l, line->who);
	const char *s = line_words(line);

	if (strstr(s, "Traceback (most recent call last)")) {
		/* "RuntimeError   Traceback (most recent call last)" of notebooks is no frame */
		t->state = TALK_TRACEBACK;
		t->indent = line->indent;
		t->n_frames = 0;
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
	if (frame_read(t, s))	/* the beginning of the traceback is missing */
		return;
	if (t->n_frames && line->indent > 2 && line->indent < 8 && !l->error_here) {
		frame_source(t, s);
		return;
	}
	idle_line(l, t, line);
}
