/* SPDX-License-Identifier: Apache-2.0
 * What a program copied from the host to a GPU, and the contents of small copies.
 */
#ifndef CUWHY_COPIES_H
#define CUWHY_COPIES_H

#include <stdbool.h>
#include <stddef.h>

#include "cuwhy/format.h"

struct trace;

/* The newest copies, oldest first; the list is the caller's to free. */
size_t trace_copies(const struct trace *t, const struct cw_copy ***list);

/* Was memory given to another process? */
bool trace_memory_shared(const struct trace *t);

/* Its bytes from `offset` on. False: they were not kept, or are no longer there. */
bool trace_copied(const struct trace *t, const struct cw_copy *c, uint64_t offset, void *to, size_t n);

#endif
