/* SPDX-License-Identifier: Apache-2.0
 * Mentioned, not reported (see quoted.h).
 */
#include "find/words/quoted.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "read/text/exception.h"
#include "read/text/line.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define HASH_MIN 7
#define CITED_AFTER 2	/* words: one may be a label, "Error: \"…\" in worker 3" */
#define CODE_MAX 240	/* a longer line is a text whose line ends were lost */

static bool starts_with_any(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_starts(s, list[i]))
			return true;
	return false;
}

static size_t hash_length(const char *s)
{
	size_t n = strspn(s, "0123456789abcdef");

	return n >= HASH_MIN && n <= 40 && !isalnum((unsigned char)s[n]) ? n : 0;
}

/* "✓ maps CUDA errors (1 ms)" of Jest and others, "--- PASS: TestGPULost (0.01s)" of Go */
static bool result_by_mark(const char *s)
{
	static const char *const marks[] = {
		"\xe2\x9c\x93 ", "\xe2\x9c\x94 ", "\xe2\x88\x9a ", "\xe2\x97\x8b ", "\xe2\x9c\x95 ",
		"\xe2\x9c\x97 ", "=== RUN ",	  "--- PASS: ",	   "--- SKIP: ",    "--- FAIL: "};
	const char *go = strstr(s, "_test.go:");

	return starts_with_any(s, marks, COUNT(marks)) || (go && strcspn(s, " ") > (size_t)(go - s));
}

/* "tests/test_cuda.py::test_oom PASSED [ 11%]" */
static bool result_of_pytest(const char *s)
{
	static const char *const results[] = {" PASSED", " SKIPPED", " XFAIL", " XPASS", " FAILED", " ERROR"};
	const char *name = strstr(s, "::"), *space = strchr(s, ' ');

	if (!name || (space && space < name))	/* the summary, "FAILED tests/…::… - RuntimeError: …", is a report */
		return false;
	for (size_t i = 0; i < COUNT(results); i++) {
		const char *at = strstr(name, results[i]);

		if (at && (!at[strlen(results[i])] || at[strlen(results[i])] == ' '))
			return true;
	}
	return false;
}

/* "test_oom (tests.ErrorTest.test_oom) ... ok", "1/6 Test #1: oom ....   Passed    0.31 sec", "ok 3 - CUDA error is reported" */
static bool result_of_test(const char *s)
{
	static const char *const dotted[] = {"... ok", "... skipped", "... expected failure", "... FAIL", "... ERROR"};
	static const char *const words[] = {" ok",     " OK",	  " PASS", " PASSED",
					    " Passed", " passed", " SKIP", " SKIPPED"};
	size_t len = strlen(s);

	for (size_t i = 0; i < COUNT(dotted); i++)
		if (strstr(s, dotted[i]))
			return true;
	for (size_t i = 0; i < COUNT(words); i++) {
		size_t n = strlen(words[i]);

		if (len > n + 1 && !strcmp(s + len - n, words[i]) && strchr(" .", s[len - n - 1]))
			return true;
	}
	s += str_starts(s, "not ") ? 4 : 0;
	return (str_starts(s, "ok ") && isdigit((unsigned char)s[3])) ||
	       (strstr(s, "Test ") && strstr(s, "   Passed ")) || (strstr(s, "Test ") && strstr(s, "***Skipped"));
}

static bool commit_header(const char *s)
{
	return str_starts(s, "commit ") && hash_length(s + 7) > 20;
}

static bool commit_line(const struct text_line *line)
{
	static const char *const heads[] = {"Author:", "AuthorDate:", "Date:", "Commit:", "CommitDate:", "Merge:"};

	return !line->len || line->indent >= 4 || starts_with_any(line->text, heads, COUNT(heads));
}

/* "8f3a1c2 fix: CUDA out of memory when …": letters and digits, so that it is no number and no word. */
static bool commit_in_one_line(const char *s)
{
	size_t n = hash_length(s);

	return n && n <= 12 && s[n] == ' ' && strcspn(s, "0123456789") < n && strcspn(s, "abcdef") < n;
}

static bool diff_header(const char *s)
{
	return str_starts(s, "diff --git ") || (str_starts(s, "@@ -") && strstr(s + 4, " @@"));
}

static bool diff_line(const struct text_line *line)
{
	static const char *const heads[] = {"index ", "new file ", "deleted file ", "similarity ", "rename "};

	return !line->len || strchr(" +-@\\", line->text[0]) || starts_with_any(line->text, heads, COUNT(heads));
}

