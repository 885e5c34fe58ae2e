/* SPDX-License-Identifier: Apache-2.0
 * Reads logs (see log.h): every line that the stream hands on is cleaned, searched for words, and given to the
 * readers of assertions, of the machine, and of tracebacks and errors, each process apart from the others.
 */
#include "find/words/log.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/needles.h"
#include "base/str.h"
#include "case/known_message.h"
#include "compat/cuda_errors.h"
#include "read/text/clothes.h"
#include "find/words/complaint.h"
#include "find/words/crash.h"
#include "read/text/exception.h"
#include "read/text/line.h"
#include "read/text/said.h"
#include "find/words/observe.h"
#include "find/words/quoted.h"
#include "read/text/stamp.h"
#include "read/text/stream.h"
#include "read/text/unpack.h"

#define TALKS_MAX	64	/* processes whose lines may be interleaved */
#define RING_LINES	24	/* lines before an error that are kept with it */
#define RING_WIDTH	240
#define MESSAGE_LINES	14
#define MESSAGE_MAX	4096
#define RANKS_MAX	4096
#define WORDS_MAX	80	/* characters of a known message that are searched for */
#define STRAYS_MAX	6	/* lines inside a traceback that belong to another process */
#define STAMPS		64
#define ENV_LINES	20000	/* that are searched for the machine */
#define BARS		4	/* progress bars that are open at a time */
#define LATE_SECONDS	60	/* what was buffered arrives at once when a program ends */
#define STDOUT_BUFFER	8192	/* Python's: as much may follow an error that ended the program */
#define WENT_ON		2	/* lines that show progress: one may be a remark */
#define WENT_ON_LONG	20	/* and as many, however the log ends */
#define ALARM_LINES	4	/* between a call of CUDA's that failed and the exception that it led to, without the traceback */
#define ENDING_LINES	8	/* a log that ends well does so here */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum talk_state { TALK_IDLE, TALK_TRACEBACK, TALK_MESSAGE };

/* What one process is saying. */
struct talk {
	char who[LINE_WHO_MAX];
	enum talk_state state;
	size_t indent;		/* of the traceback's header */
	size_t frame_indent;	/* of its last frame */
	uint64_t frame_order, frame_number;
	int frame_rank;
	bool headed;		/* its beginning was seen */
	bool stack;		/* frames without an exception: where a program was, not where it failed */
	bool chained;		/* what it follows from was raised before it */
	struct traceback traceback;
	unsigned strays;
	struct text_event *event;	/* TALK_MESSAGE: whose message goes on; NULL: one that was seen before */
	unsigned lines;
	uint64_t progress;	/* lines that show it */
	uint64_t shape;		/* of the last of them */
	uint64_t used;
};

/* Something failed in this text, and something was started again. */
struct run {
	enum restart by;
	const char *file;
	uint64_t order;		/* of the line that starts it */
	uint64_t progress, progress_last;	/* order of the first and the last line that show it; 0 = none */
	struct {
		double n, of;
	} bar[BARS];		/* the last progress bars */
	size_t n_bars;
};

struct text_log {
	struct pool pool;
	struct needles *needles, *fast;	/* in a line; in all of a log */
	const char **words;
	struct text_hit *hit;
	uint64_t *hit_last;		/* order of the last line that has the word */
	size_t n_words, n_errors;	/* the first n_errors words make an event */
	size_t n_fixed;			/* and those up to here are PyTorch's footers; the rest is in order */
	bool *logged;			/* of each word: a message that is an error has it */
	bool *asked;			/* of each word: it is only a rule's, which asks whether it is there */
	size_t found[16], n_found;	/* in the line being read */
	uint32_t env_lines;		/* lines that were searched for the machine */
	struct text_event event[LOG_EVENTS_MAX];
	size_t n_events;
	struct printed_asserts asserts;
	const char *xid[LOG_XIDS_MAX];
	size_t n_xids;
	struct text_env env;
	struct text_crash crash;
	struct talk talk[TALKS_MAX];
	uint64_t clock;
	char ring[RING_LINES][RING_WIDTH];
	size_t ring_n;
	const char *file;		/* the input being read */
	struct text_file *files;
	size_t n_files;
	struct {
		uint64_t number;
		double time;
	} stamp[STAMPS];		/* the last times in this input, by line: lines are read a while after they came */
	size_t n_stamps;
	int file_rank;			/* the rank that its name tells; -1 */
	uint64_t bytes;
	uint64_t passed;		/* of lines that were read */
	uint64_t strange, read;		/* of this input: non-text bytes, of those looked at */
	uint64_t order;			/* of the line being read */
	uint64_t progress;		/* lines that show it */
	struct run run[LOG_RUNS_MAX];	/* the first one begins with the text */
	unsigned n_runs;		/* after the first one */
	struct restarts restarts;
	unsigned char rank[RANKS_MAX / 8];
	struct clothes *clothes;
	struct quoted quoted;
	struct text_words in_text;	/* all words of it */
	struct text_hit complaint;	/* the first sentence that may be one */
	uint64_t complaint_order;	/* its line's */
	uint64_t order_said;		/* of the last line that says something */
	struct text_hit alarm;		/* the first line about a GPU that its writer calls an error, and that no row knows */
	uint64_t alarm_order;		/* its line's */
	bool alarm_leveled;		/* by a level alone */
	uint64_t alarms, said;		/* lines with such a level, and all that say something */
	uint64_t alarm_progress;	/* lines that showed progress before it */
	struct text_hit trouble;	/* the first line about a GPU that says that something failed, whatever its writer calls it */
	uint64_t trouble_progress;	/* lines that showed progress before it */
	bool opening, told_first;	/* only sentences so far; so it was when the complaint came */
	bool person;			/* somebody speaks of themselves */
	uint64_t answered;		/* order of the last table of nvidia-smi */
	uint64_t answered_progress;	/* lines that had shown progress before it */
	uint64_t error_shape;		/* of the line before the one being read, if it has an error; 0 = it has none */
	size_t line_len;		/* of the line before the one being read */
	const struct text_line *line;	/* being read */
	bool hasty;
	bool error_here;		/* the line has an error phrase */
	bool exception_here;		/* it is a line of a traceback, or names an exception: not what a program says about its work */
	bool fine_here;			/* and says that it is none */
};

