/* SPDX-License-Identifier: Apache-2.0
 * What the recorder itself reads in a GPU core dump.
 */
#ifndef CUWHY_REC_DUMP_H
#define CUWHY_REC_DUMP_H

#include <stdbool.h>
#include <stdint.h>

struct dump_said {
	bool complete;
	bool assertion;			/* a thread or a multiprocessor has a failed assertion, if not the first one */
	uint32_t code;			/* the CUDA error for the first exception, 0 = not determined by it */
	uint64_t size;			/* of the file so far */
};

struct dump_said dump_read(const char *path);

/* Is this a kernel's error, for which a dump will follow? */
bool dump_follows(uint32_t code);

#endif
