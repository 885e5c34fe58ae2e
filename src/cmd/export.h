/* SPDX-License-Identifier: Apache-2.0
 * Between the files of `cuwhy export`.
 */
#ifndef CUWHY_CMD_EXPORT_H
#define CUWHY_CMD_EXPORT_H

#include <stdbool.h>

#include <jansson.h>

struct err;

/* --json: prints the object, which it takes, with what every export tells. */
void export_tell(json_t *o, const char *out);

/* `pid` NULL: all processes. -errno with `e` filled. */
int export_chrome(const char *path, const char *out, const char *pid, bool json, struct err *e);

#endif
