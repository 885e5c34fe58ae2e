/* SPDX-License-Identifier: Apache-2.0
 * The memory that a process had at one moment, as pieces: the driver's allocations and PyTorch's blocks
 * inside them.
 */
#ifndef CUWHY_PIECES_H
#define CUWHY_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_freed;
struct trace;

struct piece {
	uint64_t addr, size;
	uint64_t ticks;			/* of its allocation */
	uint64_t free_ticks;		/* 0 = not freed, or not known */
	uint32_t stack, forward_stack;	/* of the allocation */
	uint32_t free_stack;		/* for pieces that were freed */
	int device;			/* -1 = host or unknown */
	uint32_t site;			/* index into SITES, 0 = not known */
	uint32_t library;		/* the file that called the driver: offset of a cw_string, 0 = not known */
	uint32_t turn, turn_serial;	/* of PyTorch's: as in cw_freed */
	uint16_t kind;			/* enum cw_memory */
	bool freed_after;		/* not at that line, but some time after it */
	bool workspace;			/* PyTorch gave it to cuBLAS */
	bool segment;			/* an allocation of the driver's that PyTorch uses as a segment */
};

struct pieces {
	struct piece *list;		/* by address */
	size_t n;
};

/* Blocks of PyTorch that were live at `when`; freed since or not. */
void pieces_of_torch(struct pieces *p, struct trace *t, uint64_t when);

/* The driver's allocations, as they were at the end: after a fatal error none can be freed. */
void pieces_of_driver(struct pieces *p, struct trace *t);

/* The same at a moment, freed since or not. */
void pieces_of_driver_at(struct pieces *p, struct trace *t, uint64_t when);

/* The block of PyTorch, or the driver's allocation, that contained the address and was the last one freed before `before`. */
bool piece_freed_by_torch(struct trace *t, uint64_t address, uint64_t before, struct piece *found);
bool piece_freed_by_driver(struct trace *t, uint64_t address, uint64_t before, struct piece *found);

/* What contained the address at a moment, freed since or not: PyTorch's block, or the driver's allocation. For a single question. */
bool piece_of_torch_at(struct trace *t, uint64_t address, uint64_t when, struct piece *found);
bool piece_of_driver_at(struct trace *t, uint64_t address, uint64_t when, struct piece *found);

/* Did PyTorch ever have a block that begins in these addresses? */
bool torch_had_blocks(struct trace *t, uint64_t from, uint64_t to);

struct piece piece_of_freed(const struct trace *t, const struct cw_freed *f);

void pieces_free(struct pieces *p);

/* NULL when no piece contains it. */
const struct piece *pieces_at(const struct pieces *p, uint64_t address);
/* The last piece that has a byte of these addresses. */
const struct piece *pieces_touching(const struct pieces *p, uint64_t from, uint64_t to);
const struct piece *pieces_nearest(const struct pieces *p, uint64_t address);

static inline bool piece_holds(const struct piece *p, uint64_t address)
{
	return address >= p->addr && address - p->addr < p->size;
}

/* Bytes between the piece and the address; 0 inside, and just past the end. */
static inline uint64_t piece_distance(const struct piece *p, uint64_t address)
{
	if (address < p->addr)
		return p->addr - address;
	return address - p->addr < p->size ? 0 : address - p->addr - p->size;
}

#endif
