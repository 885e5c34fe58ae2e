/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy report`.
 */
#ifndef CUWHY_CMD_REPORT_H
#define CUWHY_CMD_REPORT_H

#include <stdbool.h>

struct err;
struct page;
struct verdict;

/* Writes the page where the user wants it, and says so; an exit status. `v` may be NULL. `text` is for browsers without
 * scripts; NULL: that of the verdict. */
int report_finish(struct page *p, const struct verdict *v, const char *path, const char *text);

/* Each makes the page of a file; an exit status, or `e` is filled. */
int report_recording(const char *path, struct err *e);
int report_dump(const char *path, struct err *e);
int report_snapshot(const char *path, struct err *e);
int report_bundle(const char *path, struct err *e);

/* Is the file JSON, by its first character? Of what a page can be made of, bundles are. */
bool report_is_bundle(const char *path);

#endif
