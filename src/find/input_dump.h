/* SPDX-License-Identifier: Apache-2.0
 * A GPU core dump opened as an input.
 */
#ifndef CUWHY_INPUT_DUMP_H
#define CUWHY_INPUT_DUMP_H

#include <stdint.h>

struct culprit;
struct dump;

struct dump_source {
	struct dump *dump;
	struct culprit *culprit;
	uint32_t pid;		/* if the file has the driver's own name, which has it; 0 = not known */
	uint64_t written_ns;	/* CLOCK_REALTIME of the file; a copy of it may be younger than the dump. 0 = not known */
};

#endif
