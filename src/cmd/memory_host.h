/* SPDX-License-Identifier: Apache-2.0
 * Pinned host memory of a recorded process, against the host's RAM and the limits on it.
 */
#ifndef CUWHY_MEMORY_HOST_H
#define CUWHY_MEMORY_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct cw_header;
struct ram_state;

struct memory_host {
	uint32_t pid;
	uint64_t pinned, peak;
	const struct ram_state *ram;	/* when memory ran out; NULL = nobody looked */
};

/* False when there is nothing to say: none was pinned, and nobody looked. */
bool memory_host_used(const struct memory_host *h);
void memory_host_print(FILE *out, const struct memory_host *h);
json_t *memory_host_json(const struct memory_host *h);

#endif
