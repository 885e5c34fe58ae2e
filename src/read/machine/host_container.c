/* SPDX-License-Identifier: Apache-2.0
 * Containers: which kind, how the GPUs got in, and what the cgroup allows; on a host, what is installed for them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/machine/look.h"

#define NVIDIA_MAJOR	195

static bool container_is(const struct looking *l, const char *kind, const char *evidence)
{
	l->h->container.kind = kind;
	l->h->container.evidence = evidence;
	return true;
}

static const struct mount *root_mount(const struct looking *l, struct mount *m)
{
	const char *at = l->mounts;
	struct mount next;
	bool found = false;

	while (look_mount(&at, &next))
		if (strcmp(next.point, "/") == 0) {
			*m = next;
			found = true;
		}
	return found ? m : NULL;
}

/* Container images are also run as virtual machines: then "/" is a whole disk. */
static bool is_whole_disk(const struct looking *l)
{
	static const char *const disks[] = {"/dev/vd", "/dev/sd", "/dev/xvd", "/dev/nvme"};
	struct mount m;

	if (!root_mount(l, &m) || strcmp(m.root, "/") != 0)
		return false;
	for (size_t i = 0; i < sizeof(disks) / sizeof(disks[0]); i++)
		if (str_starts(m.source, disks[i]))
			return true;
	/* a volume of the machine's own; docker can make volumes too */
	return str_starts(m.source, "/dev/mapper/") && !strstr(m.source, "docker");
}

/* Files left by the programs that start containers. */
static bool container_by_files(const struct looking *l)
{
	const char *word = look_line(l, "/run/systemd/container");

	if (look_exists(l, "/var/run/secrets/kubernetes.io"))
		return container_is(l, "kubernetes", "/var/run/secrets/kubernetes.io");
	if (look_exists(l, "/run/.containerenv"))
		return container_is(l, "podman", "/run/.containerenv");
	if (look_exists(l, "/.singularity.d"))
		return container_is(l, "apptainer", "/.singularity.d");
	if (word && (strcmp(word, "systemd-nspawn") == 0 || strcmp(word, "lxc") == 0 || strcmp(word, "podman") == 0))
		return container_is(l, word, "/run/systemd/container");
	if (look_exists(l, "/.dockerenv") && !is_whole_disk(l))
		return container_is(l, "docker", "/.dockerenv");
	return false;
}

static bool container_by_words(const struct looking *l, const char *text, const char *where)
{
	static const struct { const char *word, *kind; } words[] = {
		{"kubepods", "kubernetes"},   {"libpod", "podman"},    {"/containers/storage/", "podman"},
		{"/docker", "docker"},	      {"docker-", "docker"},   {"/lxc", "lxc"},
		{"containerd", "containerd"}, {"crio-", "kubernetes"},
	};

	for (size_t i = 0; text && i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i].word))
			return container_is(l, words[i].kind, where);
	return false;
}

static bool container_by_env(const struct looking *l)
{
	const char *word = look_env(l, "container");

	if (look_env(l, "KUBERNETES_SERVICE_HOST") && !is_whole_disk(l))
		return container_is(l, "kubernetes", "KUBERNETES_SERVICE_HOST is set");
	if (look_env(l, "APPTAINER_NAME") || look_env(l, "SINGULARITY_NAME"))
		return container_is(l, "apptainer", "APPTAINER_NAME is set");
	if (word && (strcmp(word, "systemd-nspawn") == 0 || strcmp(word, "lxc") == 0 || strcmp(word, "podman") == 0))
		return container_is(l, look_clean(l, word, strlen(word)), "the variable container");
	return false;
}

static void container_take_kind(const struct looking *l)
{
	const char *group = look_file(l, "/proc/self/cgroup", 1 << 16, NULL);
	struct mount m;

	if (group && strstr(group, "kubepods")) {
		container_is(l, "kubernetes", "/proc/self/cgroup");
		return;
	}
	/* the cgroup of a desktop shell is named like a container's, so "/" must not be a disk */
	if (container_by_files(l) || container_by_env(l) ||
	    (!is_whole_disk(l) && container_by_words(l, group, "/proc/self/cgroup")))
		return;
	if (root_mount(l, &m) && strcmp(m.type, "overlay") == 0) {
		if (!container_by_words(l, m.options, "the mount of /"))
			container_is(l, "other", "/ is an overlay");
		return;
	}
	if (group || l->mounts)
		container_is(l, "none", "nothing in /proc/self or / speaks of one");
}

static bool is_driver_file(const char *point)
{
	return strstr(point, "/libcuda.so") || strstr(point, "/libnvidia-") || str_ends(point, "/nvidia-smi") ||
	       str_starts(point, "/usr/local/nvidia");
}

