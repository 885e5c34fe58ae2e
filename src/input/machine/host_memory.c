/* SPDX-License-Identifier: Apache-2.0
 * Memory of the machine and every limit on it: RAM, swap, control groups, ulimits, /dev/shm.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/tree.h"
#include "input/machine/host_priv.h"
#include "probe/ram.h"
#include "base/banned.h"

static int64_t number(uint64_t v)
{
	return v == RAM_UNKNOWN ? -1 : v == RAM_UNLIMITED ? HOST_UNLIMITED : (int64_t)v;
}

static void take_ram(const struct looking *l)
{
	struct ram_state r;

	ram_look(&r, l->root, 0);
	l->h->memory.total = number(r.total);
	l->h->memory.available = number(r.available);
	l->h->memory.swap_total = number(r.swap_total);
	l->h->memory.swap_free = number(r.swap_free);
	l->h->memory.cgroup_limit = number(r.group_limit);
	l->h->memory.cgroup_used = number(r.group_used);
	l->h->memory.lock_soft = number(r.lock_limit);
	l->h->memory.lock_hard = number(r.lock_hard);
	l->h->memory.files_soft = number(r.files);
	l->h->memory.address_space = number(r.address_space);
	if (r.lock_hard == RAM_UNKNOWN && r.files == RAM_UNKNOWN && r.address_space == RAM_UNKNOWN)
		look_gap(l, "/proc/self/limits", "it cannot be read");
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
		/* a tree that somebody copied seldom has it */
		if (l->live && look_exists(l, "/dev")) {
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
	take_ram(l);
	l->h->memory.overcommit = look_number(l, "/proc/sys/vm/overcommit_memory");
	take_shm(l);
}
