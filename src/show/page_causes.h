/* SPDX-License-Identifier: Apache-2.0
 * The causes that a page names, each with what `cuwhy explain CAUSE` says about it: the page is read where cuwhy is not installed.
 */
#ifndef CUWHY_PAGE_CAUSES_H
#define CUWHY_PAGE_CAUSES_H

#include <jansson.h>

#define PAGE_CAUSES_MAX 16

/* Of the data of a page: the verdict's own first, then its candidates, those of other processes, of the doctor's checks and of the ranks of a job. */
json_t *page_causes(const json_t *data);

#endif
