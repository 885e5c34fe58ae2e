/* SPDX-License-Identifier: Apache-2.0
 * Mentioned, not reported (see quoted.h).
 */
#include "find/words/quoted.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "read/text/exception.h"
#include "read/text/line.h"
#include "read/text/said.h"

#define HASH_MIN 7
#define CITED_AFTER 2	/* words: one may be a label, "Error: \"…\" in worker 3" */
#define CODE_MAX 240	/* a longer line is a text whose line ends were lost */

static size_t hash_length(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n >= HASH_MIN && n <= 40 && !isalnum((unsigned char)s[n]) ? n : 0;
}

/* "tests/test_cuda.py::test_oom PASSED [ 11%]" */
static bool result_of_pytest(const char *s)
{
	const char *name = strstr(s, "::"), *space = strchr(s, ' '), *after;

	if (!name || (space && space < name))	/* the summary, "FAILED tests/…::… - RuntimeError: …", is a report */
		return false;
	for (const char *at = name; (at = says_on(name, at, SAID_pytest_result, &after)) != NULL; at++)
		if (!*after || *after == ' ')
			return true;
	return false;
}

/* "test_oom (tests.ErrorTest.test_oom) ... ok", "1/6 Test #1: oom ....   Passed    0.31 sec", "--- PASS: TestGPULost (0.01s)" of Go */
static bool result_of_test(const char *s)
{
	const char *go = strstr(s, "_test.go:"), *after, *at;

	if (says(s, SAID_test_result) || (go && strcspn(s, " ") > (size_t)(go - s)))
		return true;
	at = says_at(s, SAID_last_word_result, &after);
	return at && at > s && strchr(" .", at[-1]);
}

static bool commit_header(const char *s)
{
	return str_starts(s, "commit ") && hash_length(s + 7) > 20;
}

static bool commit_line(const struct text_line *line)
{
	return !line->len || line->indent >= 4 || says(line->text, SAID_commit_line);
}

/* "8f3a1c2 fix: CUDA out of memory when …": letters and digits, so that it is no number and no word. */
static bool commit_in_one_line(const char *s)
{
	size_t n = hash_length(s);

	return n && n <= 12 && s[n] == ' ' && strcspn(s, "0123456789") < n && strcspn(s, "abcdef") < n;
}

static bool diff_line(const struct text_line *line)
{
	return !line->len || says(line->text, SAID_diff_line);
}

static bool usage_line(const struct text_line *line)
{
	return !line->len || line->indent || str_ends(line->text, ":");
}

/* "ops.cu:31:12: warning: unused variable 'cudaErrorText'": a compiler names what the code names. */
static bool compiler_remark(const char *s)
{
	const char *after, *at = says_at(s, SAID_compiler_remark, &after);

	return at && at > s && isdigit((unsigned char)at[-1]) && memchr(s, ':', (size_t)(at - s)) &&
	       !memchr(s, ' ', (size_t)(at - s));
}

bool quoted_line(struct quoted *q, const struct text_line *line)
{
	const char *s = line_words(line);

	if (commit_header(s))
		q->in = QUOTED_COMMIT;
	else if (says(s, SAID_diff_header))
		q->in = QUOTED_DIFF;
	else if (says(line->text, SAID_usage_header))
		q->in = QUOTED_USAGE;
	else if (says(line->text, SAID_changes_header))
		q->in = QUOTED_CHANGES;
	else if (q->in == QUOTED_USAGE && !usage_line(line))
		q->in = QUOTED_NOT;
	else if (q->in == QUOTED_CHANGES && (str_starts(s, "-- ") || (line->len && !line->indent)))
		q->in = QUOTED_NOT;
	else if (q->in == QUOTED_COMMIT && !commit_line(line))
		q->in = QUOTED_NOT;
	else if (q->in == QUOTED_DIFF && !diff_line(line))
		q->in = QUOTED_NOT;
	return q->in != QUOTED_NOT || commit_in_one_line(s) || result_of_pytest(s) || result_of_test(s) ||
	       compiler_remark(s) || says(s, SAID_metric);
}

/* "src/errors.py:12:    raise …" of grep -n: what follows. */
static const char *skip_grep(const char *s)
{
	const char *colon = strchr(s, ':');
	size_t digits;

	if (!colon || memchr(s, ' ', (size_t)(colon - s)) || !memchr(s, '.', (size_t)(colon - s)))
		return s;
	digits = strspn(colon + 1, "0123456789");
	if (!digits || colon[1 + digits] != ':')
		return s;
	colon += 2 + digits;
	if (colon[0] == ' ' && colon[1] != ' ')	/* "train.py:12: UserWarning: …" */
		return s;
	return colon + strspn(colon, " ");
}

/* "CUDA error: out of memory": "oom", of a table of messages; keys of a log's JSON have no spaces. */
static bool table_of_texts(const char *s)
{
	const char *end = *s == '"' || *s == '\'' ? strchr(s + 1, *s) : NULL;

	return end && memchr(s, ' ', (size_t)(end - s)) && end[1 + strspn(end + 1, " ")] == ':';
}

bool quoted_code(const char *s)
{
	size_t len, name;

	if (strlen(s) > CODE_MAX)
		return false;
	if (says(s, SAID_typed))
		return true;
	s = skip_grep(s);
	len = strlen(s);
	if (table_of_texts(s) || says(s, SAID_template))
		return true;
	if (exception_line(s, false, &name) || !len)
		return false;
	if (says(s, SAID_statement) && strpbrk(s, "(\":;"))
		return true;
	if (says(s, SAID_no_code))
		return false;
	return strchr(";{\\", s[len - 1]) && strpbrk(s, "(=") != NULL;
}

bool quoted_item(const char *s)
{
	return says(s, SAID_item);
}

/* "rmsnorm fails with `cudaErrorIllegalAddress` on large tensors": it is reported. */
static bool told_as_failure(const char *line, const char *s)
{
	const char *after;
	const char *at = says_at(line, SAID_told_as_failure, &after);

	return at && at < s;
}

/* The quotation mark that opens what `s` is in; NULL: it is not in quotation marks. An apostrophe inside a word is none. */
static const char *opening_quote(const char *line, const char *s)
{
	const char *open = NULL;

	for (const char *at = line; at < s; at++) {
		bool apostrophe = *at == '\'' && at > line && isalnum((unsigned char)at[-1]) &&
				  (!open || isalnum((unsigned char)at[1]));

		if (!strchr("\"'`", *at) || apostrophe)
			continue;
		if (!open)
			open = at;
		else if (*open == *at)
			open = NULL;
	}
	return open;
}

bool quoted_citation(const char *line, const char *s)
{
	const char *open = opening_quote(line, s), *end;
	size_t words = 0;

	if (!open || told_as_failure(line, s))
		return false;
	end = strchr(s, *open);
	if (!end || end[1] != ' ' || !isalpha((unsigned char)end[2]))
		return false;
	for (const char *at = line; at < open; at++)
		words += isalpha((unsigned char)*at) && strchr(" ,:", at[1]);
	return words >= CITED_AFTER;
}

bool quoted_underline(const char *s, unsigned long length)
{
	size_t n = strlen(s);

	return n >= 3 && strchr("=-~^", s[0]) && strspn(s, (char[]){s[0], '\0'}) == n && 4 * n >= 3 * length &&
	       n <= length + 2;
}
