/* SPDX-License-Identifier: Apache-2.0
 * Errors of a log, each once, with the lines and times around them (see log.h).
 */
#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "find/words/log_parts.h"
#include "read/text/exception.h"
#include "read/text/line.h"
#include "read/text/said.h"

/* Two messages are the same when only numbers differ. */
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
	for (size_t i = 0; i < l->events.n; i++) {
		struct text_event *e = &l->events.list[i];

		if (!strcmp(e->type, type) && same_words(e->message, message))
			return e;
	}
	return NULL;
}

/* The lines before the one being read, joined. */
static const char *ring_text(struct text_log *l)
{
	char *text = pool_strdup(&l->pool, "");
	size_t first = l->before.n > RING_LINES ? l->before.n - RING_LINES : 0;

	for (size_t i = first; i < l->before.n; i++)
		text = pool_printf(&l->pool, "%s%s\n", text, l->before.line[i % RING_LINES]);
	return text;
}

/* Room for one more. A log full of warnings must not hide the error at its end: the newest of the less important ones makes room. */
static struct text_event *new_event(struct text_log *l, bool lesser)
{
	size_t i;

	if (l->events.n < LOG_EVENTS_MAX)
		return &l->events.list[l->events.n++];
	for (i = LOG_EVENTS_MAX; !lesser && i-- > 0;) {
		if (!l->events.list[i].warning && l->events.list[i].marked)
			continue;
		for (size_t k = 0; k < TALKS_MAX; k++)
			l->talks.list[k].event = NULL;
		memmove(&l->events.list[i], &l->events.list[i + 1], (LOG_EVENTS_MAX - 1 - i) * sizeof(l->events.list[0]));
		return &l->events.list[LOG_EVENTS_MAX - 1];
	}
	return NULL;
}

/* What was handled once, and the program went on, may end it the next time: then that time counts. So does the last run of several. */
static bool came_back(const struct text_log *l, const struct text_event *e, const struct talk *t)
{
	if (e->file == l->input.file && log_best_restart(l, e->run, l->runs.last) > RESTART_STATEMENT)
		return true;
	return t->progress > e->progress && t->traceback.n && !strcmp(e->who, t->who);
}

double log_time_of_line(const struct text_log *l, uint64_t number)
{
	for (size_t i = l->stamps.n; i > 0 && i + STAMPS > l->stamps.n; i--)
		if (l->stamps.list[(i - 1) % STAMPS].number <= number)
			return l->stamps.list[(i - 1) % STAMPS].time;
	return 0;
}

/* A program writes the time before the message that it logs; on the lines of a traceback it is a collector's. */
static bool has_time(const struct text_log *l, uint64_t number)
{
	for (size_t i = l->stamps.n; i > 0 && i + STAMPS > l->stamps.n; i--)
		if (l->stamps.list[(i - 1) % STAMPS].number == number)
			return true;
	return false;
}

struct text_event *log_add_event(struct text_log *l, struct talk *t, const struct text_line *line, const char *type,
				 size_t type_len, const char *message)
{
	char name[128];
	struct text_event *e;

	str_copy(name, type_len + 1 < sizeof(name) ? type_len + 1 : sizeof(name), type);
	e = find_event(l, name, message);
	if (e) {
		e->count++;
		if (!came_back(l, e, t))
			return NULL;
		e->message = pool_copy(&l->pool, message, strnlen(message, MESSAGE_MAX));
		e->before = ring_text(l);
		e->line = line->number;
		e->order = line->order;
		e->file = l->input.file;
		e->progress = t->progress;
		e->at = l->input.passed;
		e->after = 0;
		e->live = false;
		e->shape = t->shape;
		e->collected = has_time(l, line->number);
		e->bar = e->bar_of = 0;
		e->run = l->runs.last;
		e->worked = l->runs.list[l->runs.last].progress != 0;
		e->time = log_time_of_line(l, line->number);
		return e;
	}
	e = new_event(l, str_ends(name, "Warning") || !l->here.error);
	if (!e)
		return NULL;
	*e = (struct text_event){
		.type = pool_strdup(&l->pool, name),
		.message = pool_copy(&l->pool, message, strnlen(message, MESSAGE_MAX)),
		.who = pool_strdup(&l->pool, line->who),
		.rank = line->rank,
		.line = line->number,
		.order = line->order,
		.progress = t->progress,
		.shape = t->shape,
		.collected = has_time(l, line->number),
		.worked = l->runs.list[l->runs.last].progress != 0,
		.run = l->runs.last,
		.count = 1,
		.at = l->input.passed,
		.time = log_time_of_line(l, line->number), .file = l->input.file, .before = l->events.n <= 16 ? ring_text(l) : "",
		.warning = str_ends(name, "Warning"), .marked = l->here.error,
	};
	e->peer = says(name, SAID_peer) || says(e->message, SAID_peer);
	return e;
}

