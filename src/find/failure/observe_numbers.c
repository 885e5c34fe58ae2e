/* SPDX-License-Identifier: Apache-2.0
 * NaN or infinity that the program had read before it failed.
 */
#include "find/failure/not_finite.h"
#include "find/failure/observe.h"
#include "read/recording/trace.h"

void observe_numbers(struct casefile *c, struct trace *t)
{
	struct not_finite x;

	if (!not_finite_first(t, &x, c->pool))
		return;
	fact_set_text(c, FACT_number_value, x.value);
	fact_set_number(c, FACT_number_times, x.times);
	if (x.kernel)
		fact_set_text(c, FACT_number_kernel, x.kernel);
	if (x.turn)
		fact_set_text(c, FACT_number_turn, x.turn);
	c->line[LINE_number] = line_of_place(c, t, &x.read);
	if (x.copied || x.computed)
		c->line[LINE_number_made] = line_of_place(c, t, &x.made);
	fact_set_text(c, FACT_number_words, not_finite_words(t, &x, c->pool));
	case_evidence(c, RECORDING_OBSERVER,
		      pool_printf(c->pool, "the program had read %s", fact_text(c, FACT_number_words)));
}
