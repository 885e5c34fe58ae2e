/* SPDX-License-Identifier: Apache-2.0
 * How a library is read: bytes at a place, and what is found there.
 */
#ifndef CUWHY_FATBIN_PRIV_H
#define CUWHY_FATBIN_PRIV_H

#include "formats/fatbin.h"

#define TARGETS_MAX	256	/* different ones; libraries of NVIDIA have up to thirty */
#define SETS_MAX	256	/* of targets */
#define WORDS		(TARGETS_MAX / 64)

/* The file, read piece by piece, not mapped: a mapped file that is cut short while it is read kills the reader. */
struct source {
	int fd;			/* -1: `data` */
	const uint8_t *data;
	uint64_t len;
};

bool source_read(const struct source *s, uint64_t off, void *to, size_t n);

struct span {
	uint64_t off, len;
	bool linked;
};

#define SPANS_MAX	16

/* The sections with fat binaries. Returns how many; `f` gets `scanned` and damage. -1: not a file for us. */
int sections_find(const struct source *s, struct span *spans, struct fatbin *f, struct err *e);

struct set_bits {
	uint64_t word[WORDS];
	uint32_t count;
	bool linked;
};

struct walk {
	const struct source *source;
	struct fatbin *f;
	struct fatbin_target target[TARGETS_MAX];
	size_t n_targets;
	struct set_bits set[SETS_MAX];
	size_t n_sets;
	uint64_t headers;	/* read so far: there is a limit */
};

void walk_span(struct walk *w, const struct span *span);
/* The whole file: fat binaries wherever they are. */
void walk_scan(struct walk *w);
/* Hands the result over to `w->f`. */
void walk_finish(struct walk *w);

void fatbin_damage(struct fatbin *f, const char *why);

#endif
