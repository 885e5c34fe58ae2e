/* SPDX-License-Identifier: Apache-2.0
 * How the memory of a program grows with a size, from recordings of several sizes: what it would ask for at another one.
 *
 * A request of the recording of the largest size is matched with its counterparts in the others: the same line, and as
 * often before. Through these goes a curve. The order of requests and frees is that of the largest size.
 */
#ifndef CUWHY_GROWTH_H
#define CUWHY_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay;
struct trace;

#define GROWTH_SIZES_MAX 16

/* Why what is constructed may be wrong. */
#define GROWTH_DOUBTS(X)                                                                                                    \
	X(TWO, "two recordings: that each request grows like a line is assumed; a third recording checks it")               \
	X(CURVE, "some requests grow like a parabola, through three recordings; a fourth one checks it")                    \
	X(BENT, "some requests follow neither a line nor a parabola")                                                       \
	X(APART, "the recordings did not ask for memory at the same lines equally often")                                   \
	X(ONE, "one recording: what grows with the size is told by the code that asked for it")                             \
	X(FAR, "it is more than four times the largest size that was recorded")

enum growth_doubt {
#define X(name, text) GROWTH_##name,
	GROWTH_DOUBTS(X)
#undef X
	GROWTH_DOUBT_COUNT
};

const char *growth_doubt_text(enum growth_doubt doubt);

struct growth_point {
	double bytes;
	double error;			/* by how much that may be wrong; sizes are recorded in units of CW_EVENT_UNIT */
	unsigned doubts;		/* bits by enum growth_doubt */
};

/* What is asked for at a size, from what is asked for at n (two or more) others. The simplest curve that goes through all of
 * them: a constant, a line, a parabola. A request never shrinks: where a line would begin below 0, it is a parabola. */
struct growth_point growth_point(const double *size, const double *bytes, size_t n, double at);

struct growth_recording {
	double size;
	const struct replay *replay;
	const struct trace *trace;
};

struct growth {
	const struct replay *largest;
	double size[GROWTH_SIZES_MAX];	/* ascending */
	size_t n_sizes;
	double *bytes;			/* of each request, at each size */
	size_t n;			/* requests */
	size_t apart;			/* requests without a counterpart, in any recording */
	unsigned doubts;
	uint8_t *alone;			/* of one recording: enum growth_alone for each request; NULL: of several */
};

/* Of two or more recordings, by ascending size, which stay the caller's. */
void growth_init(struct growth *g, const struct growth_recording *list, size_t n);
void growth_release(struct growth *g);

/* Of one recording, of that size (0: not known, and all of it is GROWTH_WHOLE), by what each request is for: parameters, gradients,
 * optimizer state and workspaces stay, activations and inputs grow like the size. From step `turn` on, everything belongs to turns of a
 * loop; SIZE_MAX: that is not known. */
enum growth_alone { GROWTH_STAYS, GROWTH_MAY, GROWTH_GROWS };
#define GROWTH_WHOLE (1u << 20)
void growth_init_alone(struct growth *g, const struct replay *r, uint64_t size, size_t turn);

/* As it would have been at that size. `lean` 1 or -1: as much more, or less (below a size that was recorded), as it may be wrong. Free it with replay_free. */
struct replay *growth_at(const struct growth *g, double size, int lean);

#endif