static const char *const errors[] = {
#define MARK_ERROR(words) words,
#define MARK_OOM(framework, words) words,
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

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What makes a line with this message worth reading. A '*' or an anchor is a word of the message, not of a needle. */
static const char *message_needle(struct text_log *l, const struct known_message *m)
{
	char words[WORDS_MAX];
	size_t n = template_words(m->template, words, sizeof(words)), from = 0, best = 0, longest = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && !strchr("*^$", words[i]))
			continue;
		if (i - from > longest) {
			longest = i - from;
			best = from;
		}
		from = i + 1;
	}
	return pool_copy(&l->pool, words + best, longest);
}

/* Of a word in the part that is in order. */
static size_t word_index(const struct text_log *l, const char *word)
{
	const char **found =
		bsearch(&word, l->words + l->n_fixed, l->n_words - l->n_fixed, sizeof(*l->words), compare_words);

	return found ? (size_t)(found - l->words) : l->n_words;
}

/* Error phrases first, then footers, then the words of rules in order, each once. */
static void log_collect_words(struct text_log *l, const char *const *words, size_t n)
{
	size_t start;

	size_t n_messages;
	const struct known_message *messages = known_messages(&n_messages);

	l->words = xcalloc(COUNT(errors) + COUNT(footers) + COUNT(notes) + n + n_messages + 1, sizeof(*l->words));
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
	/* exceptions are found by their tracebacks and names (kb/text_marks.def): the fewer needles, the faster */
	for (size_t i = 0; i < n_messages; i++)
		if (messages[i].logged)
			l->words[l->n_words++] = message_needle(l, &messages[i]);
	xsort(l->words + start, l->n_words - start, sizeof(*l->words), compare_words);
	n = start;
	for (size_t i = start; i < l->n_words; i++)
		if (i == start || strcmp(l->words[i], l->words[n - 1]))
			l->words[n++] = l->words[i];
	l->n_words = n;
	l->logged = xcalloc(n + 1, sizeof(*l->logged));
	l->asked = xcalloc(n + 1, sizeof(*l->asked));
	memset(l->asked + start, true, n - start);
	for (size_t i = 0; i < COUNT(notes); i++)
		l->asked[word_index(l, notes[i])] = false;
	for (size_t i = 0; i < n_messages; i++) {
		size_t word = messages[i].logged ? word_index(l, message_needle(l, &messages[i])) : n;

		l->logged[word] = word < n;
		l->asked[word] = false;
	}
}

static void needle_hit(void *arg, size_t which)
{
	struct text_log *l = arg;

	if (l->n_found < COUNT(l->found))
		l->found[l->n_found++] = which;
}

