/* SPDX-License-Identifier: Apache-2.0
 * Cleans a line of a log (see line.h).
 */
#include "read/text/line.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/text/said.h"

#define PREFIXES_MAX 6		/* "(pid=1) [rank0]: 2024-01-01 12:00:00,123 ERROR [x.py:3] " */

/* What follows an escape sequence at s[0]: colors, cursor movements, titles. */
static size_t escape_length(const char *s, size_t len)
{
	size_t i = 2;

	if (len < 2)
		return len;
	if (s[1] == '[') {
		while (i < len && !(s[i] >= '@' && s[i] <= '~'))
			i++;
		return i < len ? i + 1 : len;
	}
	if (s[1] == ']') {
		while (i < len && s[i] != '\a' && s[i] != '\033')
			i++;
		return i < len ? i + 1 : len;
	}
	return 2;
}

size_t line_color(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] == 033)
		n += escape_length(s + n, len - n);
	return n;
}

/* Copies what is visible. */
static size_t copy_visible(char *to, size_t size, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == 033) {
			i += escape_length(s + i, len - i) - 1;
			continue;
		}
		if (c == '\t' || c >= 0x20)
			to[n++] = c == '\t' ? ' ' : (char)c;
	}
	while (n && to[n - 1] == ' ')
		n--;
	to[n] = '\0';
	return n;
}

static const char *skip_digits(const char *s)
{
	while (isdigit((unsigned char)*s))
		s++;
	return s;
}

/* "rank0", "rank 0", "Rank0", "default0", "1,0": the number after the word. */
static bool rank_number(const char *s, const char *end, int *rank)
{
	static const char *const words[] = {"rank", "Rank", "RANK", "default", "GPU", "worker", "Worker_TP", "Worker"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *n = s + strlen(words[i]);

		if (!str_starts(s, words[i]))
			continue;
		n += *n == ' ' || *n == ':' || *n == '=' || *n == '_' || *n == '-';
		if (isdigit((unsigned char)*n) && skip_digits(n) <= end) {
			*rank = (int)strtol(n, NULL, 10);
			return true;
		}
	}
	return false;
}

int line_rank_of_file(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *folder = slash;
	int rank = -1;

	for (const char *s = name; *s && rank < 0; s++)
		if (s == name || !isalnum((unsigned char)s[-1]))
			rank_number(s, path + strlen(path), &rank);
	/* torchrun --redirects: "attempt_0/3/stderr.log" */
	if (rank < 0 && slash && (str_starts(name, "stderr") || str_starts(name, "stdout"))) {
		while (folder > path && isdigit((unsigned char)folder[-1]))
			folder--;
		if (folder < slash && slash - folder < 6 && (folder == path || folder[-1] == '/'))
			rank = (int)strtol(folder, NULL, 10);
	}
	return rank;
}

static void set_who(struct text_line *l, const char *s, const char *end)
{
	size_t n = (size_t)(end - s) < sizeof(l->who) - 1 ? (size_t)(end - s) : sizeof(l->who) - 1;

	if (l->who[0])
		return;
	memcpy(l->who, s, n);
	l->who[n] = '\0';
}

/* "[rank0]:", "[default1]:", "[1,0]<stderr>:", "[Rank 2]". Returns what follows, NULL when it is something else. */
static const char *skip_brackets(struct text_line *l, const char *s)
{
	const char *end = s[0] == '[' ? strchr(s, ']') : NULL, *after;
	int rank;

	if (!end || end - s > 60)
		return NULL;
	after = end + 1;
	if (rank_number(s + 1, end, &rank)) {
		l->rank = rank;
		set_who(l, s + 1, end);
		return after + (*after == ':');
	}
	if (isdigit((unsigned char)s[1]) && (str_starts(after, "<stderr>:") || str_starts(after, "<stdout>:"))) {
		set_who(l, s + 1, end);
		return after + 9;
	}
	/* a time, a level or a place in a source file: "[2024-05-01 10:00:00,123]", "[ERROR]", "[core.py:12]" */
	if (s[1] && strchr("EWIF", s[1]) && isdigit((unsigned char)s[2]) && memchr(s, ':', (size_t)(end - s)))
		return after;
	if (isdigit((unsigned char)s[1]) && (memchr(s, ':', (size_t)(end - s)) || end - s > 8))
		return after;
	if (str_starts(s, "[pod/")) {
		set_who(l, s + 5, end);
		return after;
	}
	if (str_starts(s, "[ERROR]") || str_starts(s, "[INFO]") || str_starts(s, "[WARNING]") ||
	    str_starts(s, "[stderr]") ||
	    (end - s > 4 && memchr(s, '.', (size_t)(end - s)) && memchr(s, ':', (size_t)(end - s)) &&
	     !memchr(s, ' ', (size_t)(end - s))))
		return after;
	return NULL;
}

