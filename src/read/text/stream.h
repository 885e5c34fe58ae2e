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

/* The needles belong to this stream until it is freed. */
struct stream *stream_new(struct needles *n, stream_fn *line, void *arg);
void stream_free(struct stream *st);

/* Needles of which it matters only whether they are in the text: of many hits, a few here and there are passed on, the first
 * of them with their surroundings. A flag for each needle, which must live as long. */
void stream_sparing(struct stream *st, const bool *sparing);

/* For tests: the beginning gets no special treatment, as if much had come before. */
void stream_hasty(struct stream *st);

/* Where the next bytes go, at least one; stream_filled says how many came. */
char *stream_room(struct stream *st, size_t *size);
void stream_filled(struct stream *st, size_t n);
void stream_end(struct stream *st);

uint64_t stream_bytes(const struct stream *st);

/* Reads a file to its end, after the `n` bytes that were read from it already. `copy` >= 0: all of it is also written
 * there. 0, or -errno. */
int stream_read_fd(struct stream *st, int fd, int copy, const char *head, size_t n);

#endif
