/* SPDX-License-Identifier: Apache-2.0
 * What the kernel log says since boot: Xids and the kinds of lines in kb/kernel_log.def.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/tree.h"
#include "read/machine/look.h"
#include "formats/klog.h"

#define READ_ALL	3		/* of syslog(2) */
#define TEXT_MAX	(1 << 20)
#define EVENT_TEXT_MAX	400

static const struct { const char *id, *part; } kinds[] = {
#define KLOG(id, part, meaning)	{id, part},
#include "kb/kernel_log.def"
};

/* "4,1234,987654321,-;text" of /dev/kmsg, "[  987.654321] text" of dmesg */
static int64_t event_seconds(const char *line)
{
	unsigned long long n;
	const char *s;
	char *end;

	if (*line == '[')
		return strtoll(line + 1, NULL, 10);
	if (*line == '<' && (s = strchr(line, '[')))
		return strtoll(s + 1, NULL, 10);
	s = strchr(line, ',');
	s = s ? strchr(s + 1, ',') : NULL;
	if (!s)
		return -1;
	n = strtoull(s + 1, &end, 10);
	return end != s + 1 && *end == ',' ? (int64_t)(n / 1000000) : -1;
}

/* The message, with the line ends inside it as spaces: /dev/kmsg writes them as \\x0a. */
static const char *kernel_event_text(const struct looking *l, const char *line)
{
	const char *s = *line == '[' || *line == '<' ? strchr(line, ']') : strchr(line, ';');
	char *text, *at;

	s = s ? s + 1 : line;
	text = pool_copy(l->pool, s, strnlen(s, EVENT_TEXT_MAX));
	for (at = text; (at = strstr(at, "\\x0a")) != NULL;) {
		*at = ' ';
		memmove(at + 1, at + 4, strlen(at + 4) + 1);
	}
	return look_clean(l, text, strlen(text));
}

static void event_take(const struct looking *l, size_t kind, const char *line)
{
	const struct host_event *known = host_event(l->h, kinds[kind].id);
	struct host_event *e = known ? &l->h->event[known - l->h->event] : host_add(l->h, l->pool, HOST_LIST_event);

	if (!known) {
		e->id = kinds[kind].id;
		e->count = 0;
	}
	e->seconds = event_seconds(line);
	/* each text costs memory, and a broken machine repeats itself */
	if (e->count++ < 64)
		e->text = kernel_event_text(l, line);
}

struct log_reading {
	const struct looking *l;
	struct xid_log one;		/* what a single line says */
};

/* When there are many, keeps the most serious ones, and the first among equals. */
static void keep_xid(struct xid_log *log, const struct xid *x)
{
	size_t i, least = 0;

	if (log->n < XID_LINES_MAX) {
		log->line[log->n++] = *x;
		return;
	}
	for (i = 1; i < log->n; i++)
		if (xid_class(log->line[i].number) <= xid_class(log->line[least].number))
			least = i;
	if (xid_class(log->line[least].number) >= xid_class(x->number))
		return;
	memmove(&log->line[least], &log->line[least + 1], (log->n - least - 1) * sizeof(log->line[0]));
	log->line[log->n - 1] = *x;
}

static bool xid_gpu_known(const struct xid_log *log, const struct xid_gpu *g)
{
	for (size_t i = 0; i < log->n_gpus; i++)
		if (strcmp(log->gpu[i].pci, g->pci) == 0)
			return true;
	return false;
}

static void kernel_log_take_line(void *user, const char *line)
{
	struct log_reading *r = user;
	const struct looking *l = r->l;
	struct xid_log *all = &l->h->xids, *one = &r->one;

	if (strstr(line, "NVRM: ")) {
		one->n = 0;
		one->n_gpus = 0;
		xid_line(one, line, false);
		if (one->n)
			keep_xid(all, &one->line[0]);
		if (one->n_gpus && all->n_gpus < XID_GPUS_MAX && !xid_gpu_known(all, &one->gpu[0]))
			all->gpu[all->n_gpus++] = one->gpu[0];
	}
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strstr(line, kinds[i].part)) {
			event_take(l, i, line);
			return;
		}
}

/* Containers have no /dev/kmsg; the system call may still be allowed. */
static bool log_read_by_call(struct log_reading *r)
{
	char *text = xmalloc(TEXT_MAX);
	int n = klogctl(READ_ALL, text, TEXT_MAX);

	if (n > 0)
		klog_text(text, (size_t)n, kernel_log_take_line, r);
	free(text);
	return n >= 0;
}

void host_look_log(const struct looking *l)
{
	struct log_reading r = {.l = l};
	int fd = l->live ? open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC) : tree_open(l->root, "/dev/kmsg");
	int error = fd < 0 ? (l->live ? errno : -fd) : 0;
	bool lost = false, read = false;

	if (fd >= 0) {
		read = klog_read(fd, &lost, kernel_log_take_line, &r);
		close(fd);
	} else if (l->live) {
		read = log_read_by_call(&r);
	}
	l->h->log.readable = read;
	l->h->xids.readable = read;
	if (!read) {
		look_gap(l, "the kernel log", error ? strerror(error) : "it cannot be read");
	} else {
		l->h->log.lost = lost;
		host_looked(l->h, HOST_LIST_event);
	}
	l->h->xids.lost = lost;
}
