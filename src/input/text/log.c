/* SPDX-License-Identifier: Apache-2.0
 * Reads logs (see log.h): every line that the stream hands on is cleaned, searched for words, and given to the
 * readers of assertions, of the machine, and of tracebacks and errors, each process apart from the others.
 */
#include "input/text/log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/needles.h"
#include "base/str.h"
#include "input/text/crash.h"
#include "input/text/line.h"
#include "input/text/stream.h"

#define TALKS_MAX	64	/* processes whose lines may be interleaved */
#define RING_LINES	24	/* lines before an error that are kept with it */
#define RING_WIDTH	240
#define MESSAGE_LINES	14
#define MESSAGE_MAX	4096
#define RANKS_MAX	4096
#define STRAYS_MAX	6	/* lines inside a traceback that belong to another process */
#define ENV_LINES	20000	/* that are searched for the machine */
#define FOLDS_MAX	400	/* lines inside one line */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

enum talk_state { TALK_IDLE, TALK_TRACEBACK, TALK_MESSAGE };

/* What one process is saying. */
struct talk {
	char who[LINE_WHO_MAX];
	enum talk_state state;
	size_t indent;		/* of the traceback's header */
	struct traceback traceback;
	unsigned strays;
	struct text_event *event;	/* TALK_MESSAGE: whose message goes on; NULL: one that was seen before */
	unsigned lines;
	uint64_t used;
};

struct text_log {
	struct pool pool;
	struct needles *needles, *fast;	/* in a line; in all of a log */
	const char **words;
	struct text_hit *hit;
	size_t n_words, n_errors;	/* the first n_errors words make an event */
	size_t n_fixed;			/* and those up to here are PyTorch's footers; the rest is in order */
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
	uint64_t bytes;
	uint64_t strange, read;		/* of this input: non-text bytes, of those looked at */
	uint64_t progress, progress_last;	/* first and last line that show it; 0 = none */
	unsigned char rank[RANKS_MAX / 8];
	struct text_line line;
	bool hasty;
	bool error_here;		/* the line has an error phrase */
};

/* --- words: of errors, of notes, of footers and of rules ------------------------------------------- */

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

static const char *const fine[] = {
#define MARK_FINE(words) words,
#include "kb/text_marks.def"
	NULL};

static bool line_has_any(const char *s, const char *const *words)
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

/* Error phrases first, then footers, then the words of rules in order, each once. */
static void log_collect_words(struct text_log *l, const char *const *words, size_t n)
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

static void needle_hit(void *arg, size_t which)
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
static bool log_find_words(struct text_log *l)
{
	l->n_found = 0;
	l->error_here = false;
	needles_in_line(l->needles, l->line.text, l->line.len, needle_hit, l);
	for (size_t i = 0; i < l->n_found; i++)
		if (l->found[i] >= l->n_errors && l->found[i] < l->n_fixed)
			return false;
	for (size_t i = 0; i < l->n_found; i++)
		note_hit(l, l->found[i]);
	if (l->error_here && line_has_any(l->line.text, fine))
		l->error_here = false;
	return true;
}

/* --- exceptions ------------------------------------------------------------------------------------ */

static const char *const peers[] = {
#define MARK_PEER(words) words,
#include "kb/text_marks.def"
	NULL};

/* Letters, digits, '_' and '.', as the name of an exception has them. Its length. */
static size_t exception_name_length(const char *s)
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
	size_t n = exception_name_length(s), after = n;

	if (!n)
		return false;
	if (s[after] == '(' && is_exception_name(s, n))
		after += strcspn(s + after, ")") + 1;
	if (s[after] && s[after] != ':')
		return false;
	if (s[after] == ':' && s[after + 1] && s[after + 1] != ' ')
		return false;
	*name = n;
	return is_exception_name(s, n) ||
	       (in_traceback && s[after] == ':' && strchr(s, '.') != NULL && strchr(s, '.') < s + n) ||
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
		.type = pool_strdup(&l->pool, name),
		.message = pool_copy(&l->pool, message, strnlen(message, MESSAGE_MAX)),
		.who = pool_strdup(&l->pool, line->who), .rank = line->rank, .line = line->number, .count = 1,
		.file = l->file, .before = l->n_events <= 16 ? ring_text(l) : "",
		.warning = str_ends(name, "Warning"), .marked = l->error_here,
	};
	e->peer = line_has_any(name, peers) || line_has_any(e->message, peers);
	return e;
}

