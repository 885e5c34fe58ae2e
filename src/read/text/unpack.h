/* SPDX-License-Identifier: Apache-2.0
 * Logs that were compressed by gzip, xz or zstd, read with constant memory.
 */
#ifndef CUWHY_TEXT_UNPACK_H
#define CUWHY_TEXT_UNPACK_H

#include <stddef.h>

struct stream;

enum packing { PACKED_NOT, PACKED_GZIP, PACKED_XZ, PACKED_ZSTD };

/* By the first bytes of the file; fewer than UNPACK_HEAD are enough where they can only be text. */
#define UNPACK_HEAD 6
enum packing unpack_kind(const unsigned char *head, size_t n);

/* Reads the file to its end, after the `n` bytes that were read from it already. 0, or -errno:
 * -EBADMSG if it is damaged or cut short; what was before that was read. */
int unpack_fd(struct stream *st, int fd, enum packing kind, const unsigned char *head, size_t n);

#endif
