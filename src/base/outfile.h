/* SPDX-License-Identifier: Apache-2.0
 * A file that is written piece by piece, and is there whole or not at all: it grows beside its target and takes its
 * place at the end. What is no file (a device, a pipe, a link) is written to as it is; "-" is standard output.
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
	char *beside;		/* NULL = it is written to directly */
};

int outfile_open(struct outfile *f, const char *path, struct err *e);

/* Keeps what was written, or with `keep` false takes it away. -errno with `e` filled when not all could be written.
 * `bytes` may be NULL. */
int outfile_close(struct outfile *f, bool keep, uint64_t *bytes, struct err *e);

#endif
