/* SPDX-License-Identifier: Apache-2.0
 * Device nodes of NVIDIA's driver: there or not, whose, and whether this process could open them. None is opened.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/str.h"
#include "base/tree.h"
#include "input/machine/host_priv.h"
#include "base/banned.h"

#define NODES_MAX	4096

static bool is_one(const char *name)
{
	static const char *const exact[] = {"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", "nvidia-nvswitchctl", "dxg"};

	for (size_t i = 0; i < sizeof(exact) / sizeof(exact[0]); i++)
		if (strcmp(name, exact[i]) == 0)
			return true;
	if (str_starts(name, "nvidia-nvswitch"))
		name += strlen("nvidia-nvswitch");
	else if (str_starts(name, "nvidia"))
		name += strlen("nvidia");
	else
		return false;
	return *name && name[strspn(name, "0123456789")] == '\0';
}

/* "195:0" in the file that stands for a node in a captured tree */
static void numbers_in_tree(const struct looking *l, struct host_node *n)
{
	const char *text = look_line(l, n->path);
	unsigned int a, b;

	if (text && sscanf(text, "%u:%u", &a, &b) == 2) {
		n->major = a;
		n->minor = b;
	}
}

static void add_node(const struct looking *l, const char *path)
{
	struct host_node *n = host_add(l->h, l->pool, HOST_LIST_node);
	struct stat st;
	int rc;

	if (!n)
		return;
	n->path = look_clean(l, path, strlen(path));
	rc = tree_stat(l->root, path, &st);
	n->exists = rc == 0 ? 1 : rc == -ENOENT ? 0 : -1;
	n->error = rc ? -rc : look_open_error(l, path);
	if (rc)
		return;
	n->mode = st.st_mode & 07777;
	n->uid = st.st_uid;
	n->gid = st.st_gid;
	n->device = S_ISCHR(st.st_mode) || (!l->live && S_ISREG(st.st_mode));
	if (S_ISCHR(st.st_mode)) {
		n->major = major(st.st_rdev);
		n->minor = minor(st.st_rdev);
	} else if (!l->live) {
		numbers_in_tree(l, n);
	}
}

static void add_missing(const struct looking *l, const char *path)
{
	if (!host_node(l->h, path))
		add_node(l, path);
}

static void add_folder(const struct looking *l, const char *dir, bool all)
{
	char **names;
	int i, n = look_list(l, dir, NODES_MAX, &names);

	for (i = 0; i < n; i++)
		if (all || is_one(names[i]))
			add_node(l, pool_printf(l->pool, "%s/%s", dir, names[i]));
	if (n < 0 && n != -ENOENT)
		look_gap(l, dir, strerror(-n));
	if (all && strstr(dir, "imex"))
		l->h->fabric.imex_channel = n > 0;
}

void host_look_nodes(const struct looking *l)
{
	if (!look_exists(l, "/dev")) {
		look_gap(l, "/dev", "it is not there");
		return;
	}
	add_folder(l, "/dev", false);
	add_missing(l, "/dev/nvidiactl");
	add_missing(l, "/dev/nvidia-uvm");
	for (ptrdiff_t i = 0; i < l->h->n_gpu; i++)
		if (l->h->gpu[i].minor >= 0)
			add_missing(l, pool_printf(l->pool, "/dev/nvidia%lld", (long long)l->h->gpu[i].minor));
	add_folder(l, "/dev/nvidia-caps", true);
	add_folder(l, "/dev/nvidia-caps-imex-channels", true);
}

/* ---- MIG ------------------------------------------------------------------------------------------------ */

#define CAPABILITIES "/proc/driver/nvidia/capabilities"

/* The number after a word: "gi7" is 7. -1 when it is something else. */
static int64_t number_after(const char *name, const char *word)
{
	size_t n = strlen(word);
	uint64_t value;

	if (!str_starts(name, word) || !str_u64(name + n, &value) || value > 65535)
		return -1;
	return (int64_t)value;
}

static void add_instance(const struct looking *l, const char *dir, int64_t gpu, int64_t gi, int64_t ci)
{
	struct host_mig_device *m = host_add(l->h, l->pool, HOST_LIST_mig_device);
	const char *text = look_file(l, pool_printf(l->pool, "%s/access", dir), 4096, NULL);
	const char *minor = look_field(l, text, "DeviceFileMinor");
	struct stat st;
	char *node;
	int rc;

	if (!m)
		return;
	m->gpu = gpu;
	m->gi = gi;
	m->ci = ci;
	if (!minor || !isdigit((unsigned char)*minor))
		return;
	m->minor = strtol(minor, NULL, 10);
	node = pool_printf(l->pool, "/dev/nvidia-caps/nvidia-cap%lld", (long long)m->minor);
	rc = tree_stat(l->root, node, &st);
	m->error = rc ? -rc : look_open_error(l, node);
}

static void take_gpu_instance(const struct looking *l, const char *dir, int64_t gpu, int64_t gi)
{
	char **names;
	int64_t ci;
	int i, n = look_list(l, dir, HOST_LIST_MAX, &names);

	l->h->mig.gpu_instances++;
	add_instance(l, dir, gpu, gi, -1);
	for (i = 0; i < n; i++) {
		ci = number_after(names[i], "ci");
		if (ci < 0)
			continue;
		l->h->mig.compute_instances++;
		add_instance(l, pool_printf(l->pool, "%s/%s", dir, names[i]), gpu, gi, ci);
	}
}

void host_look_mig(const struct looking *l)
{
	char **gpus, **names, *dir;
	int64_t gpu, gi;
	int i, k, m, n = look_list(l, CAPABILITIES, HOST_LIST_MAX, &gpus);

	if (n < 0)
		return;
	host_looked(l->h, HOST_LIST_mig_device);
	l->h->mig.gpu_instances = 0;
	l->h->mig.compute_instances = 0;
	for (i = 0; i < n; i++) {
		gpu = number_after(gpus[i], "gpu");
		if (gpu < 0)
			continue;
		dir = pool_printf(l->pool, CAPABILITIES "/%s/mig", gpus[i]);
		m = look_list(l, dir, HOST_LIST_MAX, &names);
		for (k = 0; k < m; k++) {
			gi = number_after(names[k], "gi");
			if (gi >= 0)
				take_gpu_instance(l, pool_printf(l->pool, "%s/%s", dir, names[k]), gpu, gi);
		}
	}
}