/* --- talks: the lines of one process --------------------------------------------------------------- */

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

static bool ends_message(const char *s)
{
	static const char *const starts[] = {
		"Traceback (most recent",
		"During handling of the above",
		"The above exception was",
		"File \"",
		"+ Exception Group",
		"terminate called",
		"Exception raised from",
		"Stack trace",
		"C++ CapturedTraceback",
		"Exception in thread",
		"$ ",
		">>> ",
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

/* The next line of the message. False when it has ended. */
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
		t->event->message =
			pool_printf(&l->pool, "%s%s%s", t->event->message, t->event->message[0] ? "\n" : "", s);
	return true;
}

static void start_message(struct text_log *l, struct talk *t, const struct text_line *line, const char *s, size_t name)
{
	const char *message = s + name;

	message += strspn(message, ": ");
	if (*message == '(' && name && s[name] == '(')
		message = s + name;
	t->event = add_event(l, line, s, name, message);
	if (t->event)
		t->event->n_frames = traceback_keep(&t->traceback, &l->pool, &t->event->frame);
	t->state = TALK_MESSAGE;
	t->lines = 0;
	t->traceback.n = 0;
}

/* Outside of a traceback: an exception's line, or an error phrase. */
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
	if (traceback_frame(&t->traceback, s) || traceback_arrow(&t->traceback, s)) {
		t->strays = 0;
	} else if (isdigit((unsigned char)*s) && t->traceback.n && t->strays < STRAYS_MAX * 4) {
		t->strays++;	/* lines of code around the one with the arrow */
	} else if (line->indent > t->indent) {
		traceback_source(&t->traceback, s);
	} else if (is_exception_line(s, true, &name)) {
		start_message(l, t, line, s, name);
	} else if (l->error_here || ++t->strays > STRAYS_MAX) {
		/* the traceback was cut off */
		t->state = TALK_IDLE;
		idle_line(l, t, line);
	}
}

