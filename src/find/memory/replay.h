/* SPDX-License-Identifier: Apache-2.0
 * A memory trace (events.h) given to the model of PyTorch's allocator (allocator/allocator.h): the same again, which must end in
 * the same addresses, and then on another card or with other settings.
 *
 * An answer is exact only if the same again was the same, and nothing that is unknown could change it.
 */
#ifndef CUWHY_REPLAY_H
#define CUWHY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/settings.h"

struct err;
struct replay;
struct trace;

/* Why an answer may be wrong. */
#define REPLAY_DOUBTS(X)                                                                                              \
	X(RELEASE, "this release of PyTorch was not compared with cuwhy's model of its allocator")                   \
	X(UNMODELED, "an option of PyTorch's allocator is in use that cuwhy's model of it does not have")             \
	X(BEFORE, "it depends on what happened before the oldest event that was kept: record with --memory-trace")         \
	X(LOST, "events are missing in the memory trace")                                                             \
	X(CONTRADICTION, "events of the memory trace contradict each other")                                          \
	X(DAMAGED, "the recording is cut short or damaged")                                                          \
	X(DIFFERS, "played back with its own settings, the recording did not come out the same")                      \
	X(SIZES, "the sizes that the program asked for were not recorded")                                            \
	X(ADDRESSES, "it depends on the addresses that the driver would give out")                                    \
	X(OUTSIDE, "what was in use besides PyTorch's memory was not recorded")                                       \
	X(BEYOND, "the recorded program ran out of memory: what it would have done after that is not known")          \
	X(CARD, "it depends on how much of that card a CUDA context takes, which is an estimate")                      \
	X(FALLBACK, "what does not fit is asked for by a convolution, which may do with a smaller workspace")            \
	X(LATER, "the program was ended after its first optimizer steps: what it does later is not known (--steps all)") \
	X(RISING, "the program was ended, and its memory was still rising (--steps N or all sees more)")              \
	X(LIMIT, "the program limits its own share of the card (set_per_process_memory_fraction)")

enum replay_doubt {
#define X(name, text) REPLAY_##name,
	REPLAY_DOUBTS(X)
#undef X
	REPLAY_DOUBT_COUNT
};

const char *replay_doubt_text(enum replay_doubt doubt);

/* What the recording was made on, and what it did. */
struct replay_facts {
	const struct allocator_release *release;
	struct allocator_settings settings;
	const char *conf;		/* their text, "" = none */
	uint64_t total;			/* the card's memory */
	uint64_t outside;		/* the most that was in use besides PyTorch's memory; 0 = not known */
	uint64_t steps;			/* blocks allocated and freed */
	uint64_t peak_allocated, peak_reserved;	/* of the recorded program, as far as events are known */
	uint64_t same;			/* how many steps came out the same, played back again: all, or fewer */
	unsigned doubts;		/* bits by enum replay_doubt: what no question can avoid */
	bool ran_out;			/* the recorded program did */
	uint64_t before;		/* the events begin late: about how many are not known */
	uint64_t since;			/* and the ticks of the first one that is; 0: all are known */
};

struct replay_question {
	struct allocator_settings settings;
	uint64_t total;			/* the card's memory */
	int64_t outside_more;		/* how much more would be in use besides PyTorch's memory */
	uint64_t unsure;		/* by how much that may be wrong */
	bool fall_back;			/* convolutions do without a workspace that does not fit: the least that they need is not known */
};

struct replay_failure {
	uint64_t step;			/* from 1 */
	uint64_t request;		/* bytes that the program asked for; 0: not PyTorch's request */
	uint64_t free;			/* what the card had left then */
	uint32_t stack;			/* of the recording: who asked; 0 = not known */
};

struct replay_answer {
	bool fits;
	unsigned doubts;		/* 0: whether it fits is exact */
	unsigned figures;		/* likewise, about the figures only */
	uint64_t peak_allocated, peak_reserved;	/* until it failed */
	uint64_t spare;			/* the least that the card had free; 0 when the cache had to be released */
	uint64_t retries;		/* how often it was */
	uint64_t beside;		/* fits: the least that was free beside a request with which the recorded program ran out */
	struct replay_failure failure;
};

/* Over the steps of a playback, in intervals of equally many: the most of each interval, so that no peak is lost. */
#define REPLAY_INTERVALS 512

struct replay_over_time {
	size_t n;			/* intervals until the end, or until it failed */
	uint64_t allocated[REPLAY_INTERVALS], reserved[REPLAY_INTERVALS];
};

/* The events of one device, made ready to be played back any number of times. After that, the bytes are no longer needed, but the
 * trace is. NULL with `e` filled: not a trace of events, or this PyTorch or its settings cannot be played back. */
struct replay *replay_new(struct trace *t, const void *bytes, size_t len, int device, struct err *e);
void replay_free(struct replay *r);

const struct replay_facts *replay_facts(const struct replay *r);

/* The question that changes nothing. */
struct replay_question replay_same(const struct replay *r);

/* Its own settings, and these words on top, as in PYTORCH_CUDA_ALLOC_CONF. -EINVAL with `e` filled: PyTorch would refuse them. */
int replay_settings(const struct replay *r, const char *words, struct allocator_settings *s, struct err *e);

void replay_ask(const struct replay *r, const struct replay_question *q, struct replay_answer *a);
void replay_ask_over_time(const struct replay *r, const struct replay_question *q, struct replay_answer *a,
			  struct replay_over_time *o);

/* The intervals of the recording: when they began, in ticks. */
struct replay_intervals {
	const uint64_t *began;
	size_t n, steps;		/* so many steps in each */
};
struct replay_intervals replay_intervals(const struct replay *r);

/* What is left for PyTorch when the rest takes the most that it does. */
uint64_t replay_room(const struct replay *r, const struct replay_question *q);

/* What the program asked PyTorch's allocator for, in order; the list is the caller's (free). Requests that failed are not in it. */
struct replay_request {
	uint64_t bytes;
	uint32_t stack;			/* of the recording: who asked; 0 = not known */
	bool brief;			/* freed before the next request, as workspaces are */
};
size_t replay_requests(const struct replay *r, struct replay_request **list);

/* The same program, had its requests been for so many bytes: one number for each of replay_requests. It needs the trace, too. */
struct replay *replay_resized(const struct replay *r, const uint64_t *bytes);

#endif