/* A constant is spelled as it is declared, and is not the middle of another name: not `test_cuda_error_check`, `CudaErrorsTest`. */
static bool is_written_so(const char *word, const char *text)
{
	for (const char *s = word; *s; s++)
		if (!isalpha((unsigned char)*s) && *s != '_')
			return true;	/* words of a sentence */
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		if (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_'))
			return true;
	return false;
}

static void note_hit(struct text_log *l, size_t which)
{
	struct text_hit *h = &l->hit[which];

	if (which < l->n_errors && !is_written_so(l->words[which], l->line->text))
		return;
	l->error_here |= which < l->n_errors;
	l->hit_last[which] = l->line->order;
	if (!h->count++) {
		h->line = l->line->number;
		h->file = l->file;
		h->text = pool_copy(&l->pool, line_words(l->line), strnlen(line_words(l->line), 400));
	}
}

/* A message of a package that is an error even without an exception. */
static bool found_message(const struct text_log *l)
{
	for (size_t i = 0; i < l->n_found; i++)
		if (l->logged[l->found[i]] && known_message_logged(line_words(l->line)))
			return true;
	return false;
}

static bool found_error(const struct text_log *l)
{
	for (size_t i = 0; i < l->n_found; i++)
		if (l->found[i] < l->n_errors)
			return true;
	return found_message(l);
}

/* "CUDA out of memory, falling back to CPU": the program says in the same line what it did instead. Where it found no GPU to begin with,
 * the CPU is what people complain about. */
static bool is_fallback(const char *s)
{
	return says(s, SAID_fallback) && !says(s, SAID_from_the_start);
}

/* The words that are in the line. False when it is PyTorch's footer, which is evidence of nothing. `code`: it may be a line of code. */
static bool log_find_words(struct text_log *l, bool code)
{
	bool error;

	l->n_found = 0;
	l->error_here = l->fine_here = l->exception_here = false;
	needles_in_line(l->needles, l->line->text, l->line->len, needle_hit, l);
	for (size_t i = 0; i < l->n_found; i++)
		if (l->found[i] >= l->n_errors && l->found[i] < l->n_fixed)
			return false;
	error = found_error(l);
	if (code && error && quoted_code(line_words(l->line)))
		return true;
	for (size_t i = 0; i < l->n_found; i++)
		note_hit(l, l->found[i]);
	l->error_here |= found_message(l);
	l->fine_here = error && (says(l->line->text, SAID_fine) || is_fallback(l->line->text));
	if (l->fine_here)
		l->error_here = false;
	return true;
}

/* The best proof among what starts the runs after `first`, up to `last`. */
static enum restart restarted(const struct text_log *l, unsigned first, unsigned last)
{
	enum restart best = RESTART_NOT;

	for (unsigned i = first + 1; i <= last; i++)
		best = l->run[i].by > best ? l->run[i].by : best;
	return best;
}

/* Something failed in this input, since that run began. */
static bool failed_since(const struct text_log *l, unsigned run, const char *who)
{
	for (size_t i = l->n_events; i-- > 0;) {
		const struct text_event *e = &l->event[i];

		if (e->run >= run && e->file == l->file && !e->warning && (e->raised || e->marked) &&
		    (!who[0] || !strcmp(e->who, who)))
			return true;
	}
	return false;
}

/* The line starts something again: a traceback or a message that went on until here has ended. What was started before and did not
 * fail is a part of the same run. */
static void begin_run(struct text_log *l, enum restart by)
{
	struct run *r = &l->run[l->n_runs];

	if (!l->n_runs || r->file != l->file || failed_since(l, l->n_runs, "")) {
		if (l->n_runs + 1 == LOG_RUNS_MAX)
			return;
		*++r = (struct run){.by = by, .file = l->file, .order = l->order};
		r->progress = by == RESTART_STATEMENT ? r[-1].progress : 0;
		l->n_runs++;
	} else if (by > RESTART_STATEMENT) {
		*r = (struct run){.by = by > r->by ? by : r->by, .file = l->file, .order = l->order};
	}
	for (size_t i = 0; i < TALKS_MAX; i++) {
		l->talk[i].state = TALK_IDLE;
		l->talk[i].headed = false;
		l->talk[i].traceback.n = 0;
	}
	if (by > RESTART_STATEMENT) {
		l->asserts.from = l->asserts.n;
		l->ring_n = 0;
	}
}

static void note_restart(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	enum restart by = restart_line(&l->restarts, line, failed_since(l, 0, line->who));

	/* an exception's message may have several lines, and such words */
	if (by && (by != RESTART_TOLD || t->state != TALK_MESSAGE))
		begin_run(l, by);
}

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
	for (size_t i = 0; i < l->n_events; i++) {
		struct text_event *e = &l->event[i];

		if (!strcmp(e->type, type) && same_words(e->message, message))
			return e;
	}
	return NULL;
}

/* The lines before the one being read, joined. */
static const char *ring_text(struct text_log *l)
{
	char *text = pool_strdup(&l->pool, "");
	size_t first = l->ring_n > RING_LINES ? l->ring_n - RING_LINES : 0;

	for (size_t i = first; i < l->ring_n; i++)
		text = pool_printf(&l->pool, "%s%s\n", text, l->ring[i % RING_LINES]);
	return text;
}

/* Room for one more. A log full of warnings must not hide the error at its end: the newest of the less important ones makes room. */
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

/* What was handled once, and the program went on, may end it the next time: then that time counts. So does the last run of several. */
static bool came_back(const struct text_log *l, const struct text_event *e, const struct talk *t)
{
	if (e->file == l->file && restarted(l, e->run, l->n_runs) > RESTART_STATEMENT)
		return true;
	return t->progress > e->progress && t->traceback.n && !strcmp(e->who, t->who);
}

/* The last time in this input up to a line; 0 = none. */
static double time_of_line(const struct text_log *l, uint64_t number)
{
	for (size_t i = l->n_stamps; i > 0 && i + STAMPS > l->n_stamps; i--)
		if (l->stamp[(i - 1) % STAMPS].number <= number)
			return l->stamp[(i - 1) % STAMPS].time;
	return 0;
}

/* A program writes the time before the message that it logs; on the lines of a traceback it is a collector's. */
static bool has_time(const struct text_log *l, uint64_t number)
{
	for (size_t i = l->n_stamps; i > 0 && i + STAMPS > l->n_stamps; i--)
		if (l->stamp[(i - 1) % STAMPS].number == number)
			return true;
	return false;
}

