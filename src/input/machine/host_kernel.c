/* SPDX-License-Identifier: Apache-2.0
 * The kernel's side of the NVIDIA driver: modules that are loaded or installed, their version and settings.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "input/machine/host_priv.h"
#include "base/banned.h"

#define KERNELS_MAX	16

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..." */
static void take_version(const struct looking *l)
{
	const char *text = look_file(l, "/proc/driver/nvidia/version", 4096, NULL);
	const char *line = text ? strstr(text, "NVRM version:") : NULL;

	if (line) {
		l->h->kernel.version = look_version(l, line);
		l->h->kernel.flavour = memmem(line, strcspn(line, "\n"), "Open Kernel Module", 18) ? "open" : "proprietary";
	}
	if (!l->h->kernel.version)
		l->h->kernel.version = look_version(l, look_line(l, "/sys/module/nvidia/version"));
}

static int is_loaded(const struct looking *l, const char *modules, const char *name)
{
	char *dir = pool_printf(l->pool, "/sys/module/%s", name);
	size_t n = strlen(name);

	for (const char *s = modules; s && *s; s = strchr(s, '\n'), s = s ? s + 1 : NULL)
		if (strncmp(s, name, n) == 0 && s[n] == ' ')
			return 1;
	if (look_exists(l, dir))
		return 1;
	return modules || look_exists(l, "/sys/module") ? 0 : -1;
}

/* A list of modules, each with the path of its file. */
static int has_module(const struct looking *l, const char *release)
{
	const char *paths[] = {"/lib/modules", "/usr/lib/modules"};
	const char *text;

	for (size_t i = 0; i < 2; i++) {
		text = look_file(l, pool_printf(l->pool, "%s/%s/modules.dep", paths[i], release), 8u << 20, NULL);
		if (text)
			return strstr(text, "/nvidia.ko") != NULL;
	}
	return -1;
}

static void take_installed(const struct looking *l)
{
	const char *release = l->h->os.kernel;
	char **names;
	int i, n;

	if (!release || strchr(release, '/'))
		return;
	l->h->kernel.installed = has_module(l, release);
	if (l->h->kernel.installed != 0)
		return;
	n = look_list(l, "/lib/modules", KERNELS_MAX, &names);
	l->h->kernel.other_kernel = n < 0 ? -1 : 0;
	for (i = 0; i < n; i++)
		if (strcmp(names[i], release) != 0 && has_module(l, names[i]) == 1)
			l->h->kernel.other_kernel = 1;
}

/* Sources that DKMS builds from: /usr/src/nvidia-580.65.06, nvidia-srv-580.65.06, nvidia-open-580.65.06. */
static void take_sources(const struct looking *l)
{
	const char *version;
	char **names, *dash;
	int i, n = look_list(l, "/usr/src", 1024, &names);

	for (i = 0; i < n; i++) {
		dash = strrchr(names[i], '-');
		if (!str_starts(names[i], "nvidia-") || !dash || !isdigit((unsigned char)dash[1]))
			continue;
		version = look_version(l, dash + 1);
		if (version && host_version_compare(version, l->h->kernel.file_version) > 0)
			l->h->kernel.file_version = version;
	}
}

static int64_t major_of(const struct looking *l, const char *device)
{
	const char *s = look_file(l, "/proc/devices", 1 << 16, NULL);
	size_t n = strlen(device);
	char *end;
	long major;

	for (; s && *s; s = strchr(s, '\n'), s = s ? s + 1 : NULL) {
		major = strtol(s, &end, 10);
		if (end != s && *end == ' ' && strncmp(end + 1, device, n) == 0 && (end[1 + n] == '\n' || !end[1 + n]))
			return major;
	}
	return -1;
}

void host_look_kernel(const struct looking *l)
{
	const char *modules = look_file(l, "/proc/modules", 1 << 20, NULL);
	const char *preserve;

	take_version(l);
	l->h->kernel.nvidia = l->h->kernel.version ? 1 : is_loaded(l, modules, "nvidia");
	l->h->kernel.uvm = is_loaded(l, modules, "nvidia_uvm");
	l->h->kernel.peermem = is_loaded(l, modules, "nvidia_peermem");
	l->h->kernel.nouveau = is_loaded(l, modules, "nouveau");
	take_installed(l);
	take_sources(l);
	preserve = look_field(l, look_file(l, "/proc/driver/nvidia/params", 1 << 14, NULL), "PreserveVideoMemoryAllocations");
	if (preserve)
		l->h->kernel.preserve_memory = strcmp(preserve, "0") != 0;
	l->h->kernel.uvm_major = major_of(l, "nvidia-uvm");
	l->h->kernel.suspends = look_number(l, "/sys/power/suspend_stats/success");
}