static bool usage_line(const struct text_line *line)
{
	return !line->len || line->indent || str_ends(line->text, ":");
}

/* "linux (6.8.0-50.51) noble; urgency=medium", of Debian's packages; " -- " and a name end the entry. */
static bool changes_header(const char *s)
{
	const char *version = strchr(s, '(');

	return version && strstr(version, "; urgency=");
}

/* "ops.cu:31:12: warning: unused variable 'cudaErrorText'": a compiler names what the code names. */
static bool compiler_remark(const char *s)
{
	const char *at = strstr(s, ": warning: ");

	at = at ? at : strstr(s, ": note: ");
	return at && at > s && isdigit((unsigned char)at[-1]) && memchr(s, ':', (size_t)(at - s)) &&
	       !memchr(s, ' ', (size_t)(at - s));
}

bool quoted_line(struct quoted *q, const struct text_line *line)
{
	const char *s = line_words(line);

	if (commit_header(s))
		q->in = QUOTED_COMMIT;
	else if (diff_header(s))
		q->in = QUOTED_DIFF;
	else if (str_starts(line->text, "usage: ") || str_starts(line->text, "Usage: "))
		q->in = QUOTED_USAGE;
	else if (changes_header(line->text))
		q->in = QUOTED_CHANGES;
	else if (q->in == QUOTED_USAGE && !usage_line(line))
		q->in = QUOTED_NOT;
	else if (q->in == QUOTED_CHANGES && (str_starts(s, "-- ") || (line->len && !line->indent)))
		q->in = QUOTED_NOT;
	else if (q->in == QUOTED_COMMIT && !commit_line(line))
		q->in = QUOTED_NOT;
	else if (q->in == QUOTED_DIFF && !diff_line(line))
		q->in = QUOTED_NOT;
	return q->in != QUOTED_NOT || commit_in_one_line(s) || result_by_mark(s) || result_of_pytest(s) ||
	       result_of_test(s) || compiler_remark(s) || str_starts(s, "# HELP ") ||
	       str_starts(s, "# TYPE "); /* metrics of Prometheus */
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
	static const char *const typed[] = {"$ ", "% ", ">>> "};
	static const char *const statements[] = {
		"except ", "raise ",	"throw ",      "elif ",	   "if \"",	     "if '",	      "if (",
		"if not ", "} else if", "case ",       "assert ",  "print(",	     "printf(",	      "fprintf(",
		"#define", "return \"", "return '",    "logger.",  "logging.",	     "log.",	      "warnings.warn(",
		"with pytest.raises(", "std::cerr",    "std::cout", "TORCH_CHECK("};
	size_t len, name;

	if (strlen(s) > CODE_MAX)
		return false;
	if (starts_with_any(s, typed, COUNT(typed)))
		return true;
	s = skip_grep(s);
	len = strlen(s);
	if (table_of_texts(s) || strstr(s, "{{"))	/* a template */
		return true;
	if (exception_line(s, false, &name) || !len)
		return false;
	if (starts_with_any(s, statements, COUNT(statements)) && strpbrk(s, "(\":;"))
		return true;
	if (strstr(s, " ; expr="))	/* ONNX Runtime ends its message with the call that failed */
		return false;
	return strchr(";{\\", s[len - 1]) && strpbrk(s, "(=") != NULL;
}

bool quoted_item(const char *s)
{
	static const char *const marks[] = {"- ", "* ", "+ ", "# ", "## ", "### ", "#### ", "**", "Q: ", "A: "};
	size_t digits = strspn(s, "0123456789");

	return starts_with_any(s, marks, COUNT(marks)) ||
	       (digits && digits < 3 && s[digits] == '.' && s[digits + 1] == ' ');
}

/* "rmsnorm fails with `cudaErrorIllegalAddress` on large tensors": somebody reports it. */
static bool told_as_failure(const char *line, const char *s)
{
	static const char *const told[] = {" fails with ",   " failed with ", " failing with ", " crashes with ",
					   " crashed with ", " dies with ",   " died with ",	" stops with ",
					   " I get ",	     " we get "};

	for (size_t i = 0; i < COUNT(told); i++) {
		const char *at = strstr(line, told[i]);

		if (at && at < s)
			return true;
	}
	return false;
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