#define CUT_LINES 3	/* a traceback without its beginning counts where the text ends */

/* `raise ValueError("no GPU")`: the exception, in the line that raised it. Its name's length; 0: something else. */
static size_t raised_here(const char *source, const char **type, const char **message, size_t *len)
{
	size_t name;

	*message = "";
	*len = 0;
	if (!source || !str_starts(source, "raise "))
		return 0;
	*type = source + 6;
	name = strcspn(*type, "(");
	if (!exception_name(*type, name) || (*type)[name] != '(')
		return name * exception_name(*type, name);
	if ((*type)[name + 1] == '"' || (*type)[name + 1] == '\'') {
		*message = *type + name + 2;
		*len = strcspn(*message, (char[]){(*type)[name + 1], '\0'});
	}
	return name;
}

void log_cut_traceback(struct text_log *l, struct talk *t)
{
	const char *type = "", *message;
	struct text_frame *top;
	struct text_event *e;
	size_t name, len;

	if (!t->traceback.n || t->stack || t->chained || (!t->headed && l->input.order > t->frame_order + CUT_LINES))
		return;
	e = new_event(l, true);
	if (!e)
		return;
	*e = (struct text_event){
		.cut = true, .file = l->input.file, .who = pool_strdup(&l->pool, t->who), .rank = t->frame_rank, .before = "",
		.line = t->frame_number, .order = t->frame_order, .progress = t->progress, .count = 1, .at = l->input.passed,
		.worked = l->runs.list[l->runs.last].progress != 0, .run = l->runs.last,
	};
	e->n_frames = traceback_keep(&t->traceback, &l->pool, &e->frame);
	while (e->n_frames > 1 && !e->frame[e->n_frames - 1].file)	/* lines that follow where it was cut */
		e->n_frames--;
	top = &e->frame[e->n_frames - 1];
	name = raised_here(top->source, &type, &message, &len);
	e->type = pool_copy(&l->pool, type, name);
	e->message = pool_copy(&l->pool, message, len);
	t->traceback.n = 0;
}

void log_keep_line(struct text_log *l, const struct text_line *line)
{
	str_copy(l->before.line[l->before.n++ % RING_LINES], RING_WIDTH, line->text);
}

void log_note_underline(struct text_log *l, const struct text_line *line)
{
	struct text_event *e = l->events.n ? &l->events.list[l->events.n - 1] : NULL;

	if (e && !e->raised && e->order + 1 == line->order && quoted_underline(line_words(line), l->here.len_before))
		e->heading = true;
}

void log_note_stamp(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	struct text_file *f = &l->input.files[l->input.n_files - 1];
	double time;

	if (!stamp_of_line(s, len, &time))
		return;
	if (!f->first || time < f->first)
		f->first = time;
	if (time > f->last)
		f->last = time;
	l->stamps.list[l->stamps.n % STAMPS].number = number;
	l->stamps.list[l->stamps.n++ % STAMPS].time = time;
}

size_t log_events(const struct text_log *l, const struct text_event **list)
{
	*list = l->events.list;
	return l->events.n;
}
