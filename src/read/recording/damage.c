/* SPDX-License-Identifier: Apache-2.0
 * A damaged recording, in words (see damage.h).
 */
#include "read/recording/damage.h"

#include <inttypes.h>

#include "base/pool.h"
#include "read/recording/trace.h"

/* Cut: the file ends early. Changed: the seal is broken, though nothing is missing. */
char *damage_words(const struct trace *t, struct pool *pool)
{
	const struct trace_damage *d = trace_damage(t);
	char *text = NULL;

	if (d->missing)
		text = pool_printf(
			pool, "the recording is cut short: the last %" PRIu64 " of its %" PRIu64 " bytes are missing%s",
			d->missing, d->whole, d->failures_cut ? ", failures among them" : "");
	else if (d->changed)
		text = pool_printf(pool, "the recording is damaged: its bytes are not those that 'cuwhy run' stored");
	if (d->impossible)
		text = pool_printf(pool, "%s%s%" PRIu64 " figure%s in it cannot be true and %s left out",
				   text ? text : "the recording is damaged", text ? "; " : ": ", d->impossible,
				   d->impossible == 1 ? "" : "s", d->impossible == 1 ? "was" : "were");
	return text;
}

bool damage_hides_failures(const struct trace *t)
{
	const struct trace_damage *d = trace_damage(t);

	return d->failures_cut || (d->changed && !d->missing) || d->missing > d->whole - sizeof(struct cw_header);
}