/* "(pid=4711) ", "(RayTrainWorker pid=12, ip=10.0.0.1) ", "(EngineCore_0 pid=33) ", "(raylet) ". */
static const char *skip_parentheses(struct text_line *l, const char *s)
{
	const char *end = s[0] == '(' ? strchr(s, ')') : NULL, *pid;

	if (!end || end - s > 120 || (end[1] && end[1] != ' '))
		return NULL;
	pid = strstr(s, "pid=");
	if ((!pid || pid > end) && !str_starts(s, "(raylet)") && !str_starts(s, "(autoscaler"))
		return NULL;
	set_who(l, pid && pid < end ? pid : s + 1, end);
	rank_number(s + 1, end, &l->rank);
	return end + 1;
}

/* "3: text" of srun --label, "node-0: ", "worker_1  | text" of docker compose. */
static const char *skip_label(struct text_line *l, const char *s)
{
	const char *end = skip_digits(s), *bar;

	if (end > s && end - s <= 5 && end[0] == ':' && (!end[1] || end[1] == ' ')) {
		set_who(l, s, end);
		l->rank = (int)strtol(s, NULL, 10);
		return end + 1;
	}
	bar = strstr(s, " | ");
	if (!bar && str_ends(s, " |"))	/* an empty line */
		bar = s + strlen(s) - 2;
	if (bar && bar - s < 40 && isalpha((unsigned char)s[0])) {
		end = s + strcspn(s, " |");
		if (end == s + strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") &&
		    end + strspn(end, " ") == bar + 1 && (bar > end || (strpbrk(s, "-_") && strpbrk(s, "-_") < end))) {
			set_who(l, s, end);
			return bar + 2;	/* the indentation of what follows stays */
		}
	}
	return NULL;
}

static bool is_level(const char *s, size_t n)
{
	return says_just(s, n, SAID_level);
}

/* What loggers write after the time: "- train.main - ERROR - ", "| ERROR    | __main__:run:40 - ", "stderr F " of container runtimes, "01E " of
 * GitLab. Words and separators up to the separator behind the level, and the place that may follow. Returns `s` when it is none. */
static const char *skip_fields(const char *s)
{
	const char *at = s + (*s == ' '), *word, *end;
	bool level = false;

	if ((str_starts(at, "stderr ") || str_starts(at, "stdout ")) && (at[7] == 'F' || at[7] == 'P') &&
	    (at[8] == ' ' || !at[8]))
		return at + 8;
	if (isdigit((unsigned char)at[0]) && isdigit((unsigned char)at[1]) && (at[2] == 'E' || at[2] == 'O') &&
	    (!at[3] || at[3] == ' ' || at[3] == '+'))
		return at + 3 + (at[3] == '+');
	for (int i = 0; i < 4 && !level; i++) {
		word = at + strspn(at, " -|");
		end = word + strcspn(word, " |");
		if (word == at && i)
			return s;
		level = is_level(word, (size_t)(end - word));
		at = end;
	}
	if (!level)
		return s;
	word = at + strspn(at, " ");
	if (*word == '|') {	/* loguru: the place follows */
		word += 1 + strspn(word + 1, " ");
		end = word + strcspn(word, " ");
		if (str_starts(end, " -"))
			return end + 2;
		return s;
	}
	return *word == '-' && (word[1] == ' ' || !word[1]) ? word + 1 : s;
}

/* "E0304 11:12:13.000123 140213 train.py:12] " of absl and glog. */
static const char *skip_glog(const char *s)
{
	const char *end;

	if (!*s || !strchr("EWIF", *s) || skip_digits(s + 1) != s + 5 || s[5] != ' ' || skip_digits(s + 6) != s + 8 ||
	    s[8] != ':')
		return NULL;
	end = strchr(s, ']');
	return end && end - s < 100 ? end + 1 : NULL;
}

/* "2024-05-01 10:00:00,123 ", "2024-05-01T10:00:00Z ", "05/01 10:00:00 ", "10:00:00 ", "ERROR 05-01 10:00:00 [x.py:1] ". */
static const char *skip_time(const char *s)
{
	const char *t = s;
	size_t level = strcspn(s, " ");

	if (s[level] && (is_level(s, level) || (level == 1 && strchr("EWI", *s))))
		t = s + level + strspn(s + level, " -:|");
	if (isdigit((unsigned char)*t)) {
		size_t n = strspn(t, "0123456789-/:.,TZ+ "), spaces = strcspn(t, ":");

		/* a number that is set apart from the time belongs to what follows: the line numbers of a listing, "- 7.5" in a list */
		while (spaces < n && memcmp(t + spaces, "  ", 2) != 0 && strncmp(t + spaces, " - ", 3) != 0)
			spaces++;
		if (spaces < n)
			n = spaces;
		while (n && t[n - 1] != ' ' && t[n] && t[n] != ' ')
			n--;
		while (n && t[n - 1] == ' ')	/* the indentation of what follows stays */
			n--;
		if (n >= 8 && memchr(t, ':', n))
			return skip_fields(t + n);
	}
	/* a level alone is a prefix only before a message, not a sentence: "ERROR - x", "ERROR: x" */
	return NULL;
}