/* NULL when it was seen before, or there is no room: later ones matter less. */
static struct text_event *add_event(struct text_log *l, struct talk *t, const struct text_line *line, const char *type,
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
		e->file = l->file;
		e->progress = t->progress;
		e->at = l->passed;
		e->after = 0;
		e->live = false;
		e->shape = t->shape;
		e->collected = has_time(l, line->number);
		e->bar = e->bar_of = 0;
		e->run = l->n_runs;
		e->worked = l->run[l->n_runs].progress != 0;
		e->time = time_of_line(l, line->number);
		return e;
	}
	e = new_event(l, str_ends(name, "Warning") || !l->error_here);
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
		.worked = l->run[l->n_runs].progress != 0,
		.run = l->n_runs,
		.count = 1,
		.at = l->passed,
		.time = time_of_line(l, line->number), .file = l->file, .before = l->n_events <= 16 ? ring_text(l) : "",
		.warning = str_ends(name, "Warning"), .marked = l->error_here,
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

/* The traceback that `t` was writing has ended without an exception. */
static void cut_traceback(struct text_log *l, struct talk *t)
{
	const char *type = "", *message;
	struct text_frame *top;
	struct text_event *e;
	size_t name, len;

	if (!t->traceback.n || t->stack || t->chained || (!t->headed && l->order > t->frame_order + CUT_LINES))
		return;
	e = new_event(l, true);
	if (!e)
		return;
	*e = (struct text_event){
		.cut = true, .file = l->file, .who = pool_strdup(&l->pool, t->who), .rank = t->frame_rank, .before = "",
		.line = t->frame_number, .order = t->frame_order, .progress = t->progress, .count = 1, .at = l->passed,
		.worked = l->run[l->n_runs].progress != 0, .run = l->n_runs,
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
	    (t->event && t->event->listed && quoted_item(s)) || found_message(l))
		return false;
	if (t->event)
		t->event->marked |= l->error_here;
	if (t->event && strlen(t->event->message) < MESSAGE_MAX)
		t->event->message =
			pool_printf(&l->pool, "%s%s%s", t->event->message, t->event->message[0] ? "\n" : "", s);
	return true;
}

/* All of its error phrases are cited. */
static bool is_cited(const struct text_log *l)
{
	const char *text = line_words(l->line);
	bool cited = false;

	for (size_t i = 0; i < l->n_found; i++) {
		const char *at = l->found[i] < l->n_errors ? strcasestr(text, l->words[l->found[i]]) : NULL;

		if (at && !quoted_citation(text, at))
			return false;
		cited |= at != NULL;
	}
	return cited;
}

/* "First it said CUDA out of memory, then …": words lead to it, and no colon. */
static bool is_in_sentence(const struct text_log *l)
{
	const char *text = line_words(l->line);

	for (size_t i = 0; i < l->n_found; i++) {
		const char *at = l->found[i] < l->n_errors ? strcasestr(text, l->words[l->found[i]]) : NULL;

		if (at && (at < text + 2 || at[-1] != ' ' || !isalpha((unsigned char)at[-2])))
			return false;
	}
	return is_prose(text);
}

static void start_message(struct text_log *l, struct talk *t, const struct text_line *line, const char *s, size_t name)
{
	const char *message = s + name;

	l->exception_here = true;
	message += strspn(message, ": ");
	if (*message == '(' && name && s[name] == '(')
		message = s + name;
	t->event = add_event(l, t, line, s, name, message);
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

/* A message that somebody copied without the exception's name: in backticks, or as the beginning of the text. */
static const char *copied_message(const struct text_log *l, const char *s)
{
	const char *at = strchr(s, '`');

	if (l->opening && known_message(s, NULL))
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

	return line->alarm && !line->leveled && !l->fine_here && names_gpu(s) && text_code(s) && !quoted_code(s) &&
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
	} else if (!l->fine_here && (inner = exception_within(s, &name)) != NULL) {
		start_message(l, t, line, inner, name);
	} else if (!l->fine_here && !quoted_code(s) && (inner = announced_message(l, s)) != NULL) {
		start_message(l, t, line, inner, 0);
		if (t->event)
			t->event->marked |= *inner != '\0';
	} else if (l->error_here || is_failed_call(l, line)) {
		start_message(l, t, line, s, 0);
	}
}

static void note_frame(struct text_log *l, struct talk *t, const struct text_line *line)
{
	l->exception_here = true;
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
		l->exception_here = true;
		traceback_source(&t->traceback, s);
	} else if (exception_line(s, true, &name)) {
		start_message(l, t, line, s, name);
	} else if (l->error_here || ++t->strays > STRAYS_MAX) {
		/* the traceback was cut off */
		t->state = TALK_IDLE;
		idle_line(l, t, line);
	}
}

static void talk_line(struct text_log *l, struct talk *t, const struct text_line *line)
{
	const char *s = line_words(line);
	size_t name;

	if (says(s, SAID_traceback)) {
		/* "RuntimeError   Traceback (most recent call last)" of notebooks is no frame */
		if (t->headed)
			cut_traceback(l, t);
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
	    (!l->error_here || line->order == t->frame_order + 1) && !exception_line(s, false, &name)) {
		l->exception_here = true;
		traceback_source(&t->traceback, s);
		return;
	}
	idle_line(l, t, line);
}

static void note_rank(struct text_log *l, int rank)
{
	if (rank >= 0 && rank < RANKS_MAX)
		l->rank[rank / 8] |= (unsigned char)(1u << (rank % 8));
}

static void note_xid(struct text_log *l, const struct text_line *line)
{
	if (l->n_xids < LOG_XIDS_MAX && says(line->text, SAID_xid))
		l->xid[l->n_xids++] = pool_strdup(&l->pool, line->text);
}

