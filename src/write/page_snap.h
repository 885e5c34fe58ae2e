/* SPDX-License-Identifier: Apache-2.0
 * Between the files that put a memory snapshot into a page.
 */
#ifndef CUWHY_PAGE_SNAP_H
#define CUWHY_PAGE_SNAP_H

#include "write/page_priv.h"
#include "input/snapshot/snap_analyse.h"

struct snap_page {		/* of one device */
	const struct snapshot *s;
	const struct snap_lines *l;
	const struct snap_device *d;
	struct page_words *lines;
};

/* Among the page's lines; -1 = not known. */
int snap_page_line(const struct snap_page *v, uint32_t line);

json_t *snap_page_map(const struct snap_page *v);

#endif
