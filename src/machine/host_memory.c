/* SPDX-License-Identifier: Apache-2.0
 * Memory of the machine and every limit on it: RAM, swap, control groups, ulimits, /dev/shm.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/tree.h"
#include "machine/host_priv.h"
#include "base/banned.h"

#define DEPTH_MAX	32		/* of control groups */

/* "16384 kB" */
static int64_t kilobytes(const struct looking *l, const char *text, const char *name)
{
	const char *value = look_field(l, text, name);
	long long n;

	if (!value || !isdigit((unsigned char)*value))
		return -1;
	errno = 0;
	n = strtoll(value, NULL, 10);
	return errno || n > INT64_MAX / 1024 ? -1 : n * 1024;
}

static int64_t limit_word(const char **s)
{
	const char *at = *s + strspn(*s, " ");
	size_t n = strcspn(at, " \n");
	unsigned long long value;
	char *end;

	*s = at + n;
	if (n == 9 && memcmp(at, "unlimited", 9) == 0)
		return HOST_UNLIMITED;
	errno = 0;
	value = strtoull(at, &end, 10);
	if (end == at || errno)
		return -1;
	return value > INT64_MAX ? HOST_UNLIMITED : (int64_t)value;
}

/* "Max locked memory         8388608              8388608              bytes" */
static void take_limit(const char *limits, const char *name, int64_t *soft, int64_t *hard)
{
	const char *line = limits ? strstr(limits, name) : NULL;

	if (!line || (line != limits && line[-1] != '\n'))
		return;
	line += strlen(name);
	*soft = limit_word(&line);
	if (hard)
		*hard = limit_word(&line);
}

static void take_limits(const struct looking *l)
{
	const char *limits = look_file(l, "/proc/self/limits", 1 << 14, NULL);

	take_limit(limits, "Max locked memory", &l->h->memory.lock_soft, &l->h->memory.lock_hard);
	take_limit(limits, "Max open files", &l->h->memory.files_soft, NULL);
	take_limit(limits, "Max address space", &l->h->memory.address_space, NULL);
	if (!limits)
		look_gap(l, "/proc/self/limits", "it cannot be read");
}

/* ---- control groups ---------------------------------------------------------------------------------------- */

struct group_files { const char *controller, *mount, *limit, *used; };

/* The smallest limit on the way up counts. */
static bool take_groups(const struct looking *l, const struct group_files *f)
{
	const char *path = look_cgroup(l, f->controller);
	char *dir = path ? pool_strdup(l->pool, path) : NULL, *slash;
	int64_t limit, least = -1;

	for (int i = 0; dir && i < DEPTH_MAX; i++) {
		const char *text = look_line(l, pool_printf(l->pool, "%s%s/%s", f->mount, dir, f->limit));

		limit = !text ? -1 : strcmp(text, "max") == 0 ? HOST_UNLIMITED : isdigit((unsigned char)*text) ? strtoll(text, NULL, 10) : -1;
		if (limit > INT64_MAX / 2)
			limit = HOST_UNLIMITED;
		if (limit >= 0 && (least < 0 || limit < least)) {
			least = limit;
			l->h->memory.cgroup_used = look_number(l, pool_printf(l->pool, "%s%s/%s", f->mount, dir, f->used));
		}
		slash = strrchr(dir, '/');
		if (!slash || !*dir)
			break;
		*slash = '\0';
	}
	if (least >= 0)
		l->h->memory.cgroup_limit = least;
	return least >= 0;
}

/* ---- /dev/shm ----------------------------------------------------------------------------------------------- */

static int64_t size_option(const char *options)
{
	const char *s = strstr(options, "size=");
	long long n;
	char *end;

	if (!s)
		return -1;
	errno = 0;
	n = strtoll(s + 5, &end, 10);
	if (errno || n < 0 || n > INT64_MAX >> 30)
		return -1;
	return *end == 'k' ? n << 10 : *end == 'm' ? n << 20 : *end == 'g' ? n << 30 : n;
}

static void take_shm_mount(const struct looking *l)
{
	const char *at = l->mounts;
	struct mount m;

	if (at)
		l->h->memory.shm_mounted = 0;
	while (look_mount(&at, &m))
		if (strcmp(m.point, "/dev/shm") == 0) {
			l->h->memory.shm_mounted = 1;
			l->h->memory.shm_size = size_option(m.options);
		}
}

static void take_shm(const struct looking *l)
{
	struct statvfs v;
	struct stat st;

	take_shm_mount(l);
	if (tree_stat(l->root, "/dev/shm", &st) != 0) {
		if (look_exists(l, "/dev")) {
			l->h->memory.shm_size = 0;
			l->h->memory.shm_free = 0;
			l->h->memory.shm_writable = 0;
		}
		return;
	}
	l->h->memory.shm_mode = st.st_mode & 07777;
	l->h->memory.shm_writable = l->live ? access("/dev/shm", W_OK | X_OK) == 0 : (st.st_mode & 0003) == 0003;
	if (l->live && statvfs("/dev/shm", &v) == 0) {
		l->h->memory.shm_size = (int64_t)(v.f_blocks * v.f_frsize);
		l->h->memory.shm_free = (int64_t)(v.f_bavail * v.f_frsize);
	}
}

void host_look_memory(const struct looking *l)
{
	static const struct group_files v1 = {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"};
	static const struct group_files v2 = {"", "/sys/fs/cgroup", "memory.max", "memory.current"};
	const char *info = look_file(l, "/proc/meminfo", 1 << 14, NULL);

	l->h->memory.total = kilobytes(l, info, "MemTotal");
	l->h->memory.available = kilobytes(l, info, "MemAvailable");
	l->h->memory.swap_total = kilobytes(l, info, "SwapTotal");
	l->h->memory.swap_free = kilobytes(l, info, "SwapFree");
	l->h->memory.overcommit = look_number(l, "/proc/sys/vm/overcommit_memory");
	take_limits(l);
	if (!take_groups(l, &v1))
		take_groups(l, &v2);
	take_shm(l);
}
