/* SPDX-License-Identifier: Apache-2.0
 * Watches the kernel log for Xids while the program runs.
 */
#ifndef CUWHY_RUN_XID_H
#define CUWHY_RUN_XID_H

#include "formats/xid.h"

struct trace;

struct xid_watch {
	int fd;			/* of the log, positioned where it ended when the program began; -1 = unreadable */
	bool looked;
	struct xid_log log;
};

/* Starts at the current end of the log: earlier lines are not about this run. Costs nothing until it is read. */
void xid_watch_open(struct xid_watch *w, const char *path);
void xid_watch_close(struct xid_watch *w);

/* Does the recording have a failure that hardware can cause? */
bool xid_watch_wanted(const struct trace *t);

/* Everything logged since then. The result lives as long as the watch, and may grow with every call. */
const struct xid_log *xid_watch_look(struct xid_watch *w, const char *path);

#endif
