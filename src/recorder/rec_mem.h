/* SPDX-License-Identifier: Apache-2.0
 * Inside of the recorder's memory, for the files that build on it.
 */
#ifndef CUWHY_REC_MEM_H
#define CUWHY_REC_MEM_H

#include "rec.h"

#define STACK_SLOTS	65536
#define STRING_SLOTS	16384
#define TABLE_PROBES	64

struct slot {
	_Atomic uint64_t key;		/* 0 = empty */
	uint32_t value;
	uint32_t pad;
};

uint32_t table_get(const struct slot *table, uint32_t slots, uint64_t key);
bool table_put(struct slot *table, uint32_t slots, uint64_t key, uint32_t value);

bool mem_start(uint64_t cap, uint32_t first);	/* reserves, maps and hands over the first segment */
bool tables_start(void);
bool function_start(void);
bool alloc_start(void);
bool fail_start(void);
bool rec_fsize_allows(uint64_t len);
extern uint64_t rec_start_ns;			/* CLOCK_MONOTONIC when this process image was first seen */

#endif
