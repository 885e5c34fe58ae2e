/* SPDX-License-Identifier: Apache-2.0
 * What GPU memory contained when a kernel ran, without a dump of it: what the program had copied there, as far as nothing can have
 * changed it since, and what follows from that.
 */
#ifndef CUWHY_RECALL_H
#define CUWHY_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_launch;
struct recall;
struct trace;

struct recall *recall_open(struct trace *t);
void recall_close(struct recall *r);

/* From here on, memory is as it was for this launch: at its own time, or, of a captured one, when its graph ran. */
void recall_launch(struct recall *r, const struct cw_launch *l, uint64_t when);

/* False where that is not known. */
bool recall_memory(void *recall, uint64_t address, void *to, size_t n);

/* Where these bytes come from. */
struct recalled {
	uint32_t made;		/* the stack of what made the tensor, or changed this part of it last; 0 = not known */
	uint32_t copied;	/* and of the copy from the host that brought what it was made from; 0 = not known */
	bool contents;		/* they are known, */
	bool sure;		/* and nothing can have changed them */
};
void recall_origin(struct recall *r, uint64_t address, size_t n, struct recalled *to);

#endif