/* "Oct 04 13:19:39 host train[394]: " of the journal. What follows the colon. */
static const char *skip_journal(const char *s)
{
	const char *t = s + 3, *colon;

	if (!isupper((unsigned char)s[0]) || !islower((unsigned char)s[1]) || !islower((unsigned char)s[2]) || *t++ != ' ')
		return NULL;
	t += strspn(t, " ");
	t = skip_digits(t);
	if (*t != ' ' || skip_digits(t + 1) != t + 3 || t[3] != ':' || skip_digits(t + 4) != t + 6 || t[6] != ':' ||
	    skip_digits(t + 7) != t + 9)
		return NULL;
	t += 9;
	t += strspn(t, " ");
	colon = strstr(t, ": ");
	if (!colon)
		colon = str_ends(t, ":") ? t + strlen(t) - 1 : NULL;
	return colon && colon - t < 80 && colon[-1] == ']' ? colon + 1 : NULL;
}

/* "> text" in mail and forums; Python's prompt has more of them. */
static const char *skip_quote(const char *s)
{
	return s[0] == '>' && (s[1] == ' ' || !s[1]) ? s + 1 : NULL;
}

/* Rich draws a box around tracebacks. */
static void strip_box(struct text_line *l)
{
	static const char bar[] = "\xe2\x94\x82", *const corner[] = {"\xe2\x94\x8c ", "\xe2\x94\x94 "};
	size_t n = sizeof(bar) - 1;

	for (size_t i = 0; i < 2; i++)	/* Julia's: "┌ Error: …", "│ …", "└ @ …" */
		if (str_starts(l->text, corner[i])) {
			l->len -= strlen(corner[i]);
			memmove(l->text, l->text + strlen(corner[i]), l->len + 1);
		}
	if (l->len < 2 * n || memcmp(l->text, bar, n))
		return;
	if (!memcmp(l->text + l->len - n, bar, n))
		l->len -= n;
	l->len -= n;
	memmove(l->text, l->text + n, l->len);
	while (l->len && l->text[l->len - 1] == ' ')
		l->len--;
	l->text[l->len] = '\0';
}

static size_t skip_prefixes(struct text_line *l)
{
	const char *s = l->text, *next;
	int i;

	for (i = 0; i < PREFIXES_MAX; i++) {
		size_t spaces = strspn(s, " ");
		const char *word = s + spaces;

		if (spaces > 2 && i == 0)
			break;	/* indented text has no prefix */
		if ((next = skip_brackets(l, word)) == NULL && (next = skip_parentheses(l, word)) == NULL &&
		    (next = skip_label(l, word)) == NULL && (next = skip_time(word)) == NULL &&
		    (next = skip_journal(word)) == NULL && (next = skip_glog(word)) == NULL &&
		    (next = skip_quote(word)) == NULL)
			break;
		s = next;
	}
	/* one space belongs to the prefix */
	return (size_t)(s - l->text) + (s > l->text && *s == ' ');
}

#define ALARM_WITHIN 120	/* a level is near the beginning of a line */

/* As a word of its own. */
static bool has_word(const char *s, enum said_list list)
{
	const char *after = NULL;

	for (const char *at = s; (at = says_at(at, list, &after)) != NULL && at - s < ALARM_WITHIN; at++)
		if ((at == s || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    !isalnum((unsigned char)*after) && *after != '_')
			return true;
	return false;
}

/* "FATA[0000] …", "Error response from daemon: …", "nvcc fatal : …", "thread 'main' panicked at …": the words themselves say that it failed.
 * "… ERROR …", "E1123 10:00:00.123 …": the logger's level does. */
static void note_alarm(struct text_line *l, const char *s)
{
	const char *first = s + strspn(s, " ");

	l->alarm = says(first, SAID_alarm_begin) || has_word(s, SAID_alarm) ||
		   (has_word(s, SAID_alarm_call) && !has_word(s, SAID_lower_level));
	l->leveled = !l->alarm && (has_word(s, SAID_alarm_level) ||
				   ((first[0] == 'E' || first[0] == 'F') && skip_glog(first) != NULL));
	l->alarm |= l->leveled;
}

void line_clean(struct text_line *l, const char *s, size_t len, uint64_t number)
{
	size_t skip;

	l->number = number;
	l->who[0] = '\0';
	l->rank = -1;
	l->len = copy_visible(l->text, sizeof(l->text), s, len);
	strip_box(l);
	note_alarm(l, l->text);
	skip = skip_prefixes(l);
	l->prefixed = skip > 0;
	if (skip) {
		memmove(l->text, l->text + skip, l->len - skip + 1);
		l->len -= skip;
		strip_box(l);
	}
	str_make_utf8(l->text);
	l->indent = strspn(l->text, " ");
	if (l->indent == l->len)
		l->indent = l->len = 0, l->text[0] = '\0';
}
