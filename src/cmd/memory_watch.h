/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory --watch`: memory live, a frame a second.
 */
#ifndef CUWHY_MEMORY_WATCH_H
#define CUWHY_MEMORY_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* Until it is interrupted. A terminal is redrawn; elsewhere the frames follow each other, with `json` one object a line. Returns the
 * exit status: EXIT_TROUBLE if at the start there is neither a GPU nor a recorded process. */
int memory_watch(bool json, size_t top);

#endif
