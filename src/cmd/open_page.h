/* SPDX-License-Identifier: Apache-2.0
 * Shows a file in the user's browser: what $BROWSER names, else xdg-open.
 */
#ifndef CUWHY_OPEN_PAGE_H
#define CUWHY_OPEN_PAGE_H

#include <stdbool.h>
#include <sys/resource.h>

/* True if a browser was started and did not fail at once. `data` is the limit that the browser gets, not that of this process. */
bool open_page(const char *path, const struct rlimit *data);

#endif
