/* SPDX-License-Identifier: Apache-2.0
 * What keeps the tensors of a running program alive: the answer of `cuwhy memory --pid`.
 */
#ifndef CUWHY_WRITE_MEMORY_HOLDERS_H
#define CUWHY_WRITE_MEMORY_HOLDERS_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <jansson.h>

struct casefile;
struct holders;
struct trace;

struct memory_holders {
	pid_t pid;
	const struct trace *trace;
	const struct casefile *c;	/* has the holders, with their lines */
	const struct holders *found;
	uint64_t took_ns;
};

void memory_holders_print(FILE *out, const struct memory_holders *m);
json_t *memory_holders_json(const struct memory_holders *m);

#endif
