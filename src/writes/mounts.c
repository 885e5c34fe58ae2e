/* SPDX-License-Identifier: Apache-2.0
 * /proc/self/mountinfo.
 */
#include "writes/layer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define TABLE_MAX ((size_t)64 << 20)

static const char *const virtual_types[] = {
	"autofs", "binder",	"binfmt_misc", "bpf",	    "cgroup",	 "cgroup2", "configfs", "debugfs",
	"devpts", "devtmpfs",	"efivarfs",    "fusectl",   "hugetlbfs", "mqueue",  "nsfs",	"proc",
	"pstore", "rpc_pipefs", "securityfs",  "selinuxfs", "sysfs",	 "tracefs",
};

bool path_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (n == 1)
		return true;
	return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

static bool is_virtual(const struct mount_point *p)
{
	for (size_t i = 0; i < sizeof(virtual_types) / sizeof(virtual_types[0]); i++)
		if (strcmp(p->type, virtual_types[i]) == 0)
			return true;
	/* in containers /dev is a tmpfs, with /dev/shm in it or beside it */
	return path_within(p->path, "/dev") || path_within(p->path, "/proc") || path_within(p->path, "/sys");
}

/* Spaces, tabs, line ends and backslashes are written as \040. */
static char *unescape(const char *s)
{
	char *plain = xmalloc(strlen(s) + 1), *to = plain;

	for (; *s; s++) {
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
	return plain;
}

static unsigned long flags_of(char *words)
{
	static const struct {
		const char *word;
		unsigned long flag;
	} known[] = {{"ro", MS_RDONLY},
		     {"nosuid", MS_NOSUID},
		     {"nodev", MS_NODEV},
		     {"noexec", MS_NOEXEC},
		     {"noatime", MS_NOATIME}};
	unsigned long flags = 0;
	char *rest = NULL;

	for (char *w = strtok_r(words, ",", &rest); w; w = strtok_r(NULL, ",", &rest))
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			flags |= strcmp(w, known[i].word) == 0 ? known[i].flag : 0;
	return flags;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
static bool line_read(struct mount_point *p, char *line)
{
	char *field[64], *rest = NULL, *w;
	size_t n = 0, dash = 6;
	uint64_t id, parent;

	for (w = strtok_r(line, " ", &rest); w && n < sizeof(field) / sizeof(field[0]); w = strtok_r(NULL, " ", &rest))
		field[n++] = w;
	while (dash < n && strcmp(field[dash], "-") != 0)
		dash++;
	if (dash + 3 >= n)
		return false;
	if (!str_u64(field[0], &id) || !str_u64(field[1], &parent))
		return false;
	*p = (struct mount_point){.id = (int)id, .parent = (int)parent};
	p->path = unescape(field[4]);
	p->flags = flags_of(field[5]) | flags_of(field[dash + 3]);
	p->type = xstrdup(field[dash + 1]);
	p->source = unescape(field[dash + 2]);
	p->virtual = is_virtual(p);
	return true;
}

/* By path, a folder before what is in it. */
static int by_path(const void *a, const void *b)
{
	const struct mount_point *x = a, *y = b;
	const unsigned char *p = (const unsigned char *)x->path, *q = (const unsigned char *)y->path;

	while (*p && *p == *q)
		p++, q++;
	if (*p == *q)
		return (x->id > y->id) - (x->id < y->id);
	if (!*p || !*q)
		return *p ? 1 : -1;
	if (*p == '/' || *q == '/')
		return *p == '/' ? -1 : 1;
	return *p < *q ? -1 : 1;
}

struct number {
	int id;
	size_t at;
};

static int by_id(const void *a, const void *b)
{
	const struct number *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* Where in the list the parent of each is: "/" if it is not there, as in a chroot. */
static size_t *find_parents(const struct mounts *m)
{
	struct number *number = xcalloc(m->n + 1, sizeof(*number)), *found;
	size_t *parent = xcalloc(m->n + 1, sizeof(*parent));

	for (size_t i = 0; i < m->n; i++)
		number[i] = (struct number){m->list[i].id, i};
	xsort(number, m->n, sizeof(*number), by_id);
	for (size_t i = 0; i < m->n; i++) {
		found = bsearch(&(struct number){.id = m->list[i].parent}, number, m->n, sizeof(*number), by_id);
		parent[i] = found ? found->at : 0;
	}
	free(number);
	return parent;
}

/* Is `a` an ancestor of `b`? Then `b` was mounted on what `a` shows. */
static bool is_above(const size_t *parent, size_t a, size_t b, size_t n)
{
	for (size_t steps = 0; steps <= n && parent[b] != b; steps++) {
		b = parent[b];
		if (b == a)
			return true;
	}
	return false;
}

/* What hides a mount is at the same path, or at one above it and not an ancestor. With the synthetic root of a chroot, whoever has no parent
 * in the list is in it. */
static void find_hidden(struct mounts *m)
{
	size_t *above = xcalloc(m->n + 1, sizeof(*above)), *parent = find_parents(m), depth = 0;

	for (size_t i = 0; i < m->n; i++) {
		while (depth && !path_within(m->list[i].path, m->list[above[depth - 1]].path))
			depth--;
		for (size_t k = 0; k < depth; k++) {
			bool on_it = is_above(parent, above[k], i, m->n),
			     same = !strcmp(m->list[above[k]].path, m->list[i].path);

			if (on_it && same)
				m->list[above[k]].hidden = true;
			else if (!on_it)
				m->list[i].hidden = true;
		}
		above[depth++] = i;
	}
	free(above);
	free(parent);
}

/* A program in a chroot that is no mount point sees no mount at "/". */
static void add_root(struct mounts *m)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->list[i].path, "/") == 0)
			return;
	m->list = xgrow(m->list, m->n, &m->cap, sizeof(*m->list));
	m->list[m->n++] = (struct mount_point){
		.id = -1, .parent = -1, .path = xstrdup("/"), .type = xstrdup("none"), .source = xstrdup("none")};
}

int mounts_read(struct mounts *m, struct err *e)
{
	int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC), rc;
	char *rest, *line;
	struct buf b;

	*m = (struct mounts){0};
	if (fd < 0)
		return err_set(e, -errno, "cannot read the list of mounts: %s", strerror(errno));
	buf_init(&b, TABLE_MAX);
	rc = buf_read_fd(&b, fd);
	close(fd);
	rest = b.data;
	while (rc == 0 && b.len && (line = strsep(&rest, "\n")) != NULL) {
		m->list = xgrow(m->list, m->n, &m->cap, sizeof(*m->list));
		m->n += line_read(&m->list[m->n], line);
	}
	buf_release(&b);
	add_root(m);
	xsort(m->list, m->n, sizeof(*m->list), by_path);
	find_hidden(m);
	return rc ? err_set(e, rc, "cannot read the list of mounts: %s", strerror(-rc)) : 0;
}

void mounts_release(struct mounts *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->list[i].path);
		free(m->list[i].type);
		free(m->list[i].source);
	}
	free(m->list);
	*m = (struct mounts){0};
}

bool mounts_below(const struct mounts *m, const char *path)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->list[i].path, path) != 0 && path_within(m->list[i].path, path))
			return true;
	return false;
}