static void talk_line(struct text_log *l, const struct text_line *line)
{
	struct talk *t = talk_of(l, line->who);
	const char *s = line_words(line);

	if (strstr(s, "Traceback (most recent call last)")) {
		/* "RuntimeError   Traceback (most recent call last)" of notebooks is no frame */
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
	if (traceback_frame(&t->traceback, s))	/* the beginning of the traceback is missing */
		return;
	if (t->traceback.n && line->indent > 2 && line->indent < 8 && !l->error_here) {
		traceback_source(&t->traceback, s);
		return;
	}
	idle_line(l, t, line);
}

/* --- lines ----------------------------------------------------------------------------------------- */

static const char *const progress[] = {
#define MARK_PROGRESS(words) words,
#include "kb/text_marks.def"
	NULL};

static void note_rank(struct text_log *l, int rank)
{
	if (rank >= 0 && rank < RANKS_MAX)
		l->rank[rank / 8] |= (unsigned char)(1u << (rank % 8));
}

static void note_xid(struct text_log *l, const struct text_line *line)
{
	if (l->n_xids < LOG_XIDS_MAX && strstr(line->text, "Xid") &&
	    (strstr(line->text, "NVRM") || strstr(line->text, "Xid (")))
		l->xid[l->n_xids++] = pool_strdup(&l->pool, line->text);
}

static void keep_in_ring(struct text_log *l, const struct text_line *line)
{
	str_copy(l->ring[l->ring_n++ % RING_LINES], RING_WIDTH, line->text);
}

static bool shows_progress(const struct text_log *l, const struct text_line *line)
{
	return !l->error_here && line->indent < 16 && strpbrk(line->text, "0123456789") &&
	       line_has_any(line->text, progress) && !strstr(line->text, "File \"");
}

static void log_line(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	struct text_line *line = &l->line;

	line_clean(line, s, len, number);
	note_rank(l, line->rank);
	if (printed_asserts_line(&l->asserts, &l->pool, line))
		return;
	if (!log_find_words(l))
		return;
	note_xid(l, line);
	if (l->error_here && l->env_lines > ENV_LINES - 500)
		l->env_lines = ENV_LINES - 500;
	if (l->env_lines < ENV_LINES) {	/* what a log says about the machine is near its errors or its ends */
		env_line(&l->env, line_words(line), number);
		crash_line(&l->crash, line_words(line));
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

/* Bytes that text does not have: with enough of them it is not text. */
static void look_at_bytes(struct text_log *l, const char *s, size_t len)
{
	for (size_t i = 0; i < len && i < 512; i++)
		l->strange += ((unsigned char)s[i] < 0x20 && !strchr("\t\r\033\b", s[i])) || s[i] == 0;
	l->read += len < 512 ? len : 512;
}

/* A line inside a JSON string, without the backslashes before its quotes. */
static void read_unquoted(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	char plain[2048];
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < sizeof(plain); i++)
		if (s[i] != '\\' || i + 1 == len || s[i + 1] != '"')
			plain[n++] = s[i];
	log_line(l, plain, n, number);
}

/* Logs in JSON write a whole traceback into one line: "message": "Traceback (most recent call last):\\n  File …". */
static void read_folded(struct text_log *l, const char *s, size_t len, uint64_t number)
{
	/* Windows paths have the same two characters */
	static const char *const marks[] = {"Traceback (most recent call last):\\n", "\\n  File \\\"", "\\n  File \"",
					    "\\nCUDA kernel errors might"};
	bool folded = false;
	unsigned parts = 0;

	for (size_t i = 0; i < COUNT(marks); i++)
		folded |= memmem(s, len, marks[i], strlen(marks[i])) != NULL;
	if (!folded) {
		log_line(l, s, len, number);
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

/* Progress bars overwrite themselves with '\r': what they wrote last is what the user saw. */
static void log_take_line(void *arg, const char *s, size_t len, uint64_t number, bool gap)
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
		log_line(l, "", 0, number);
}

/* --- logs ------------------------------------------------------------------------------------------ */

struct text_log *log_new(const char *const *words, size_t n)
{
	struct text_log *l = xcalloc(1, sizeof(*l));

	log_collect_words(l, words, n);
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

void log_hasty(struct text_log *l)
{
	l->hasty = true;
}

static void begin_input(struct text_log *l, const char *name)
{
	l->env_lines = 0;
	l->strange = l->read = 0;
	l->file = pool_strdup(&l->pool, name);
	for (size_t i = 0; i < TALKS_MAX; i++)
		l->talk[i] = (struct talk){0};
}

static void end_input(struct text_log *l, struct stream *st)
{
	stream_end(st);
	l->bytes += stream_bytes(st);
	stream_free(st);
}

int log_read_fd(struct text_log *l, const char *name, int fd, int copy)
{
	struct stream *st = stream_new(l->fast, log_take_line, l);
	int rc;

	begin_input(l, name);
	rc = stream_read_fd(st, fd, copy);
	end_input(l, st);
	return rc;
}

void log_read_text(struct text_log *l, const char *name, const char *text, size_t len)
{
	struct stream *st = stream_new(l->fast, log_take_line, l);

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

/* --- answers --------------------------------------------------------------------------------------- */

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
	*list = l->asserts.list;
	return l->asserts.n;
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