static void keep_in_ring(struct text_log *l, const struct text_line *line)
{
	str_copy(l->ring[l->ring_n++ % RING_LINES], RING_WIDTH, line->text);
}

static bool shows_progress(const struct text_log *l, const struct text_line *line)
{
	return !l->error_here && !l->exception_here && line->indent < 16 && strpbrk(line->text, "0123456789") &&
	       says(line->text, SAID_progress) && !strstr(line->text, "File \"");
}

/* Two lines have the same shape if only numbers differ. */
static uint64_t shape_of(const char *s)
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

	if (l->passed > e->at + STDOUT_BUFFER)
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
	return (e->time && time_of_line(l, line->number) > e->time + (e->collected ? LATE_SECONDS : 0)) ||
	       (e->at < STDOUT_BUFFER && e->shape && e->shape == shape_of(line->text));
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

static bool went_on_here(const struct text_log *l, const struct text_line *line)
{
	if (shows_progress(l, line) && !is_remark(line->text))
		return true;
	return !l->error_here && !l->exception_here && says(line->text, SAID_went_on);
}

static void note_progress(struct text_log *l, const struct text_line *line)
{
	for (size_t i = 0; i < l->n_events; i++) {
		struct text_event *e = &l->event[i];

		if (e->order >= line->order || e->file != l->file || e->run != l->n_runs || strcmp(e->who, line->who))
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

static void note_run_progress(struct text_log *l, const struct text_line *line)
{
	struct run *r = &l->run[l->n_runs];

	if (is_drawn_again(r, line->text))
		return;
	l->progress++;
	r->progress = r->progress ? r->progress : line->order;
	r->progress_last = line->order;
}

/* The line before was a heading. torchrun draws a line under the exception that it raises. */
static void note_underline(struct text_log *l, const struct text_line *line)
{
	struct text_event *e = l->n_events ? &l->event[l->n_events - 1] : NULL;

	if (e && !e->raised && e->order + 1 == line->order && quoted_underline(line_words(line), l->line_len))
		e->heading = true;
}

static bool in_traceback(const struct talk *t)
{
	return t->state == TALK_TRACEBACK || t->traceback.n;
}

/* A line of code that a traceback shows around the one that failed. */
static bool is_code_around(struct talk *t, const struct text_line *line)
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

static struct text_hit told_at(struct text_log *l, const struct text_line *line)
{
	return (struct text_hit){
		.count = 1, .line = line->number, .text = pool_strdup(&l->pool, line->text), .file = l->file};
}

/* Programs write sentences, too. A person's come before anything else in the text, or speak of the person. */
static void note_complaint(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	bool opening = l->opening;

	if (line->len)
		l->order_said = line->order;
	if (!line->len || in_traceback(t))
		return;
	l->opening &= !line->prefixed && is_prose(line->text);
	if (line->prefixed)
		return;
	l->person |= is_prose(line->text) && says_i(line->text);
	if (l->complaint.text || !complaint_in(line->text))
		return;
	l->told_first = opening;
	l->complaint_order = line->order;
	l->complaint = told_at(l, line);
}

/* A program's own words for a failure, of a package that no row knows. What went on after it was not stopped by it. */
static void note_alarm(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	l->said += line->len > 0;
	l->alarms += line->leveled;
	if (l->alarm.text && l->progress - l->alarm_progress < WENT_ON && (!l->alarm_leveled || line->leveled))
		return;
	if (!line->alarm || in_traceback(t) || says(line->text, SAID_fine) || quoted_code(line_words(line)) ||
	    quoted_item(line_words(line)) || !names_gpu(line->text))
		return;
	l->alarm_progress = l->progress;
	l->alarm_order = line->order;
	l->alarm_leveled = line->leveled;
	l->alarm = told_at(l, line);
}

/* What may be a failure, if the words of the whole text are those of one. What went on after it was not stopped by it. */
static void note_trouble(struct text_log *l, const struct talk *t, const struct text_line *line)
{
	if (l->trouble.text && l->progress - l->trouble_progress < WENT_ON)
		return;
	if (in_traceback(t) || l->error_here || says(line->text, SAID_fine) || is_fallback(line->text) ||
	    quoted_code(line_words(line)) || quoted_item(line_words(line)) || !names_gpu(line->text))
		return;
	l->trouble_progress = l->progress;
	l->trouble = told_at(l, line);
}

/* The same error as in the line before, with other numbers: it says nothing new about the machine, and starts nothing. */
static bool is_error_again(struct text_log *l, const struct text_line *line)
{
	uint64_t shape = l->error_here ? shape_of(line->text) : 0, last = l->error_shape;

	l->error_shape = shape;
	return shape && shape == last;
}

static void log_line(void *arg, struct text_line *line)
{
	struct text_log *l = arg;
	struct talk *t;
	bool again, fails;

	line->order = ++l->order;
	l->line = line;
	if (line->rank < 0)
		line->rank = l->file_rank;
	note_rank(l, line->rank);
	if (printed_asserts_line(&l->asserts, &l->pool, line))
		return;
	t = talk_of(l, line->who);
	note_underline(l, line);
	l->line_len = line->len;
	l->passed += line->len + 1;
	fails = text_words_line(&l->in_text, &l->pool, line->text);
	if (quoted_line(&l->quoted, line) && !in_traceback(t))
		return;
	note_complaint(l, t, line);
	if (is_code_around(t, line) || !log_find_words(l, !in_traceback(t)))
		return;
	note_xid(l, line);
	again = is_error_again(l, line);
	if (l->error_here && !again && l->env_lines > ENV_LINES - 500)
		l->env_lines = ENV_LINES - 500;
	if (!again && l->env_lines < ENV_LINES) {	/* what a log says about the machine is near its errors or its ends */
		env_line(&l->env, line_words(line), line->order, l->file, line->number);
		crash_line(&l->crash, line_words(line));
		l->env_lines++;
	}
	note_alarm(l, t, line);
	if (fails)
		note_trouble(l, t, line);
	if (!again)
		note_restart(l, t, line);
	if (says(line_words(line), SAID_smi_table))
		l->answered = line->order, l->answered_progress = l->progress;
	talk_line(l, t, line);
	if (line->len) {
		if (l->n_events && went_on_here(l, line))
			note_progress(l, line);
		if (shows_progress(l, line)) {
			t->progress++;
			t->shape = shape_of(line->text);
			note_run_progress(l, line);
		}
		keep_in_ring(l, line);
	}
}

/* Bytes that text does not have: with enough of them it is not text. */
static void look_at_bytes(struct text_log *l, const char *s, size_t len)
{
	for (size_t i = 0; i < len && i < 512; i++)
		l->strange += ((unsigned char)s[i] < 0x20 && !strchr("\t\r\033\b", s[i])) || s[i] == 0;
	l->read += len < 512 ? len : 512;
}

static void note_stamp(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	struct text_file *f = &l->files[l->n_files - 1];
	double time;

	if (!stamp_of_line(s, len, &time))
		return;
	if (!f->first || time < f->first)
		f->first = time;
	if (time > f->last)
		f->last = time;
	l->stamp[l->n_stamps % STAMPS].number = number;
	l->stamp[l->n_stamps++ % STAMPS].time = time;
}

static void log_take_line(void *arg, const char *s, size_t len, uint64_t number, bool gap)
{
	struct text_log *l = arg;

	(void)gap;
	look_at_bytes(l, s, len);
	note_stamp(l, s, len, number);
	clothes_line(l->clothes, s, len, number);
}

struct text_log *log_new(const char *const *words, size_t n)
{
	struct text_log *l = xcalloc(1, sizeof(*l));

	log_collect_words(l, words, n);
	l->needles = needles_new(l->words, l->n_words, NEEDLE_MIN);
	l->fast = needles_new(l->words, l->n_words, NEEDLE_FAST);
	l->hit = xcalloc(l->n_words + 1, sizeof(*l->hit));
	l->hit_last = xcalloc(l->n_words + 1, sizeof(*l->hit_last));
	l->clothes = clothes_new(log_line, l);
	l->opening = true;
	env_init(&l->env);
	return l;
}

void log_free(struct text_log *l)
{
	if (!l)
		return;
	clothes_free(l->clothes);
	needles_free(l->needles);
	needles_free(l->fast);
	free(l->logged);
	free(l->asked);
	free(l->words);
	free(l->hit);
	free(l->hit_last);
	free(l->files);
	text_words_release(&l->in_text);
	pool_release(&l->pool);
	free(l);
}

void log_hasty(struct text_log *l)
{
	l->hasty = true;
}

static void begin_input(struct text_log *l, const char *name)
{
	l->env_lines = 0;
	l->strange = l->read = 0;
	l->file = pool_strdup(&l->pool, name);
	l->file_rank = line_rank_of_file(name);
	l->quoted = (struct quoted){0};
	l->restarts = (struct restarts){0};
	l->files = xrealloc(l->files, l->n_files + 1, sizeof(*l->files));
	l->files[l->n_files++] = (struct text_file){.name = l->file, .rank = l->file_rank, .order = l->order + 1};
	l->n_stamps = 0;
	clothes_begin(l->clothes);
	for (size_t i = 0; i < TALKS_MAX; i++)
		l->talk[i] = (struct talk){0};
}

/* A traceback without a handler ends a program, unless what follows it cannot be older. */
static bool went_on_after(const struct text_log *l, const struct text_event *e)
{
	if (e->after < WENT_ON || (e->n_frames && !e->live))
		return false;
	return e->after >= WENT_ON_LONG || l->order - e->after_last <= ENDING_LINES;
}

static void end_input(struct text_log *l, struct stream *st)
{
	stream_end(st);
	clothes_end(l->clothes);
	for (size_t i = 0; i < TALKS_MAX; i++)
		cut_traceback(l, &l->talk[i]);
	for (size_t i = 0; i < l->n_events; i++)
		l->event[i].handled |= l->event[i].file == l->file && went_on_after(l, &l->event[i]);
	l->bytes += stream_bytes(st);
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
	struct stream *st = stream_new(l->fast, log_take_line, l);

	stream_sparing(st, l->asked);
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

/* "got an unexpected keyword argument 'gpus'", "'Namespace' object has no attribute 'gpu'": what a program calls its arguments. */
static bool is_about_argument(const struct text_event *e)
{
	return says_just(e->type, strlen(e->type), SAID_argument_error) || says(e->message, SAID_argument);
}

/* The line that raised it, or one that called it, is about GPUs. */
static bool gpu_in_frames(const struct text_event *e)
{
	for (size_t i = 0; i < e->n_frames; i++)
		if (e->frame[i].source && names_gpu(e->frame[i].source))
			return true;
	return false;
}

/* `import torch.distributed as dist`: no GPU is needed for it. */
static bool is_import(const char *source)
{
	return source && says(source, SAID_import);
}

static bool gpu_package_in_frames(const struct text_event *e)
{
	for (size_t i = 0; i < e->n_frames && !is_import(e->frame[e->n_frames - 1].source); i++) {
		char file[sizeof(((struct raw_frame *)0)->file)];

		str_copy(file, sizeof(file), e->frame[i].file ? e->frame[i].file : "");
		for (char *s = file; *s; s++)
			if (*s == '\\')
				*s = '/';
		if (says(file, SAID_gpu_package))
			return true;
	}
	return false;
}

/* A compiled module, or a library that it needs, cannot be loaded: where GPUs are used it is one of theirs more often than not. */
static bool is_about_library(const struct text_log *l, const struct text_event *e)
{
	bool of_gpu = false;

	for (size_t i = 0; i < said_rows(SAID_of_gpus); i++)
		of_gpu |= text_words_has(&l->in_text, said_words(SAID_of_gpus, i));
	return of_gpu && says_just(e->type, strlen(e->type), SAID_import_error) && says(e->message, SAID_library);
}

/* The line that raised it asks a tool of CUDA's, or a GPU, for what it needs. */
static bool asks_cuda(const struct text_event *e)
{
	const char *source = e->n_frames ? e->frame[e->n_frames - 1].source : NULL;

	return source && says(source, SAID_asks_cuda);
}

/* The libraries did not fit the module, later nvidia-smi answers and something works: whatever it was is over. An answer alone may be
 * that of another machine, the container's host above all. */
static bool is_answered(const struct text_log *l, const struct text_event *e)
{
	return l->answered > e->order && l->progress > l->answered_progress &&
	       says(e->message, SAID_mismatch);
}

void log_finish(struct text_log *l)
{
	for (size_t i = 0; i < l->n_events; i++) {
		struct text_event *e = &l->event[i];

		e->gpu = !is_about_argument(e) && (names_gpu(e->type) || names_gpu(e->message));
		e->gpu |= e->cut && (gpu_in_frames(e) || gpu_package_in_frames(e));
		e->gpu |= is_about_library(l, e) || asks_cuda(e);
		e->handled |= is_answered(l, e);
	}
	for (size_t i = 0; i < l->n_events; i++)
		while (str_ends(l->event[i].message, "\n"))
			l->event[i].message = pool_copy(&l->pool, l->event[i].message, strlen(l->event[i].message) - 1);
	for (size_t i = 0; i < l->n_files; i++)
		for (size_t k = 0; k < l->n_events && !l->files[i].failed; k++)
			l->files[i].failed =
				l->event[k].file == l->files[i].name && !l->event[k].peer && !l->event[k].warning;
}

size_t log_files(const struct text_log *l, const struct text_file **list)
{
	*list = l->files;
	return l->n_files;
}

size_t log_events(const struct text_log *l, const struct text_event **list)
{
	*list = l->event;
	return l->n_events;
}

/* An exception that nothing caught, of this process itself. */
static bool ended_it(const struct text_event *e)
{
	return e->raised && e->n_frames && !e->warning && !e->peer;
}

/* "terminate called after throwing an instance of 'std::bad_alloc'": a program of C++ ended, and the exception is none of CUDA's. */
static bool is_termination(const struct text_event *e)
{
	return says(e->message, SAID_terminated) && !e->gpu && !text_code(e->message);
}

/* `last` ended the process, and `e` came before it and was survived. A warning that turns CUDA off, and a message that is only cited, are
 * survived by what has nothing to do with GPUs; after anything else the program has to show that it went on. */
static bool outlived(const struct text_event *e, const struct text_event *last)
{
	bool mentioned = e->cited || e->listed;

	if (last->order <= e->order || last->run != e->run || strcmp(last->who, e->who) || strcmp(last->file, e->file))
		return false;
	if (mentioned && is_termination(last))
		return true;
	if (!ended_it(last) && !(mentioned && last->raised && !last->warning && !last->peer))
		return false;
	return last->progress > e->progress ||
	       ((e->warning || mentioned) && !last->gpu && !last->marked && !gpu_in_frames(last));
}

bool log_handled(const struct text_log *l, const struct text_event *e)
{
	if (e->handled)
		return true;
	for (size_t i = 0; i < l->n_events; i++)
		if (outlived(e, &l->event[i]))
			return true;
	return false;
}

enum restart log_restarted(const struct text_log *l, const struct text_event *a, const struct text_event *b)
{
	if (a->file != b->file || a->run == b->run)
		return RESTART_NOT;
	return a->run < b->run ? restarted(l, a->run, b->run) : restarted(l, b->run, a->run);
}

struct text_past log_past_runs(const struct text_log *l, struct text_past past, const struct text_event *e)
{
	const struct run *r = &l->run[e->run];

	if (past.to >= r->order)
		return past;
	past.to = r->order;
	for (size_t i = 0; i < l->n_files; i++)
		if (l->files[i].name == r->file)
			past.from = l->files[i].order;
	return past;
}

struct text_past log_past_event(struct text_past past, const struct text_event *e)
{
	uint64_t order = e->after_last > e->order ? e->after_last : e->order;

	if (past.to <= order)
		past.to = order + 1;
	return past;
}

/* In a few lines, a citation is all that somebody says about an error. */
#define FEW_LINES 4

bool log_document(const struct text_log *l)
{
	size_t headings = 0, listed = 0, others = 0;

	for (size_t i = 0; i < l->n_events; i++) {
		const struct text_event *e = &l->event[i];

		if (e->n_frames)
			return false;
		if (e->heading)
			headings++;
		else if (e->cited && l->order > FEW_LINES)
			continue;
		else if (e->listed)
			listed++;
		else
			others++;
	}
	return l->n_events && (headings + listed >= 2 || (!listed && !others));
}

/* Nothing follows it: what a program prints does not end with a sentence about trouble, unless it is in it. */
static bool is_last_word(const struct text_log *l)
{
	return l->complaint_order == l->order_said;
}

/* An exception says better what failed, but not one that follows at once on a call of CUDA's that failed: that is what raised it. */
static bool has_better(const struct text_log *l, bool *after_alarm)
{
	bool found = false;

	*after_alarm = false;
	for (size_t i = 0; i < l->n_events; i++) {
		const struct text_event *e = &l->event[i];

		if (!e->type[0] || !e->raised)
			continue;
		if (l->alarm.text && !l->alarm_leveled && e->file == l->file && e->order > l->alarm_order &&
		    e->order <= l->alarm_order + e->n_frames * 2 + ALARM_LINES)
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
	if (!after_alarm && l->complaint.text &&
	    (l->person || (l->told_first && l->progress < WENT_ON) || (is_last_word(l) && !l->n_events)))
		return &l->complaint;
	if (!l->alarm.text || l->progress - l->alarm_progress >= WENT_ON ||
	    (l->alarm_leveled && l->alarms * 2 > l->said))
		return NULL;
	return &l->alarm;
}

const struct text_hit *log_trouble(const struct text_log *l)
{
	bool after_alarm;

	return l->trouble.text && l->progress - l->trouble_progress < WENT_ON && !has_better(l, &after_alarm)
		       ? &l->trouble
		       : NULL;
}

const struct text_words *log_words(const struct text_log *l)
{
	return &l->in_text;
}

static bool is_over(struct text_past past, uint64_t order)
{
	return order >= past.from && order < past.to;
}

/* `order` is of another process than `e`: one of the same input that was started before or after it. */
static bool is_of_other_run(const struct text_log *l, const struct text_event *e, uint64_t order)
{
	for (unsigned i = 1; i <= l->n_runs; i++)
		if (l->run[i].by > RESTART_STATEMENT && l->run[i].file == e->file &&
		    (order < l->run[i].order) != (e->order < l->run[i].order))
			return true;
	return false;
}

size_t log_asserts(const struct text_log *l, struct text_past past, const struct text_event *e,
		   const struct text_assert **list)
{
	const struct text_assert *a = l->asserts.list;
	size_t first = 0, n = l->asserts.n;

	while (first < n && (is_over(past, a[first].order) || (e && is_of_other_run(l, e, a[first].order))))
		first++;
	while (n > first && e && is_of_other_run(l, e, a[n - 1].order))
		n--;
	*list = a + first;
	return n - first;
}

size_t log_xids(const struct text_log *l, const char *const **lines)
{
	*lines = l->xid;
	return l->n_xids;
}

/* It is among the words without an order, too, which know better whether it is meant. */
static bool is_twice(const struct text_log *l, size_t which)
{
	for (size_t i = 0; which >= l->n_fixed && i < l->n_fixed; i++)
		if (!strcmp(l->words[i], l->words[which]))
			return true;
	return false;
}

static int compare_hits(const void *a, const void *b)
{
	return strcmp(((const struct text_hit *)a)->words, ((const struct text_hit *)b)->words);
}

size_t log_hits(const struct text_log *l, struct text_past past, struct pool *pool, const struct text_hit **list)
{
	struct text_hit *hits;
	size_t n = 0;

	for (size_t i = 0; i < l->n_words; i++)
		n += l->hit[i].count != 0;
	*list = hits = pool_alloc(pool, (n + 1) * sizeof(*hits));
	n = 0;
	for (size_t i = 0; i < l->n_words; i++)
		if (l->hit[i].count && !is_over(past, l->hit_last[i]) && !is_twice(l, i))
			hits[n++] = (struct text_hit){.count = l->hit[i].count, .line = l->hit[i].line,
						      .text = pool_strdup(pool, l->hit[i].text),
						      .file = pool_strdup(pool, l->hit[i].file),
						      .words = pool_strdup(pool, l->words[i])};
	xsort(hits, n, sizeof(*hits), compare_hits);
	return n;
}

const struct text_env *log_env(const struct text_log *l)
{
	return &l->env;
}

const char *log_crashed(const struct text_log *l)
{
	return l->crash.library;
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

bool log_progress_after(const struct text_log *l, const struct text_event *e)
{
	return l->run[e->run].progress_last > e->order;
}

size_t log_ranks(const struct text_log *l)
{
	size_t n = 0;

	for (size_t i = 0; i < RANKS_MAX; i++)
		n += (l->rank[i / 8] >> (i % 8)) & 1;
	return n;
}