static bool has_loader_file(const struct looking *l)
{
	char **names;
	int i, n = look_list(l, "/etc/ld.so.conf.d", 256, &names);

	for (i = 0; i < n; i++)
		if (strstr(names[i], "nvcr-"))
			return true;
	return false;
}

static void container_take_hook(const struct looking *l)
{
	const char *at = l->mounts, *visible = look_env(l, "NVIDIA_VISIBLE_DEVICES");
	bool masked = false;
	int64_t mounts = 0;
	struct mount m;

	if (!at)
		return;
	while (look_mount(&at, &m)) {
		if (is_driver_file(m.point)) {
			if (mounts++ == 0)
				l->h->container.hook_evidence = look_clean(l, m.point, strlen(m.point));
		} else if (strcmp(m.point, "/proc/driver/nvidia") == 0 && strcmp(m.type, "tmpfs") == 0) {
			masked = true;	/* NVIDIA's own tool puts a small copy there */
		}
	}
	l->h->container.driver_mounts = mounts;
	if (mounts == 0)
		l->h->container.hook = "none";
	else if (masked)
		l->h->container.hook = "nvidia-container-cli";
	else
		l->h->container.hook = (visible && strcmp(visible, "void") == 0) || has_loader_file(l) ? "cdi" : "other";
}

/* "c 195:* rwm", "a *:* rwm": is this device allowed for reading and writing? */
static int devices_allow(const char *rules, int64_t major)
{
	char type, majors[16], minors[16], what[8];

	for (; rules && *rules; rules = strchr(rules, '\n'), rules = rules ? rules + 1 : NULL) {
		if (sscanf(rules, "%c %15[^:]:%15s %7s", &type, majors, minors, what) != 4)
			continue;
		if (type != 'a' && type != 'c')
			continue;
		if (strcmp(majors, "*") != 0 && strtoll(majors, NULL, 10) != major)
			continue;
		if (strchr(what, 'r') && strchr(what, 'w'))
			return 1;
	}
	return 0;
}

static void container_take_rules(const struct looking *l)
{
	const char *path = look_cgroup(l, "devices"), *rules;

	if (!path) {
		l->h->container.cgroup = look_cgroup(l, "") ? 2 : -1;
		return;
	}
	l->h->container.cgroup = 1;
	rules = look_file(l, pool_printf(l->pool, "/sys/fs/cgroup/devices%s/devices.list", path), 1 << 16, NULL);
	if (!rules)
		rules = look_file(l, "/sys/fs/cgroup/devices/devices.list", 1 << 16, NULL);
	if (!rules)
		return;
	l->h->container.devices_allowed = devices_allow(rules, NVIDIA_MAJOR);
	if (l->h->kernel.uvm_major >= 0)
		l->h->container.uvm_allowed = devices_allow(rules, l->h->kernel.uvm_major);
}

static void container_take_cdi(const struct looking *l)
{
	static const char *const dirs[] = {"/etc/cdi", "/var/run/cdi"};
	const char *text, *library;
	int64_t specs = 0;
	char **names;
	int i, n;

	for (size_t d = 0; d < 2; d++) {
		n = look_list(l, dirs[d], 64, &names);
		for (i = 0; i < n; i++) {
			text = look_file(l, pool_printf(l->pool, "%s/%s", dirs[d], names[i]), 1 << 18, NULL);
			if (!text || !strstr(text, "nvidia.com/"))
				continue;
			specs++;
			library = strstr(text, "libcuda.so.");
			if (library && !l->h->container.cdi_version)
				l->h->container.cdi_version = look_version(l, library);
		}
	}
	l->h->container.cdi_specs = specs;
}

static void container_take_host(const struct looking *l)
{
	const char *config = look_file(l, "/etc/docker/daemon.json", 1 << 16, NULL);

	l->h->container.toolkit = look_exists(l, "/usr/bin/nvidia-container-runtime") ||
				  look_exists(l, "/usr/bin/nvidia-ctk") ||
				  look_exists(l, "/etc/nvidia-container-runtime/config.toml");
	if (config || look_exists(l, "/usr/bin/docker") || look_exists(l, "/usr/bin/dockerd"))
		l->h->container.docker_configured = config && strstr(config, "nvidia");
}

void host_look_container(const struct looking *l)
{
	container_take_kind(l);
	container_take_hook(l);
	container_take_rules(l);
	container_take_cdi(l);
	if (l->h->container.kind && strcmp(l->h->container.kind, "none") == 0)
		container_take_host(l);
}
