/* SPDX-License-Identifier: Apache-2.0
 * What wrote to a piece of GPU memory: copies, fills and kernels. Only for recall.c and recall_launch.c.
 */
#ifndef CUWHY_RECALL_WRITE_H
#define CUWHY_RECALL_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_call;
struct cw_copy;
struct cw_launch;
struct trace;

/* Of an element. As PyTorch numbers them: kb/torch_types.def. */
struct element_type { uint8_t bytes; bool real, is_signed; };

enum made_how {
	MADE_UNKNOWN,	/* by a kernel that we do not know, or not all of it */
	MADE_FILL,	/* each element is `fill` */
	MADE_SAME,	/* the bytes of a tensor without gaps */
	MADE_CAST,	/* its numbers, in another type */
	MADE_SHIFT,	/* its whole numbers and `add` */
	MADE_RANGE,	/* `first`, `first` + `add` and so on */
};

struct made {
	enum made_how how;
	uint64_t to, bytes;	/* all that it can have written */
	uint64_t from;
	struct element_type of, in;	/* what was made, and what it was made from */
	uint8_t fill[16];
	int64_t first, add;
};

enum touch { TOUCH_READS, TOUCH_MAYBE, TOUCH_WRITES };

/* What a launch does with the memory that the pointer at this byte of its parameters leads into. */
enum touch launch_touches(struct trace *t, const struct cw_launch *l, unsigned at, struct made *m);

/* Is what is at this byte of its parameters a pointer for sure, and not what was there before? */
bool launch_points(struct trace *t, const struct cw_launch *l, unsigned at);

/* A tensor that an elementwise kernel over two of them, without gaps, was given: 1 or 2; 0 is the result. False: it is no such kernel, or of another
 * type than `of`, which both of them have. */
struct operand { uint64_t at, n; struct element_type of; };
bool launch_operand(struct trace *t, const struct cw_launch *l, unsigned which, struct operand *to);

/* Numbers as they are in memory. False: of a type that is not known, or no such number. */
struct number { bool real; int64_t whole; double part; };
bool number_read(struct element_type type, const uint8_t *raw, struct number *to);
bool number_write(struct element_type type, const struct number *n, uint8_t *raw);

#endif
