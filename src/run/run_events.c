/* SPDX-License-Identifier: Apache-2.0
 * `--memory-trace`: moves allocator events from the recorder's ring to a file next to the recording.
 *
 * The recorder never waits: events that it cannot write because we are too slow are only counted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "read/recording/recording.h"
#include "run/run.h"

#define LOOK_MS	20
#define PIECE	(256u << 10)

void events_prepare(const struct store *s)
{
	if (s->events)
		setenv("CUWHY_MEMORY_TRACE", "1", 1);
	else
		unsetenv("CUWHY_MEMORY_TRACE");
}

int events_wait_ms(const struct store *s, const struct server *srv)
{
	return s->events && srv->n_processes ? LOOK_MS : -1;
}

static bool write_events(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	while (len > 0) {
		n = write(fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool give_up(struct store *s, struct process_events *ev)
{
	ev->broken = true;
	if (!s->failed.code)
		err_set(&s->failed, -errno, "cannot write the memory trace: %s", strerror(errno));
	return false;
}

static bool find_events(struct process *p)
{
	struct cw_header *h = xcalloc(1, sizeof(*h));
	struct cw_events ring;
	bool found = false;

	if (process_header(p, h))
		for (uint32_t i = 0; !found && i < h->n_chunks && i < CW_MAX_CHUNKS; i++) {
			found = h->chunk[i].kind == CW_CHUNK_EVENTS &&
				process_read(p, h->chunk[i].off, &ring, sizeof(ring));
			p->events.off = h->chunk[i].off;
		}
	free(h);
	p->events.size = found ? ring.size : 0;
	return found && ring.size && !(ring.size & (ring.size - 1));
}

static bool open_events(struct store *s, struct process *p)
{
	struct cw_events_file head = {
		.major = CW_MAJOR, .minor = CW_MINOR, .pid = (uint32_t)p->pid, .start_mono_ns = p->start_ns};
	const char *dir = store_dir(s);
	char *path;

	if (!dir)
		return false;
	memcpy(head.magic, CW_EVENTS_MAGIC, sizeof(head.magic));
	p->events.name = xasprintf("%d-%u" EVENTS_SUFFIX, (int)p->pid, ++s->n_events);
	path = fs_join(dir, p->events.name);
	p->events.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	free(path);
	if (p->events.fd < 0 || !write_events(p->events.fd, &head, sizeof(head)))
		return give_up(s, &p->events);
	return true;
}

/* From `tail` on; nothing that the ring says about itself is trusted. */
static bool move_events(struct store *s, struct process *p, uint64_t head)
{
	struct process_events *ev = &p->events;
	char *piece = xmalloc(PIECE);
	bool ok = head - ev->tail <= ev->size;

	while (ok && ev->tail < head) {
		uint32_t at = (uint32_t)ev->tail & (ev->size - 1);
		size_t n = ev->size - at < PIECE ? ev->size - at : PIECE;

		n = head - ev->tail < n ? (size_t)(head - ev->tail) : n;
		ok = process_read(p, (uint64_t)ev->off + sizeof(struct cw_events) + at, piece, n);
		if (ok && !write_events(ev->fd, piece, n))
			ok = give_up(s, ev);
		ev->tail += ok ? n : 0;
	}
	free(piece);
	if (ok)
		process_write(p, (uint64_t)ev->off + offsetof(struct cw_events, tail), &ev->tail, sizeof(ev->tail));
	return ok;
}

static void drain_events(struct store *s, struct process *p)
{
	struct process_events *ev = &p->events;
	struct cw_events ring;

	if (ev->broken || (!ev->name && (!find_events(p) || !open_events(s, p))))
		return;
	if (!process_read(p, ev->off, &ring, sizeof(ring)) || !move_events(s, p, ring.head))
		ev->broken = true;
}

void events_step(struct store *s, struct server *srv)
{
	size_t i;

	for (i = 0; s->events && i < srv->n_processes; i++)
		if (!srv->process[i]->judged)
			drain_events(s, srv->process[i]);
}

void events_finish(struct store *s, struct process *p)
{
	if (!s->events)
		return;
	drain_events(s, p);
	if (p->events.name && p->events.fd >= 0)
		close(p->events.fd);
	p->events.fd = -1;
	p->events.broken = true;	/* no more events will come */
}

void events_name(const struct process *p, void *bytes, size_t len)
{
	struct cw_header *h = bytes;

	if (!bytes || len < sizeof(*h))
		return;
	if (p->events.name)
		str_copy(h->memory_trace_path, sizeof(h->memory_trace_path), p->events.name);
}
