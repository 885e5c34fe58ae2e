/* SPDX-License-Identifier: Apache-2.0
 * The pieces of memory of one moment, and what each of them is for: parameters, gradients, activations, …
 */
#ifndef CUWHY_KINDS_H
#define CUWHY_KINDS_H

#include "base/map.h"
#include "case/ledger.h"
#include "find/memory/pieces.h"

struct cw_site;
struct playback;

/* Sites and autograd nodes of a recording, made ready for look-ups. */
struct kinds {
	struct trace *trace;
	const struct cw_site *site;
	const uint32_t *order;		/* indices of `site`, sorted by caller */
	size_t n;
	const uint64_t *nodes;		/* lines_hash of where autograd nodes were created, sorted */
	size_t n_nodes;
	uint64_t last_forward;		/* ticks of the last tensor allocated outside backward */
	uint32_t library;		/* offset of the last library that was named */
	const char *library_name;
	struct about *memo;		/* stacks are few, blocks are many */
	uint32_t memo_mask;
};

/* What the stacks of a piece reveal. */
struct about {
	uint32_t stack, forward_stack, site;
	uint16_t memory;		/* enum cw_memory */
	int device;
	bool known;
	enum ledger_kind kind;		/* by the code only */
	bool backward;			/* allocated while backward ran */
	bool node;			/* autograd nodes were created at that stack */
	uint64_t lines;			/* lines_hash of its stack */
	const struct cw_site *asked;	/* NULL = not known */
	struct place place;
};

struct moment;

/* `in_backward`: it may be running at that moment. */
void kinds_init(struct kinds *k, struct trace *t, const struct moment *m, bool in_backward, struct pool *pool);

/* The same at a moment of a memory trace. */
void kinds_from(struct kinds *k, struct trace *t, const struct playback *play, int device, struct pool *pool);

/* A line with several calls has several stacks with the same lines: this hash is equal for all of them, and for every depth of a
 * recursion. 0 = no stack. */
uint64_t lines_hash(const struct trace *t, uint32_t stack);

/* Valid until the next call. */
const struct about *kinds_about(struct kinds *k, const struct piece *p);

/* When memory was first allocated with its stack, in whichever module; 0 = not known. */
uint64_t kinds_first_ticks(const struct kinds *k, const struct piece *p);

/* The file that called the driver for it: offset of a cw_string, 0 = not known. */
uint32_t kinds_library(struct kinds *k, const struct piece *p);
enum ledger_kind kinds_of(struct kinds *k, const struct piece *p);

/* Everything that a site allocated, as one piece without an address or a size. */
struct piece piece_of_site(const struct kinds *k, size_t site);

/* What a site's memory is for. BACKWARD: some of what it held in an epoch (trace_site_held) may be gradients, and this
 * says how much. */
enum ledger_kind kinds_of_site(struct kinds *k, size_t site);
struct cw_epoch;
uint64_t gradients_among(const struct cw_epoch *epochs, const uint64_t *held, size_t at);

/* Backward may be running: at the failure, or (NULL) at the end. */
bool ledger_in_backward(const struct trace *t, const struct cw_failure *f);

/* All pieces of the moment; PyTorch's blocks of this device only, the driver's of all devices. */
struct moment {
	struct pieces torch, driver;
	uint64_t when;
	int device;
};
void moment_init(struct moment *m, struct trace *t, uint64_t when, int device);
void moment_from(struct moment *m, const struct playback *play, int device);
void moment_free(struct moment *m);

#endif
