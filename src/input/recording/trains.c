/* SPDX-License-Identifier: Apache-2.0
 * Does a program train, judging by its code? (see trains.h)
 */
#include "input/recording/trains.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "case/line.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

#define LINES_MAX 200000	/* per file: nobody writes more by hand */

static bool begins_with_any(const char *name, const char *const *words)
{
	while (*name == '_')
		name++;
	for (; *words; words++)
		if (str_starts(name, *words))
			return true;
	return false;
}

static enum trains trains_by_name(const char *function)
{
	static const char *const training[] = {"train", "fit", "inner_training_loop", NULL};
	static const char *const other[] = {"eval", "valid", "predict", "infer", "generate", "test", NULL};

	if (begins_with_any(function, training))
		return TRAINS_YES;
	return begins_with_any(function, other) ? TRAINS_NO : TRAINS_UNKNOWN;
}

static enum trains by_text(const char *file, const char *cwd)
{
	FILE *in = file[0] == '<' ? NULL : source_open(file, cwd);
	enum trains found = in ? TRAINS_NO : TRAINS_UNKNOWN;
	char line[4096];

	for (int n = 0; in && n < LINES_MAX && found == TRAINS_NO && fgets(line, sizeof(line), in); n++)
		if (strstr(line, ".backward(") || strstr(line, "autograd.grad("))
			found = TRAINS_YES;
	if (in)
		fclose(in);
	return found;
}

enum trains stack_trains(const struct trace *t, uint32_t stack)
{
	const char *cwd = trace_header(t)->cwd;
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	enum trains all = TRAINS_UNKNOWN;

	for (uint32_t i = 0; s && i < s->n; i++) {
		enum owner o = stack_owner(t, s, i);
		enum trains name = trains_by_name(function_base(trace_string(t, s->frame[i].function)));

		if (name != TRAINS_UNKNOWN && (o == OWNER_USER || o == OWNER_LIBRARY))
			return name;
	}
	for (uint32_t i = 0; s && i < s->n; i++) {
		const char *file = trace_string(t, s->frame[i].file);
		enum trains text;

		if (stack_owner(t, s, i) != OWNER_USER)
			continue;
		text = by_text(file, cwd);
		if (text != TRAINS_NO)
			return text;
		all = TRAINS_NO;
	}
	return all;
}
