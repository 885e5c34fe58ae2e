/* SPDX-License-Identifier: Apache-2.0
 * Lines that show that a program works, before and after an error (see log.h).
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "compat/cuda_errors.h"
#include "find/words/log_parts.h"
#include "find/words/observe.h"
#include "read/text/said.h"

#define LATE_SECONDS	60	/* what was buffered arrives at once when a program ends */
#define STDOUT_BUFFER	8192	/* Python's: as much may follow an error that ended the program */
#define WENT_ON_LONG	20	/* and as many, however the log ends */
#define ENDING_LINES	8	/* a log that ends well does so here */

bool log_shows_progress(const struct text_log *l, const struct text_line *line)
{
	return !l->here.error && !l->here.exception && line->indent < 16 && strpbrk(line->text, "0123456789") &&
	       says(line->text, SAID_progress) && !strstr(line->text, "File \"");
}

uint64_t log_shape_of(const char *s)
{
	uint64_t hash = 14695981039346656037u;

	for (; *s; s++)
		if (!isdigit((unsigned char)*s) && *s != '.' && *s != ' ')
			hash = (hash ^ (unsigned char)*s) * 1099511628211u;
	return hash;
}

/* "40%|████      | 6/15 [01:12<01:48, 12.07s/it]": so many steps, of so many. */
static bool is_bar(const char *s, double *n, double *of)
{
	const char *bar = strstr(s, "%|"), *end = bar ? strchr(bar + 2, '|') : NULL;

	return end && sscanf(end + 1, "%lf/%lf", n, of) == 2;
}

/* The line was written after the error. Bars are written to standard error, at once; but those that are open when an exception ends the program
 * are drawn once more: only one that goes on shows that the program did. Standard output that was buffered follows an error that ended the
 * program; but not when lines of the same kind came before it and the buffer was never full. No program works on after an error that costs it
 * its CUDA context. */
static bool is_live(const struct text_log *l, struct text_event *e, const struct text_line *line)
{
	double n, of;

	if (l->input.passed > e->at + STDOUT_BUFFER)
		return true;
	if (is_bar(line->text, &n, &of)) {
		bool goes_on = of == e->bar_of && n > e->bar;

		e->bar = n;
		e->bar_of = of;
		return goes_on;
	}
	if (says(line->text, SAID_iterations))
		return true;
	if (cuda_error_sticky(text_code(e->message)) == 1)
		return false;
	return (e->time && log_time_of_line(l, line->number) > e->time + (e->collected ? LATE_SECONDS : 0)) ||
	       (e->at < STDOUT_BUFFER && e->shape && e->shape == log_shape_of(line->text));
}

#define REMARK_WORDS 6

/* People who describe a failure speak of epochs and losses, too. */
static bool is_remark(const char *s)
{
	size_t words = 0;

	while (*s) {
		size_t n = 0;

		s += strspn(s, " ");
		while (isalpha((unsigned char)s[n]))
			n++;
		words += n && (!s[n] || strchr(" ,.;?", s[n]));
		s += n;
		s += strcspn(s, " ");
	}
	return words >= REMARK_WORDS;
}

bool log_went_on_here(const struct text_log *l, const struct text_line *line)
{
	if (log_shows_progress(l, line) && !is_remark(line->text))
		return true;
	return !l->here.error && !l->here.exception && says(line->text, SAID_went_on);
}

void log_note_progress(struct text_log *l, const struct text_line *line)
{
	for (size_t i = 0; i < l->events.n; i++) {
		struct text_event *e = &l->events.list[i];

		if (e->order >= line->order || e->file != l->input.file || e->run != l->runs.last ||
		    strcmp(e->who, line->who))
			continue;
		e->after++;
		e->after_last = line->order;
		e->live = e->live || is_live(l, e, line);
	}
}

/* A bar that is drawn once more shows no progress: that is what becomes of open ones when a program ends. */
static bool is_drawn_again(struct run *r, const char *s)
{
	double n, of;

	if (!is_bar(s, &n, &of))
		return false;
	for (size_t i = 0; i < BARS; i++)
		if (r->bar[i].n == n && r->bar[i].of == of && i < r->n_bars)
			return true;
	r->bar[r->n_bars % BARS].n = n;
	r->bar[r->n_bars++ % BARS].of = of;
	return false;
}

void log_note_run_progress(struct text_log *l, const struct text_line *line)
{
	struct run *r = &l->runs.list[l->runs.last];

	if (is_drawn_again(r, line->text))
		return;
	l->runs.progress++;
	r->progress = r->progress ? r->progress : line->order;
	r->progress_last = line->order;
}

bool log_went_on_after(const struct text_log *l, const struct text_event *e)
{
	if (e->after < WENT_ON || (e->n_frames && !e->live))
		return false;
	return e->after >= WENT_ON_LONG || l->input.order - e->after_last <= ENDING_LINES;
}

bool log_progress(const struct text_log *l)
{
	return l->runs.progress != 0;
}

bool log_progress_after(const struct text_log *l, const struct text_event *e)
{
	return l->runs.list[e->run].progress_last > e->order;
}
