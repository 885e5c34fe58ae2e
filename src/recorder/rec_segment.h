/* SPDX-License-Identifier: Apache-2.0
 * The segments that hold the recording, for the files that build on them.
 */
#ifndef CUWHY_REC_SEGMENT_H
#define CUWHY_REC_SEGMENT_H

#include "rec.h"

#define STACK_SLOTS	65536
#define STRING_SLOTS	16384

bool segments_start(uint64_t cap, uint32_t first);	/* reserves, maps and hands over the first segment */
void probe_wake(void);	/* tells `cuwhy run` that memory ran out; never blocks */
bool holders_wake(void (*allow)(pid_t reader));	/* asks it what keeps tensors alive; false: it was not told */
bool tables_start(void);

/* Zeroed memory private to this process, its first 2 MiB in one huge page if possible; NULL = out of memory. */
void *large_new(size_t len);
void large_free(void *p, size_t len);

/* Memory outside the recording, for tables that every event looks up and no reader needs: they are large and nearly
 * empty, so with 4 KiB pages almost every lookup would miss the TLB. Allocated at startup only; NULL = none left. */
void *side_new(uint32_t len);

bool function_start(void);
bool driver_alloc_start(void);
bool site_start(void);
bool fail_start(void);
bool rec_fsize_allows(uint64_t len);
extern uint64_t rec_start_ns;			/* CLOCK_MONOTONIC when this process image was first seen */

#endif
