/* SPDX-License-Identifier: Apache-2.0
 * What the files rec_turns*.c ask of each other: what an iterator tells (rec_turns_iterators.c), which turn each loop is in (rec_turns.c), and
 * how that is recorded (rec_turns_records.c).
 */
#ifndef CUWHY_REC_TURNS_H
#define CUWHY_REC_TURNS_H

#include <string.h>

#include "recorder/rec_python.h"

#define CALLS		0x80000000u	/* in turn_level.loop */
#define LEVEL_EXACT	CW_TURN_EXACT
#define LEVEL_READ	2u		/* its iterator tells the turn */
#define LEVEL_OF_GENERATOR 4u

static inline const void *load(const void *from, uint32_t offset)
{
	const void *v;

	memcpy(&v, (const char *)from + offset, sizeof(v));
	return v;
}

static inline int64_t load_number(const void *from, uint32_t offset)
{
	int64_t v;

	memcpy(&v, (const char *)from + offset, sizeof(v));
	return v;
}

static inline uint32_t unit_of(const struct py_chain *c, uint32_t link)
{
	return code_unit(UNTAGGED(c->kept[link].code), c->link[link].instr);
}

enum reads { READS_NOT, READS_INDEX, READS_RANGE, READS_DICT, READS_SET, READS_BACK, READS_ENUM, READS_ZIP, READS_MAP,
	READS_COUNT,
	READS_ISLICE
};

struct reading {
	int64_t word;			/* the number at offset `at` of the iterator itself; `at` 0: it is elsewhere */
	uint8_t at;
	int64_t turns;			/* elements taken, counted from `base` */
	int64_t base;
	bool exact;			/* if this were the first look at the loop: the turn is turns - base for certain */
};

void iterators_start(struct elf_object *o);
enum reads iterator_reads(const void *type);
/* `how`: as iterator_reads() says of its type; `depth`: of iterators in iterators. */
bool iterator_read(const void *it, enum reads how, unsigned depth, struct reading *r);
/* 1: its number is the number of turns; -1: that of the turns that are left; 0: neither. */
int8_t iterator_pace(enum reads how);
/* Those that count an element only after they have it: while it is being made, the turn has already begun. */
bool iterator_counts_late(enum reads how);

/* False: off, or there is no room for loops in the recording. */
bool turns_records_start(bool on);
/* C code repeats: the number of the line that stands for a loop without any other trace. */
uint32_t loop_of_calls(const struct py_chain *c, uint32_t link);
/* For launches, which have no room for their turns: all loops but the outermost `same` are others now. */
void turns_log(struct rec_thread *t, uint32_t same);
/* The same, of the innermost loop only. */
void turns_log_step(struct rec_thread *t);

#endif
