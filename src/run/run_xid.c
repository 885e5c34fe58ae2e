/* SPDX-License-Identifier: Apache-2.0
 * The kernel log during a run (see run.h).
 */
#include "run/run.h"

#include <fcntl.h>
#include <unistd.h>

#include "find/failure/incident.h"
#include "read/recording/trace.h"

static int log_open(const char *path)
{
	return open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

void xid_watch_open(struct xid_watch *w, const char *path)
{
	*w = (struct xid_watch){.fd = log_open(path)};
	if (w->fd >= 0 && lseek(w->fd, 0, SEEK_END) < 0) {
		close(w->fd);
		w->fd = -1;
	}
}

void xid_watch_close(struct xid_watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

bool xid_watch_wanted(const struct trace *t)
{
	const struct cw_failure *const *f;
	size_t i, n = trace_failures(t, &f);

	for (i = 0; i < n; i++)
		if (xid_matters(f[i]->code))
			return true;
	return false;
}

const struct xid_log *xid_watch_look(struct xid_watch *w, const char *path)
{
	int fd;

	xid_read(&w->log, w->fd, false);
	/* the bus address of a GPU is logged only once after boot, before its first Xid */
	fd = w->log.n > 0 && !w->looked ? log_open(path) : -1;
	if (fd >= 0) {
		xid_read(&w->log, fd, true);
		close(fd);
		w->looked = true;
	}
	return &w->log;
}
