/* SPDX-License-Identifier: Apache-2.0
 * Reads a text of any size with constant memory and passes on the lines that matter: those with a needle in them, what is
 * around these, the beginning and the end.
 */
#ifndef CUWHY_STREAM_H
#define CUWHY_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct needles;

#define STREAM_LINE_MAX	(16u << 10)	/* of a longer line only this much is passed on, from where it is interesting */

/* `gap`: lines between the one before and this one were skipped. Not terminated; may hold any byte but '\n'. */
typedef void stream_fn(void *arg, const char *s, size_t len, uint64_t number, bool gap);

struct stream;

struct stream *stream_new(const struct needles *n, stream_fn *line, void *arg);
void stream_free(struct stream *st);

/* For tests: the beginning gets no special treatment, as if much had come before. */
void stream_hasty(struct stream *st);

/* Where the next bytes go, at least one; stream_filled says how many came. */
char *stream_room(struct stream *st, size_t *size);
void stream_filled(struct stream *st, size_t n);
void stream_end(struct stream *st);

uint64_t stream_bytes(const struct stream *st);

/* Reads a file to its end. `copy` >= 0: what is read is also written there. 0, or -errno. */
int stream_read_fd(struct stream *st, int fd, int copy);

#endif
