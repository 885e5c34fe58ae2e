/* SPDX-License-Identifier: Apache-2.0
 * Inside of the segments that hold the recording, for the files that build on them.
 */
#ifndef CUWHY_REC_SEGMENT_H
#define CUWHY_REC_SEGMENT_H

#include "rec.h"

#define STACK_SLOTS	65536
#define STRING_SLOTS	16384

bool segments_start(uint64_t cap, uint32_t first);	/* reserves, maps and hands over the first segment */
void probe_wake(void);	/* tells `cuwhy run` that memory ran out; never waits */
bool tables_start(void);

/* Zeroed memory of this process alone, its first 2 MiB in one page where the kernel gives such ones; NULL: none. */
void *large_new(size_t len);

/* Memory beside the recording, for tables that are looked up at every event and that nobody reads afterwards: they are
 * large and nearly empty, so that in pages of 4 KiB each look-up would need one that has left the TLB. Given out at the
 * start only; NULL: there is none left. */
void *side_new(uint32_t len);

bool function_start(void);
bool driver_alloc_start(void);
bool site_start(void);
bool fail_start(void);
bool rec_fsize_allows(uint64_t len);
extern uint64_t rec_start_ns;			/* CLOCK_MONOTONIC when this process image was first seen */

#endif
