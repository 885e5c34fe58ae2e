/* SPDX-License-Identifier: Apache-2.0
 * Failures that are described, not shown: sentences, and lines that a program calls errors in its own words (see log.h).
 */

#include "find/words/complaint.h"
#include "find/words/log_parts.h"
#include "read/text/line.h"
#include "read/text/said.h"

#define ALARM_LINES	4	/* between a call of CUDA's that failed and the exception that it led to, without the traceback */

static struct text_hit told_at(struct text_log *l, const struct text_line *line)
{
	return (struct text_hit){
		.count = 1, .line = line->number, .text = pool_strdup(&l->pool, line->text), .file = l->input.file};
}

void log_note_complaint(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	bool opening = l->told.opening;

	if (line->len)
		l->told.order_said = line->order;
	if (!line->len || in_traceback(t))
		return;
	l->told.opening &= !line->prefixed && is_prose(line->text);
	if (line->prefixed)
		return;
	l->told.person |= is_prose(line->text) && says_i(line->text);
	if (l->told.complaint.text || !complaint_in(line->text))
		return;
	l->told.first = opening;
	l->told.complaint_order = line->order;
	l->told.complaint = told_at(l, line);
}

void log_note_alarm(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	l->told.said += line->len > 0;
	l->told.alarms += line->leveled;
	if (l->told.alarm.text && l->runs.progress - l->told.alarm_progress < WENT_ON &&
	    (!l->told.alarm_leveled || line->leveled))
		return;
	if (!line->alarm || in_traceback(t) || says(line->text, SAID_fine) || quoted_code(line_words(line)) ||
	    quoted_item(line_words(line)) || !names_gpu(line->text))
		return;
	l->told.alarm_progress = l->runs.progress;
	l->told.alarm_order = line->order;
	l->told.alarm_leveled = line->leveled;
	l->told.alarm = told_at(l, line);
}

void log_note_trouble(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	if (l->told.trouble.text && l->runs.progress - l->told.trouble_progress < WENT_ON)
		return;
	if (in_traceback(t) || l->here.error || says(line->text, SAID_fine) || log_is_fallback(line->text) ||
	    quoted_code(line_words(line)) || quoted_item(line_words(line)) || !names_gpu(line->text))
		return;
	l->told.trouble_progress = l->runs.progress;
	l->told.trouble = told_at(l, line);
}

/* Nothing follows it: what a program prints does not end with a sentence about trouble, unless it is in it. */
static bool is_last_word(const struct text_log *l)
{
	return l->told.complaint_order == l->told.order_said;
}

/* An exception says better what failed, but not one that follows at once on a call of CUDA's that failed: that is what raised it. */
static bool has_better(const struct text_log *l, bool *after_alarm)
{
	bool found = false;

	*after_alarm = false;
	for (size_t i = 0; i < l->events.n; i++) {
		const struct text_event *e = &l->events.list[i];

		if (!e->type[0] || !e->raised)
			continue;
		if (l->told.alarm.text && !l->told.alarm_leveled && e->file == l->input.file &&
		    e->order > l->told.alarm_order && e->order <= l->told.alarm_order + e->n_frames * 2 + ALARM_LINES)
			*after_alarm = true;
		else
			found = true;
	}
	return found;
}

const struct text_hit *log_complaint(const struct text_log *l)
{
	bool after_alarm;

	if (has_better(l, &after_alarm))
		return NULL;
	if (!after_alarm && l->told.complaint.text &&
	    (l->told.person || (l->told.first && l->runs.progress < WENT_ON) || (is_last_word(l) && !l->events.n)))
		return &l->told.complaint;
	if (!l->told.alarm.text || l->runs.progress - l->told.alarm_progress >= WENT_ON ||
	    (l->told.alarm_leveled && l->told.alarms * 2 > l->told.said))
		return NULL;
	return &l->told.alarm;
}

const struct text_hit *log_trouble(const struct text_log *l)
{
	bool after_alarm;

	return l->told.trouble.text && l->runs.progress - l->told.trouble_progress < WENT_ON &&
			       !has_better(l, &after_alarm)
		       ? &l->told.trouble
		       : NULL;
}
