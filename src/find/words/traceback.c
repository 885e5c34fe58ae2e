/* SPDX-License-Identifier: Apache-2.0
 * Frames of tracebacks (see log.h).
 */
#include "find/words/log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static struct raw_frame *new_frame(struct traceback *t)
{
	struct raw_frame *f = &t->frame[t->n++ % TRACEBACK_FRAMES_MAX];

	f->file[0] = f->function[0] = f->source[0] = '\0';
	f->line = 0;
	return f;
}

static void copy_bounded(char *to, size_t size, const char *s, size_t len)
{
	len = len < size ? len : size - 1;
	memcpy(to, s, len);
	to[len] = '\0';
}

/* Rich: "train.py:12 in step", inside a box. Notebooks: "~/x/train.py in step(a, b)" and "<ipython-input-3-0a> in <module>",
 * whose line follows as "---> 12 code". */
static bool read_other_frame(struct traceback *t, const char *s)
{
	const char *in = strstr(s, " in "), *colon;
	struct raw_frame *f;

	if (!in || in == s || in - s > 200 || memchr(s, ' ', (size_t)(in - s)))
		return false;
	colon = in;
	while (colon > s && isdigit((unsigned char)colon[-1]))
		colon--;
	if (colon < in && colon > s + 3 && colon[-1] == ':' && !strncmp(colon - 4, ".py:", 4)) {
		f = new_frame(t);
		copy_bounded(f->file, sizeof(f->file), s, (size_t)(colon - 1 - s));
		f->line = (uint32_t)strtoul(colon, NULL, 10);
	} else if ((in - s > 3 && !strncmp(in - 3, ".py", 3)) || str_starts(s, "<ipython-input-") ||
		   strstr(s, "/ipykernel_")) {
		f = new_frame(t);
		copy_bounded(f->file, sizeof(f->file), s, (size_t)(in - s));
	} else {
		return false;
	}
	copy_bounded(f->function, sizeof(f->function), in + 4, strcspn(in + 4, "( "));
	return true;
}

/* "---> 12     y = f(x)", "❱  12 y = f(x)": the line of the frame above. */
bool traceback_arrow(struct traceback *t, const char *s)
{
	struct raw_frame *f = t->n ? &t->frame[(t->n - 1) % TRACEBACK_FRAMES_MAX] : NULL;
	size_t n = strspn(s, "-");
	char *end;

	if (n >= 2 && s[n] == '>')
		s += n + 1;
	else if (!strncmp(s, "\xe2\x9d\xb1", 3))
		s += 3;
	else
		return false;
	if (!f)
		return true;
	f->line = (uint32_t)strtoul(s, &end, 10);
	end += strspn(end, " \xe2\x94\x82");	/* Rich draws a bar for every level */
	copy_bounded(f->source, sizeof(f->source), end, strlen(end));
	return true;
}

bool traceback_context(const struct traceback *t, const char *s)
{
	size_t digits = strspn(s, "0123456789"), spaces = strspn(s + digits, " ");

	return digits && spaces && (t->n || str_starts(s + digits + spaces, "\xe2\x94\x82"));
}

/* IPython: "Cell In[2], line 2, in step(x)", "Cell In [2], line 2"; older ones "Input In [2], in <cell line: 1>()", whose line follows with an
 * arrow. */
static bool read_cell(struct traceback *t, const char *s)
{
	const char *close = strchr(s, ']'), *line, *in;
	struct raw_frame *f;

	if ((!str_starts(s, "Cell In") && !str_starts(s, "Input In")) || !close || close[1] != ',')
		return false;
	line = strstr(close, ", line ");
	in = strstr(close, ", in ");
	if (!line && !in)
		return false;
	f = new_frame(t);
	copy_bounded(f->file, sizeof(f->file), s, (size_t)(close + 1 - s));
	f->line = line ? (uint32_t)strtoul(line + 7, NULL, 10) : 0;
	if (in)
		copy_bounded(f->function, sizeof(f->function), in + 5, strcspn(in + 5, "("));
	return true;
}

/* `File "train.py", line 12, in step`; IPython: `File train.py:12, in step(x)`. */
bool traceback_frame(struct traceback *t, const char *s)
{
	const char *end, *line, *in;
	struct raw_frame *f;

	if (str_starts(s, "File \"")) {
		s += 6;
		end = strstr(s, "\", line ");
		if (!end)
			return false;
		line = end + 8;
	} else if (str_starts(s, "File ") && strchr(s, ':') && strstr(s, ", in ")) {
		s += 5;
		end = strstr(s, ", in ");
		while (end > s && *end != ':')
			end--;
		line = end + 1;
	} else {
		return read_cell(t, s) || read_other_frame(t, s);
	}
	f = new_frame(t);
	copy_bounded(f->file, sizeof(f->file), s, (size_t)(end - s));
	f->line = (uint32_t)strtoul(line, NULL, 10);
	in = strstr(line, ", in ");
	if (in)
		copy_bounded(f->function, sizeof(f->function), in + 5, strcspn(in + 5, "("));
	return true;
}

void traceback_source(struct traceback *t, const char *s)
{
	struct raw_frame *f = t->n ? &t->frame[(t->n - 1) % TRACEBACK_FRAMES_MAX] : NULL;

	if (strspn(s, "^~ ") == strlen(s) || *s == '[')
		return;
	if (!f || f->source[0])
		f = new_frame(t);
	copy_bounded(f->source, sizeof(f->source), s, strlen(s));
}

size_t traceback_keep(const struct traceback *t, struct pool *pool, struct text_frame **frames)
{
	size_t n = t->n < TRACEBACK_FRAMES_MAX ? t->n : TRACEBACK_FRAMES_MAX;

	*frames = n ? pool_alloc(pool, n * sizeof(**frames)) : NULL;
	for (size_t i = 0; i < n; i++) {
		const struct raw_frame *f = &t->frame[(t->n - n + i) % TRACEBACK_FRAMES_MAX];

		(*frames)[i] = (struct text_frame){
			.file = f->file[0] ? pool_strdup(pool, f->file) : NULL,
			.function = f->function[0] ? pool_strdup(pool, f->function) : NULL,
			.source = f->source[0] ? pool_strdup(pool, f->source) : NULL,
			.line = f->line,
		};
	}
	return n;
}
