/* SPDX-License-Identifier: Apache-2.0
 * The machine around the driver: its operating system, kernel, C library, firmware, Windows around it; its memory and every
 * limit on it: RAM, swap, control groups, ulimits, /dev/shm.
 */
#include <errno.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/tree.h"
#include "read/machine/look.h"
#include "probe/ram.h"

/* NAME="value" of os-release. */
static const char *release_field(const struct looking *l, const char *text, const char *name)
{
	size_t n = strlen(name), len;

	for (; text && *text; text = strchr(text, '\n'), text = text ? text + 1 : NULL) {
		if (strncmp(text, name, n) != 0 || text[n] != '=')
			continue;
		text += n + 1;
		len = strcspn(text, "\n");
		if (len > 1 && (*text == '"' || *text == '\'') && text[len - 1] == *text)
			return look_clean(l, text + 1, len - 2);
		return look_clean(l, text, len);
	}
	return NULL;
}

/* The library contains its version as a string; older ones have it in the file name. */
static const char *glibc_of(const struct looking *l)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6",
					    "/lib64/libc.so.6", "/usr/lib/libc.so.6"};
	static const char says[] = "stable release version ";
	const char *text, *at;
	size_t len;

	if (l->live && gnu_get_libc_version())
		return gnu_get_libc_version();	/* not in a static program, whose glibc is not the machine's */
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		text = look_file(l, paths[i], 4u << 20, &len);
		at = text ? memmem(text, len, says, strlen(says)) : NULL;
		if (at)
			return look_version(l, at);
	}
	return NULL;
}

static int hypervisor_of(const struct looking *l)
{
	const char *text = look_file(l, "/proc/cpuinfo", 1 << 16, NULL), *flags;

	if (!text)
		return -1;
	text = strstr(text, "\nflags");
	if (!text)
		return -1;	/* not x86: nothing reports it there */
	flags = strstr(text, " hypervisor");
	return flags && flags < text + 1 + strcspn(text + 1, "\n");
}

static int secure_boot_of(const struct looking *l)
{
	size_t len = 0;
	const char *v =
		look_file(l, "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 16, &len);

	if (!v || len != 5)	/* four bytes of attributes, then the value */
		return look_exists(l, "/sys/firmware") && !look_exists(l, "/sys/firmware/efi") ? 0 : -1;
	return v[4] == 1;
}

static void take_system(const struct looking *l)
{
	const char *text = look_file(l, "/etc/os-release", 1 << 14, NULL);
	struct utsname u;

	l->h->os.name = release_field(l, text, "PRETTY_NAME");
	l->h->os.id = release_field(l, text, "ID");
	l->h->os.version = release_field(l, text, "VERSION_ID");
	l->h->os.kernel = look_line(l, "/proc/sys/kernel/osrelease");
	l->h->os.arch = look_line(l, "/proc/sys/kernel/arch");
	if (l->live && uname(&u) == 0) {
		l->h->os.kernel = look_clean(l, u.release, strlen(u.release));
		l->h->os.arch = look_clean(l, u.machine, strlen(u.machine));
	}
	l->h->os.glibc = glibc_of(l);
	l->h->os.hypervisor = hypervisor_of(l);
	l->h->os.product = look_line(l, "/sys/class/dmi/id/product_name");
	if (!l->h->os.product)
		l->h->os.product = look_line(l, "/proc/device-tree/model");
	l->h->os.secure_boot = secure_boot_of(l);
}

static void take_wsl(const struct looking *l)
{
	const char *kernel = l->h->os.kernel;

	l->h->wsl.dxg = look_exists(l, "/dev/dxg");
	l->h->wsl.libcuda = look_exists(l, "/usr/lib/wsl/lib/libcuda.so.1");
	if (!kernel)
		return;
	if (!strcasestr(kernel, "microsoft"))
		l->h->wsl.version = 0;
	else
		l->h->wsl.version = strcasestr(kernel, "wsl2") || strcasestr(kernel, "microsoft-standard") ? 2 : 1;
}

void host_look_os(const struct looking *l)
{
	take_system(l);
	take_wsl(l);
}

static int64_t ram_number(uint64_t v)
{
	return v == RAM_UNKNOWN ? -1 : v == RAM_UNLIMITED ? HOST_UNLIMITED : (int64_t)v;
}

static void take_ram(const struct looking *l)
{
	struct ram_state r;

	ram_look(&r, l->root, 0);
	l->h->memory.total = ram_number(r.total);
	l->h->memory.available = ram_number(r.available);
	l->h->memory.swap_total = ram_number(r.swap_total);
	l->h->memory.swap_free = ram_number(r.swap_free);
	l->h->memory.cgroup_limit = ram_number(r.group_limit);
	l->h->memory.cgroup_used = ram_number(r.group_used);
	l->h->memory.lock_soft = ram_number(r.lock_limit);
	l->h->memory.lock_hard = ram_number(r.lock_hard);
	l->h->memory.files_soft = ram_number(r.files);
	l->h->memory.address_space = ram_number(r.address_space);
	if (r.lock_hard == RAM_UNKNOWN && r.files == RAM_UNKNOWN && r.address_space == RAM_UNKNOWN)
		look_gap(l, "/proc/self/limits", "it cannot be read");
}

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
	switch (*end) {
	case 'k':
		return n << 10;
	case 'm':
		return n << 20;
	case 'g':
		return n << 30;
	default:
		return n;
	}
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
		/* a copied tree seldom has it */
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
