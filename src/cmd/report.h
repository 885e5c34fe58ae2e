/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy report`.
 */
#ifndef CUWHY_CMD_REPORT_H
#define CUWHY_CMD_REPORT_H

struct err;
struct page;
struct verdict;

/* Writes the page where the user wants it, and says so; an exit status. `v` may be NULL. */
int report_finish(struct page *p, const struct verdict *v, const char *path);

/* Each makes the page of a file; an exit status, or `e` is filled. */
int report_recording(const char *path, struct err *e);
int report_dump(const char *path, struct err *e);
int report_snapshot(const char *path, struct err *e);

#endif
