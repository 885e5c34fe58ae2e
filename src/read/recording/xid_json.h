/* SPDX-License-Identifier: Apache-2.0
 * The lines of the kernel log in run.json.
 */
#ifndef CUWHY_XID_JSON_H
#define CUWHY_XID_JSON_H

#include <stdbool.h>

#include <jansson.h>

struct xid_log;

json_t *xid_to_json(const struct xid_log *log);
bool xid_from_json(struct xid_log *log, const json_t *o);

#endif
