/* SPDX-License-Identifier: Apache-2.0
 * How much more would the program have asked for?
 *
 * What would have let one request through need not have let the program go on. Two things are known of what was to come: if the
 * program once had more allocated than with this request, it has been through all of that; and a loop that has added memory in the
 * turns before the failure would have added as much in the next one. Something that is enough for fewer turns than the loop has made
 * is no reason why it failed: nothing says that this was nearly the end.
 */
#ifndef CUWHY_FURTHER_H
#define CUWHY_FURTHER_H

#include "find/memory/kinds.h"

struct further {
	bool most_ever;			/* with this request, more than the program ever had */
	uint64_t turn;			/* bytes that a turn of the loop around it adds that has added the most */
	uint32_t turns;			/* that it has made before this one */
	uint64_t added;			/* bytes that it has added in all of these */
	struct place loop;		/* where that loop begins */
};

/* `allocated`: bytes in live tensors when `request` more were asked for. */
void further_find(struct further *x, const struct trace *t, const struct moment *m, const struct cw_failure *f,
		  uint64_t allocated, uint64_t request);

#endif
