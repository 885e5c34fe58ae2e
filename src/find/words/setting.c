/* SPDX-License-Identifier: Apache-2.0
 * Settings in a text (see env.h).
 */
#include "find/words/env.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "read/text/said.h"

#define WORD_MAX	40	/* longest word of kb/settings.def */
#define ADVICE_BEFORE	48	/* characters before a setting in which words make it advice */

enum word_kind { KIND_PLAIN, KIND_COUNT, KIND_SPOKEN, KIND_BYTES, KIND_OPTION, KIND_QUOTED };

struct word {
	enum fact_id fact;
	const char *word;
	enum word_kind kind;
};

static const struct word words[] = {
#define SETTING(fact, word, kind) {FACT_##fact, word, KIND_##kind},
#include "kb/settings.def"
};

/* "--shm-size" is "shm_size". */
static const struct word *find_word(const char *s, size_t len)
{
	char plain[WORD_MAX];
	int first;	/* most words of a text are none of these, and have another first letter */

	if (!len || len >= sizeof(plain))
		return NULL;
	for (size_t i = 0; i < len; i++)
		plain[i] = s[i] == '-' || s[i] == ' ' ? '_' : s[i];
	plain[len] = '\0';
	first = tolower((unsigned char)plain[0]);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (tolower((unsigned char)words[i].word[0]) == first && !strcasecmp(words[i].word, plain))
			return &words[i];
	return NULL;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static size_t word_length(const char *s)
{
	size_t n = 0;

	while (is_word(s[n]) || (s[n] == '-' && is_word(s[n + 1])))
		n++;
	return n;
}

/* PyTorch recommends settings in its own messages, and so do people: "try setting PYTORCH_ALLOC_CONF=…", "consider passing …". */
static bool is_advice(const char *line, const char *at)
{
	char before[ADVICE_BEFORE + 1];
	size_t n = (size_t)(at - line) < ADVICE_BEFORE ? (size_t)(at - line) : ADVICE_BEFORE;

	memcpy(before, at - n, n);
	before[n] = '\0';
	return says(before, SAID_advice) || says(line, SAID_advice_line);
}

/* Where the value begins; NULL: what follows is no value. `option`: it began with a dash, `spoken`: it is two words of a sentence. */
static const char *value_begin(const char *s, bool option, bool spoken)
{
	const char *after;
	size_t space;

	s += strspn(s, "\"'`]");
	space = strspn(s, " \t");
	if ((s[space] == '=' || (s[space] == ':' && !option)) && s[space + 1] != '=' && s[space + 1] != ':') {
		s += space + 1;
		return s + strspn(s, " \t\"'`");
	}
	if (*s == ',' && s[-1] == '"')	/* setdefault("NAME", "value") */
		return s + 1 + strspn(s + 1, " \"'");
	if (spoken && says_at(s, SAID_is_value, &after))
		return after;
	return option && space ? s + space + strspn(s + space, "\"'") : NULL;
}

static bool read_number(const char *s, double *number, const char **end)
{
	char *after;

	if (!isdigit((unsigned char)*s) && !(*s == '.' && isdigit((unsigned char)s[1])))
		return false;
	*number = strtod(s, &after);
	after -= after[-1] == '.';	/* of the sentence */
	*end = after;
	return true;
}

/* A number ends where nothing goes on: "8", "8,", "0.9)", "16."; not "4090ti", "2x". */
static bool is_end(const char *s)
{
	return !*s || strchr(" \t,;)}]\"'`\\#", *s) || (*s == '.' && (!s[1] || s[1] == ' '));
}

static bool read_bytes(const char *s, double *bytes, const char **end)
{
	static const char units[] = "kmgt";
	const char *unit;

	if (!read_number(s, bytes, end))
		return false;
	unit = **end ? strchr(units, tolower((unsigned char)**end)) : NULL;
	for (const char *u = units; unit && u <= unit; u++)
		*bytes *= 1024;
	if (unit)
		*end += 1 + (tolower((unsigned char)(*end)[1]) == 'i');
	*end += tolower((unsigned char)**end) == 'b';
	return true;
}

/* `bare`: an option without a value says yes. */
static bool read_flag(const char *s, bool bare, double *flag, const char **end)
{
	size_t n = 0;

	while (s && is_word(s[n]))
		n++;
	n += s && !n && *s == '{' && !is_word(s[1]);
	*flag = n && says_just(s, n, SAID_yes);
	if (*flag || (n && says_just(s, n, SAID_no))) {
		*end = s + n;
		return true;
	}
	*flag = 1;
	return bare && (!s || *s == '-');
}

static bool read_word(const char *s, struct setting *t, const char **end)
{
	size_t n = strcspn(s, " \t;)}]\"'`");

	while (n && strchr(",.\\", s[n - 1]))
		n--;
	if (!n || n >= sizeof(t->text) || (n == 4 && (!strncasecmp(s, "none", 4) || !strncasecmp(s, "null", 4))))
		return false;
	str_copy(t->text, n + 1, s);
	*end = s + n;
	return true;
}

static bool read_value(const struct word *w, const char *s, bool bare, struct setting *t, const char **end)
{
	bool whole = w->kind == KIND_COUNT || w->kind == KIND_SPOKEN;

	switch (fact_type(w->fact)) {
	case TYPE_NUMBER:
		return s && (w->kind == KIND_BYTES ? read_bytes(s, &t->number, end) : read_number(s, &t->number, end)) &&
		       is_end(*end) && !(whole && t->number != floor(t->number));
	case TYPE_FLAG: return read_flag(s, bare, &t->number, end);
	default: return s && read_word(s, t, end);
	}
}

static bool is_written_so(enum word_kind kind, bool option, bool two, bool quoted)
{
	return (kind != KIND_OPTION || option) && (kind != KIND_QUOTED || quoted) && (kind == KIND_SPOKEN || !two);
}

static bool is_set(const struct settings *t, enum fact_id fact)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].fact == fact)
			return true;
	return false;
}

