/* SPDX-License-Identifier: Apache-2.0
 * The process's own memory when a kernel has failed: a kernel argument that points into it is a host pointer.
 *
 * Nothing else can tell, because host and device share one address space. Kept once, from /proc/self/maps, without
 * unreadable ranges (which is how the driver reserves addresses) and without mappings of the driver's files.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "rec.h"

#define DRIVER_FILES "/dev/nvidia"

/* One line: "start-end perms offset device inode  path". The rest of a long path does not matter. */
struct line {
	char text[256];
	size_t n;
};

struct keeper {
	struct cw_range *to;
	uint32_t n;
	bool was_file;		/* the newest range is a file's */
};

static const char *hex(const char *p, uint64_t *v)
{
	for (*v = 0;; p++) {
		if (*p >= '0' && *p <= '9')
			*v = *v << 4 | (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			*v = *v << 4 | (uint64_t)(*p - 'a' + 10);
		else
			return p;
	}
}

/* Adjacent ranges are merged, so that a library is one range. But not memory with files: pinned memory is a file. */
static void keep_line(struct keeper *k, char *text)
{
	struct cw_range r;
	const char *p = hex(text, &r.start);
	bool file;

	if (*p != '-')
		return;
	p = hex(p + 1, &r.end);
	if (*p != ' ' || p[1] != 'r' || strstr(p, DRIVER_FILES))
		return;
	file = strchr(p, '/') != NULL;
	if (k->n && k->to[k->n - 1].end == r.start && k->was_file == file)
		k->to[k->n - 1].end = r.end;
	else if (k->n < CW_MAX_RANGES)
		k->to[k->n++] = r;
	k->was_file = file;
}

static void keep_bytes(struct keeper *k, struct line *l, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (bytes[i] == '\n') {
			l->text[l->n] = '\0';
			keep_line(k, l->text);
			l->n = 0;
		} else if (l->n + 1 < sizeof(l->text)) {
			l->text[l->n++] = bytes[i];
		}
	}
}

void ranges_keep(void)
{
	static _Atomic uint32_t kept;	/* the recording that has them */
	struct keeper k = {0};
	struct line l = {.n = 0};
	struct signals signals;
	int saved = errno, fd;
	char bytes[4096];
	ssize_t n;

	if (atomic_exchange(&kept, rec.generation) == rec.generation)
		return;
	signals = signals_block();	/* a handler that jumps out would leave the descriptor open */
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	k.to = fd < 0 ? NULL : chunk_new(CW_CHUNK_RANGES, CW_MAX_RANGES * sizeof(*k.to), 0);
	while (k.to && (n = read(fd, bytes, sizeof(bytes))) > 0)
		keep_bytes(&k, &l, bytes, (size_t)n);
	if (fd >= 0)
		close(fd);
	signals_unblock(&signals);
	errno = saved;
}
