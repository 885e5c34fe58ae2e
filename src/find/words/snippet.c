/* SPDX-License-Identifier: Apache-2.0
 * What was typed and what it printed (see env.h).
 */
#include "find/words/env.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

static const char *const typed[SNIPPET_COUNT] = {
	[SNIPPET_AVAILABLE] = "torch.cuda.is_available()",
	[SNIPPET_DEVICE_COUNT] = "torch.cuda.device_count()",
	[SNIPPET_TORCH_CUDA] = "torch.version.cuda",
	[SNIPPET_TORCH_HIP] = "torch.version.hip",
	[SNIPPET_CAPABILITY] = "torch.cuda.get_device_capability(",
	[SNIPPET_ARCHS] = "torch.cuda.get_arch_list()",
};

const char *snippet_typed(enum snippet_id id)
{
	return typed[id];
}

/* ">>> ", "In [3]: ", "$ ", "Out[3]: " */
static const char *skip_prompt(const char *s, bool *input)
{
	const char *colon = strchr(s, ':');

	*input = str_starts(s, ">>> ") || str_starts(s, "In [") || str_starts(s, "$ ") || str_starts(s, "... ");
	if (str_starts(s, ">>> ") || str_starts(s, "... "))
		return s + 4;
	if ((str_starts(s, "In [") || str_starts(s, "Out[")) && colon)
		return colon + 1 + strspn(colon + 1, " ");
	return s;
}

/* Does it look like something that the expression can print? */
static bool is_answer(enum snippet_id id, const char *s)
{
	switch (id) {
	case SNIPPET_AVAILABLE: return str_starts(s, "True") || str_starts(s, "False");
	case SNIPPET_DEVICE_COUNT:
		return isdigit((unsigned char)*s) && strspn(s, "0123456789") <= 2 && !s[strspn(s, "0123456789")];
	case SNIPPET_CAPABILITY: return s[0] == '(' && isdigit((unsigned char)s[1]);
	case SNIPPET_ARCHS: return s[0] == '[';
	default: return str_starts(s, "None") || isdigit((unsigned char)s[*s == '\'' || *s == '"']);
	}
}

static void keep_answer(struct snippets *s, enum snippet_id id, const char *answer, size_t len, uint64_t number)
{
	struct snippet *a = &s->list[s->n < SNIPPETS_MAX ? s->n++ : SNIPPETS_MAX - 1];

	*a = (struct snippet){.id = id, .line = number};
	str_copy(a->answer, len + 1 < sizeof(a->answer) ? len + 1 : sizeof(a->answer), answer);
}

/* The answers of a line to what the line before asked: all of it, or a word each. */
static void read_answers(struct snippets *s, const char *line, uint64_t number)
{
	for (size_t i = 0; i < s->n_asked; i++) {
		size_t len = s->n_asked > 1 ? strcspn(line, " ,") : strlen(line);
		char word[160];

		str_copy(word, len + 1 < sizeof(word) ? len + 1 : sizeof(word), line);
		if (is_answer(s->asked[i], word))
			keep_answer(s, s->asked[i], word, strlen(word), number);
		line += len;
		line += strspn(line, " ,");
	}
	s->n_asked = 0;
}

/* "is_available(): False", "is_available()=False", "is_available()  # False", "is_available() -> False"; not a comparison. */
static bool answered_beside(struct snippets *s, enum snippet_id id, const char *after, uint64_t number)
{
	const char *answer = after + strspn(after, ")}\"'` ");

	if (str_starts(answer, "->"))
		answer += 2;
	else if (*answer && strchr(":=#,", *answer) && answer[1] != '=')
		answer++;
	else
		return false;
	answer += strspn(answer, " ");
	if (!is_answer(id, answer))
		return false;
	keep_answer(s, id, answer, strcspn(answer, "#\n"), number);
	return true;
}

static void read_asked(struct snippets *s, const char *line, uint64_t number)
{
	const char *at[SNIPPET_ASKED];

	for (int id = 0; id < SNIPPET_COUNT; id++) {
		const char *found = strstr(line, typed[id]);
		size_t i = s->n_asked;

		if (!found || i == SNIPPET_ASKED ||
		    answered_beside(s, (enum snippet_id)id, found + strlen(typed[id]), number))
			continue;
		for (; i > 0 && at[i - 1] > found; i--) {	/* in the order of the line */
			at[i] = at[i - 1];
			s->asked[i] = s->asked[i - 1];
		}
		at[i] = found;
		s->asked[i] = (enum snippet_id)id;
		s->n_asked++;
	}
}

void snippets_line(struct snippets *s, const char *line, uint64_t number)
{
	bool input;

	if (!s->n_asked && !strstr(line, "torch."))
		return;
	line = skip_prompt(line, &input);
	if (s->n_asked && !input)
		read_answers(s, line, number);
	s->n_asked = 0;
	if (strstr(line, "torch."))
		read_asked(s, line, number);
}

const struct snippet *snippets_find(const struct snippets *s, enum snippet_id id)
{
	for (size_t i = s->n; i-- > 0;)
		if (s->list[i].id == id)
			return &s->list[i];
	return NULL;
}
