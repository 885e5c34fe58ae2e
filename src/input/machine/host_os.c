/* SPDX-License-Identifier: Apache-2.0
 * The operating system of a machine: distribution, kernel, C library, firmware, Windows around it.
 */
#include <string.h>
#include <sys/utsname.h>
#include <gnu/libc-version.h>

#include "input/machine/host_priv.h"
#include "base/banned.h"

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

/* The library says it in a text of its own; older ones in their file name. */
static const char *glibc_of(const struct looking *l)
{
	static const char *const paths[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
					    "/usr/lib/libc.so.6"};
	static const char says[] = "stable release version ";
	const char *text, *at;
	size_t len;

	if (l->live && gnu_get_libc_version())
		return gnu_get_libc_version();	/* none in a static program: that one's glibc is not the machine's */
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
		return -1;	/* not an x86: nothing says so there */
	flags = strstr(text, " hypervisor");
	return flags && flags < text + 1 + strcspn(text + 1, "\n");
}

static int secure_boot_of(const struct looking *l)
{
	size_t len = 0;
	const char *v = look_file(l, "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", 16, &len);

	if (!v || len != 5)	/* four bytes of attributes, then the value */
		return look_exists(l, "/sys/firmware") && !look_exists(l, "/sys/firmware/efi") ? 0 : -1;
	return v[4] == 1;
}

void host_look_os(const struct looking *l)
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

void host_look_wsl(const struct looking *l)
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
