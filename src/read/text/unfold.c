/* SPDX-License-Identifier: Apache-2.0
 * Finds lines within a line (see unfold.h).
 */
#include "read/text/unfold.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "read/text/exception.h"

static const char header[] = "Traceback (most recent call last):";

/* What begins a line wherever it stands. PyTorch's footers are among them: they would make the whole line one. */
static const char *const starts[] = {
#define MARK_FOOTER(words) words,
#include "kb/text_marks.def"
	"During handling of the above exception",
	"The above exception was the direct cause",
	"terminate called after throwing",
	"what():  ",
	"Exception raised from ",
	"PyTorch version: ",
	"CUDA used to build PyTorch: ",
	"Is CUDA available: ",
	"Nvidia driver version: ",
	"Collecting environment information",
	"| NVIDIA-SMI ",
	"GPU 0: ",
	"frame #0: ",
};

static size_t star(const char *words)
{
	const char *at = strchr(words, '*');

	return at ? (size_t)(at - words) : strlen(words);
}

static size_t word_length(const char *s)
{
	return strcspn(s, " ");
}

/* `File "a/b.py", line 12, in step`: its length up to the name of the function; 0 when it is none. */
static size_t frame_length(const char *s)
{
	const char *line, *end;

	if (strncmp(s, "File \"", 6) != 0 || !(line = strstr(s, "\", line ")) || line - s > 400)
		return 0;
	end = line + 8;
	if (!isdigit((unsigned char)*end))
		return 0;
	while (isdigit((unsigned char)*end))
		end++;
	if (str_starts(end, ", in "))
		end += 5 + word_length(end + 5);
	return (size_t)(end - s);
}

/* "a/Loss.cu:97: kernel: block: [0,0,0], thread: [1,0,0] Assertion `t >= 0` failed." */
static bool starts_assertion(const char *s, size_t n)
{
	size_t i = n;
	const char *assertion;

	if (n < 5 || (s[0] != '/' && s[0] != '.' && !isalpha((unsigned char)s[0])))
		return false;
	while (i > 1 && isdigit((unsigned char)s[i - 2]))
		i--;
	assertion = strstr(s, "Assertion `");
	return i < n && i > 3 && s[i - 2] == ':' && assertion && assertion - s < 600;
}

static bool starts_exception(const char *s, size_t n)
{
	return n > 5 && s[n] == ' ' && isalpha((unsigned char)s[0]) && exception_name(s, n - 1);
}

static bool starts_line(const struct unfold *u, const char *s, size_t word)
{
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		if (starts[i][0] == *s && !strncmp(s, starts[i], star(starts[i])))
			return true;
	if (str_starts(s, header))
		return s[sizeof(header) - 1] == ' ';	/* a traceback that ends here begins with this line's prefix */
	if (frame_length(s) || (str_starts(s, "[rank") && isdigit((unsigned char)s[5]) && strstr(s, "]: ")))
		return true;
	if (word > 1 && s[word - 1] == ':')
		return starts_assertion(s, word) || (u->folds && starts_exception(s, word));
	return u->folds && word > 1 && strspn(s, "^~") == word;
}

/* Where the piece that begins at `s` ends. */
static const char *piece_end(struct unfold *u, const char *s)
{
	const char *at = s + word_length(s);

	for (size_t word;; at += word) {
		at += strspn(at, " ");
		word = word_length(at);
		if (!*at || starts_line(u, at, word))
			return at;
		if (at - s > 12 && at[-2] == '.' && !strncmp(at - 10, "` failed. ", 10))
			return at;
	}
}

size_t unfold_next(struct unfold *u, const char **piece, size_t *indent)
{
	const char *s = u->at, *end;
	size_t frame;
	int source = u->source;

	u->source = 0;
	*piece = s;
	*indent = 0;
	if (!*s)
		return 0;
	s += strspn(s, " ");
	frame = frame_length(s);
	if (str_starts(s, header) && s[sizeof(header) - 1] == ' ') {
		end = s + sizeof(header) - 1;
		u->folds++;
	} else if (frame && (s[frame] == ' ' || u->folds)) {
		end = s + frame;
		u->folds++;
		u->source = 1;
		*indent = 2;
	} else {
		end = piece_end(u, s);
		*indent = source || *s == '^' || *s == '~' ? 4 : 0;
		if (end == s + strlen(s) && *piece == u->at && !u->folds)
			*indent = (size_t)(s - u->at);	/* nothing was folded: as it was */
	}
	*piece = s;
	u->at = end + strspn(end, " ");
	while (end > s && end[-1] == ' ')
		end--;
	return (size_t)(end - s);
}
