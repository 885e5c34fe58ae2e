/* SPDX-License-Identifier: Apache-2.0
 * A growable byte buffer with a ceiling set at creation. Bytes beyond it are dropped and `full` is
 * set, so that a caller checks once at the end. `data` always ends with a NUL that is not counted.
 */
#ifndef CUWHY_BUF_H
#define CUWHY_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t len, cap, max;
	bool full;
};

void buf_init(struct buf *b, size_t max);
void buf_release(struct buf *b);
void buf_add(struct buf *b, const void *bytes, size_t n);
void buf_adds(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *buf_take(struct buf *b);		/* ownership moves to the caller (free) */

/* Reads to the end of the file. 0, or -errno; -EFBIG if the ceiling was reached. */
int buf_read_fd(struct buf *b, int fd);

#endif
