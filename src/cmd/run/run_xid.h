/* SPDX-License-Identifier: Apache-2.0
 * Watches the kernel log for Xids while the program runs.
 */
#ifndef CUWHY_RUN_XID_H
#define CUWHY_RUN_XID_H

#include "formats/xid.h"

struct trace;

struct xid_watch {
	int fd;			/* of the log, at its end when the program began; -1: it cannot be read */
	bool looked;
	struct xid_log log;
};

/* Begins where the log ends now: what is in it already is no news. Costs nothing until somebody looks. */
void xid_watch_open(struct xid_watch *w, const char *path);
void xid_watch_close(struct xid_watch *w);

/* Does the recording have a failure that hardware can be the reason of? */
bool xid_watch_wanted(const struct trace *t);

/* Everything that came since then. The log lives as long as the watch, and may grow with every look. */
const struct xid_log *xid_watch_look(struct xid_watch *w, const char *path);

#endif
