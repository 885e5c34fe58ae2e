/* SPDX-License-Identifier: Apache-2.0
 * A file written piece by piece, all or nothing: it grows next to its target and replaces it at the end. A device, a
 * pipe or a link is written to in place; "-" is standard output.
 */
#ifndef CUWHY_OUTFILE_H
#define CUWHY_OUTFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct err;

struct outfile {
	FILE *out;		/* to write to */
	const char *path;
	char *beside;		/* NULL = written in place */
};

int outfile_open(struct outfile *f, const char *path, struct err *e);

/* Keeps what was written, or removes it if `keep` is false. -errno with `e` filled if not all could be written.
 * `bytes` may be NULL. */
int outfile_close(struct outfile *f, bool keep, uint64_t *bytes, struct err *e);

#endif
