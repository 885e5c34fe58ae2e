/* SPDX-License-Identifier: Apache-2.0
 * The inside of a trace, private to this folder.
 */
#ifndef CUWHY_TRACE_PRIV_H
#define CUWHY_TRACE_PRIV_H

#include "input/recording/trace.h"

struct chunk {			/* checked: lies inside the data, aligned, overlaps no other */
	uint32_t kind;
	size_t off, len;
};

struct list {			/* pointers into the data, built on first use */
	const void **item;
	size_t n, cap;
	bool built;
};

struct timeline {		/* the samples that are in order; built on first use */
	struct cw_sample *sample;
	size_t n;
};

struct epochs {			/* those of a device, checked on first use */
	const struct cw_epochs *chunk;	/* NULL = none that can be used */
	const struct cw_epoch *list;
	size_t n;
	uint32_t scale;
	bool read;
};

struct trace {
	uint8_t *data;
	size_t len;
	struct cw_header header;
	struct chunk chunk[CW_MAX_CHUNKS];
	size_t n_chunks;
	struct cw_failure *failure;	/* copies: their texts are made to end */
	struct list failures, launches, calls, allocations, blocks, freed;
	char **names;			/* demangled function names by index */
	size_t n_names;
	struct cw_site *sites;		/* all of them in one list, copied on first use */
	size_t n_sites;
	struct timeline timeline[CW_MAX_DEVICES];
	struct epochs epochs[CW_MAX_DEVICES];
	const struct cw_history **histories;	/* by site; built on first use */
	const uint32_t *marks;
	size_t n_marks;
	struct trace_node *nodes;
	size_t n_nodes;
};

void list_add(struct list *l, const void *item);

/* The checked copy of the header, and the chunks that can be used. */
int trace_read_header(struct trace *t, struct err *e);
void trace_read_chunks(struct trace *t);
void trace_read_failures(struct trace *t);
void trace_free_memory(struct trace *t);

#endif
