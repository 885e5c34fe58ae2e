/* SPDX-License-Identifier: Apache-2.0
 * When a program failed (see failed_at.h).
 */
#include "find/words/failed_at.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/text/said.h"

/* The number after a word: "step 1200", "Step: 1200", "global_step=1200", "Iter [ 1200/5000]", "'epoch': 0.12"; -1: there is none. */
static double number_after(const char *s, enum said_list words, bool whole, const char **end)
{
	const char *n;

	for (const char *at = s; (at = says_on(s, at, words, &n)) != NULL; at++) {
		const char *from = n;
		char *after;
		double number;

		if (at > s && (at[-1] == '_' || at[-1] == '-'))	/* "max_steps", "warmup-steps" */
			continue;
		n += strspn(n, "'\")");
		n += strspn(n, " :=[(#|");
		if (!isdigit((unsigned char)*n) || n == from)
			continue;
		number = strtod(n, &after);
		if (whole && number != floor(number))
			continue;
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
	const char *epoch;

	if (!says(s, SAID_of_training))
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
	const char *end = "";
	double step = bar_step(s), batch;

	if (step < 0)
		step = number_after(s, SAID_step, true, &end);
	if (step < 0 && (batch = number_after(s, SAID_batch, true, &end)) >= 0)	/* also how many samples it has */
		step = *end == '/' || says(s, SAID_epoch) ? batch : -1;
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
		if (says(line, SAID_preparation))
			continue;
		step = step_of(line);
		epoch = number_after(line, SAID_epoch, false, &end);
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
