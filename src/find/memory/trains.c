/* SPDX-License-Identifier: Apache-2.0
 * Does a program train, judging by its code? (see trains.h)
 */
#include "find/memory/trains.h"

#include <string.h>

#include "base/str.h"
#include "case/line.h"
#include "case/source.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

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

enum trains stack_trains_by_name(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++) {
		enum owner o = stack_owner(t, s, i);
		enum trains name = trains_by_name(function_base(trace_string(t, s->frame[i].function)));

		if (name != TRAINS_UNKNOWN && (o == OWNER_USER || o == OWNER_LIBRARY))
			return name;
	}
	return TRAINS_UNKNOWN;
}

enum trains stack_trains(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	enum trains all = stack_trains_by_name(t, stack);

	if (all != TRAINS_UNKNOWN)
		return all;
	for (uint32_t i = 0; s && i < s->n; i++) {
		const char *file = trace_string(t, s->frame[i].file);
		int trains;

		if (stack_owner(t, s, i) != OWNER_USER)
			continue;
		trains = source_trains(trace_sources(t), file);
		if (trains)
			return trains > 0 ? TRAINS_YES : TRAINS_UNKNOWN;
		all = TRAINS_NO;
	}
	return all;
}
