/* SPDX-License-Identifier: Apache-2.0
 * When a program failed (see failed_at.h).
 */
#include "find/words/failed_at.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Bars of what comes before the work: no steps of it. */
static bool is_preparation(const char *s)
{
	static const char *const words[] = {"shard",	 "loading", "download", "fetching", "tokeniz",
					    "map:",	 "map (",   "extract",	"filter",   "resolving",
					    "unpack",	 "compil",  "scanning", "caching",  "sanity",
					    "capturing", " : run ", " : copy ", " : from "};

	for (size_t i = 0; i < COUNT(words); i++)
		if (str_find_case(s, words[i]))
			return true;
	return false;
}

/* The number after a word: "step 1200", "Step: 1200", "global_step=1200", "Iter [ 1200/5000]", "'epoch': 0.12"; -1: there is none. */
static double number_after(const char *s, const char *word, const char **end)
{
	for (const char *at = s; (at = str_find_case(at, word)) != NULL; at++) {
		const char *n = at + strlen(word);
		char *after;
		double number;

		if (at > s && (isalpha((unsigned char)at[-1]) || at[-1] == '_' || at[-1] == '-'))	/* "max_steps", "warmup-steps" */
			continue;
		n += strspn(n, "'\")");
		n += strspn(n, " :=[(#|");
		if (!isdigit((unsigned char)*n) || n == at + strlen(word))
			continue;
		number = strtod(n, &after);
		*end = after;
		return number;
	}
	return -1;
}

/* "45%|####      | 120/265 [": the steps that are done. */
static double bar_step(const char *s)
{
	const char *bar = strstr(s, "%|");
	const char *at = bar ? strchr(bar + 2, '|') : NULL;
	char *end;
	double step;

	if (!at || !isdigit((unsigned char)at[1 + strspn(at + 1, " ")]))
		return -1;
	step = strtod(at + 1, &end);
	return *end == '/' ? step : -1;
}

/* "[ 120/1000]" of a training, not of a build */
static double bracket_step(const char *s)
{
	static const char *const words[] = {"loss", "epoch", "eta", "lr"};
	const char *epoch;
	bool training = false;

	for (size_t i = 0; i < COUNT(words); i++)
		training |= str_find_case(s, words[i]) != NULL;
	if (!training)
		return -1;
	epoch = str_find_case(s, "epoch [");
	for (const char *at = epoch ? epoch + strlen("epoch [") : s; (at = strchr(at, '[')) != NULL; at++) {
		const char *n = at + 1 + strspn(at + 1, " ");
		char *end;
		double step;

		if (!isdigit((unsigned char)*n))
			continue;
		step = strtod(n, &end);
		if (*end == '/' && isdigit((unsigned char)end[1]) && end[1 + strspn(end + 1, "0123456789")] == ']')
			return step;
	}
	return -1;
}

static double step_of(const char *s)
{
	static const char *const words[] = {"step", "global_step", "iter", "iteration", "batch"};
	const char *end = "";
	double step = bar_step(s);

	for (size_t i = 0; i < COUNT(words) && step < 0; i++) {
		bool batch = !strcmp(words[i], "batch");	/* also how many samples it has */

		step = number_after(s, words[i], &end);
		if (step >= 0 && (step != floor(step) || (batch && *end != '/' && !str_find_case(s, "epoch"))))
			step = -1;
	}
	return step >= 0 ? step : bracket_step(s);
}

struct failed_at failed_at(const char *before)
{
	struct failed_at f = {.step = -1, .epoch = -1};
	double most = -1;
	bool later = false;

	for (const char *s = before; *s; s += strcspn(s, "\n"), s += *s == '\n') {
		char line[400];
		const char *end = "";
		size_t len = strcspn(s, "\n");
		double step, epoch;

		str_copy(line, len + 1 < sizeof(line) ? len + 1 : sizeof(line), s);
		if (is_preparation(line))
			continue;
		step = step_of(line);
		epoch = number_after(line, "epoch", &end);
		if (step < 0 && epoch < 0)
			continue;
		f.step = step >= 0 ? step : f.step;
		f.epoch = epoch >= 0 ? epoch : f.epoch;
		most = step > most ? step : most;
		later |= epoch > 1 || (epoch == 1 && *end != '/');	/* counted from 0, it may be the second one */
		f.line = s;
		f.len = len;
	}
	if (most > 1 || later)
		f.first = FAILED_LATER;
	else if (most >= 0)
		f.first = FAILED_FIRST;
	return f;
}