/* Keeps the words, with both quotes of a pair. */
static void keep_said(struct setting *t, const char *line, const char *s, const char *end)
{
	static const char quotes[] = "\"'";

	while (s > line && s[-1] == '-')
		s--;
	for (const char *q = quotes; *q; q++) {
		size_t n = 0;

		for (const char *at = s; at < end; at++)
			n += *at == *q;
		if (n % 2 && s > line && s[-1] == *q)
			s--;
		else if (n % 2 && *end == *q)
			end++;
	}
	str_copy(t->said, (size_t)(end - s) + 1 < sizeof(t->said) ? (size_t)(end - s) + 1 : sizeof(t->said), s);
}

/* Reads the setting that begins here; returns where to go on. */
static const char *read_setting(struct settings *t, const char *line, const char *s, const char *file, uint64_t number)
{
	size_t len = word_length(s), second = s[len] == ' ' ? word_length(s + len + 1) : 0;
	const struct word *w = find_word(s, len), *two = w || !second ? NULL : find_word(s, len + 1 + second);
	bool option = s > line && s[-1] == '-' && (s - 1 == line || strchr(" -[\"'`", s[-2]));
	const char *after = s + len + (two ? 1 + second : 0), *value, *end = after;
	struct setting *to = &t->list[t->n];

	w = w ? w : two;
	if (!w || is_set(t, w->fact) || t->n == SETTINGS_MAX || is_advice(line, s) ||
	    !is_written_so(w->kind, option, two != NULL, s > line && s[-1] == '"'))
		return after;
	value = value_begin(after, option, two != NULL);
	*to = (struct setting){.fact = w->fact, .file = file, .line = number};
	if (!read_value(w, value, option, to, &end))
		return after;
	keep_said(to, line, s, end);
	t->n++;
	return end > after ? end : after;
}

void settings_line(struct settings *t, const char *s, const char *file, uint64_t line)
{
	const char *at = s;

	while (*at)
		if (is_word(*at) && (at == s || !is_word(at[-1])))
			at = read_setting(t, s, at, file, line);
		else
			at++;
}

void facts_of_settings(struct casefile *c, const struct settings *t)
{
	case_observe(c, GROUP_set);
	for (size_t i = 0; i < t->n; i++) {
		const struct setting *one = &t->list[i];

		switch (fact_type(one->fact)) {
		case TYPE_NUMBER: fact_set_number(c, one->fact, one->number); break;
		case TYPE_FLAG: fact_set_flag(c, one->fact, one->number != 0); break;
		default: fact_set_text(c, one->fact, one->text); break;
		}
		fact_set_place(c, one->fact, pool_printf(c->pool, "%s line %llu: %s", one->file,
							 (unsigned long long)one->line, one->said));
	}
}
