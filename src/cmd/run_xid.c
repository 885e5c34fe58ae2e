/* SPDX-License-Identifier: Apache-2.0
 * The kernel log during a run (see run_xid.h).
 */
#include "cmd/run_xid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "facts/incident.h"
#include "report/json_text.h"
#include "trace/trace.h"
#include "base/banned.h"

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
	/* which GPU is where on the bus is said once, before its first Xid since the machine started */
	fd = w->log.n > 0 && !w->looked ? log_open(path) : -1;
	if (fd >= 0) {
		xid_read(&w->log, fd, true);
		close(fd);
		w->looked = true;
	}
	return &w->log;
}

static char *gpu_line(const struct xid_gpu *g)
{
	char id[33];

	for (size_t i = 0; i < 16; i++)
		snprintf(id + 2 * i, 3, "%02x", g->uuid[i]);
	return xasprintf("GPU at PCI:%s: GPU-%s", g->pci, id);
}

json_t *xid_to_json(const struct xid_log *log)
{
	json_t *lines = json_array();
	size_t i;
	char *s;

	for (i = 0; i < log->n_gpus; i++) {
		s = gpu_line(&log->gpu[i]);
		json_array_append_new(lines, json_text(s));
		free(s);
	}
	for (i = 0; i < log->n; i++)
		json_array_append_new(lines, json_text(log->line[i].text));
	return json_pack("{s:b, s:b, s:o}", "readable", log->readable, "lost", log->lost, "lines", lines);
}

bool xid_from_json(struct xid_log *log, const json_t *o)
{
	const json_t *line;
	size_t i;
	char *s;

	*log = (struct xid_log){0};
	if (!json_is_object(o))
		return false;
	log->readable = json_is_true(json_object_get(o, "readable"));
	log->lost = json_is_true(json_object_get(o, "lost"));
	json_array_foreach(json_object_get(o, "lines"), i, line) {
		s = xasprintf("NVRM: %s", json_is_string(line) ? json_string_value(line) : "");
		xid_line(log, s, false);
		free(s);
	}
	return true;
}
