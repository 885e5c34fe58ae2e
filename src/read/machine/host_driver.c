/* SPDX-License-Identifier: Apache-2.0
 * NVIDIA's driver as the machine's files show it: the kernel's modules, the device nodes, the libraries of programs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"
#include "base/tree.h"
#include "read/machine/look.h"

#define KERNELS_MAX	16

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build ..." */
static void module_take_version(const struct looking *l)
{
	const char *text = look_file(l, "/proc/driver/nvidia/version", 4096, NULL);
	const char *line = text ? strstr(text, "NVRM version:") : NULL;

	if (line) {
		l->h->kernel.version = look_version(l, line);
		l->h->kernel.flavour =
			memmem(line, strcspn(line, "\n"), "Open Kernel Module", 18) ? "open" : "proprietary";
	}
	if (!l->h->kernel.version)
		l->h->kernel.version = look_version(l, look_line(l, "/sys/module/nvidia/version"));
}

static int module_is_loaded(const struct looking *l, const char *modules, const char *name)
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
static int kernel_has_module(const struct looking *l, const char *release)
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

static void module_take_installed(const struct looking *l)
{
	const char *release = l->h->os.kernel;
	char **names;
	int i, n;

	if (!release || strchr(release, '/'))
		return;
	l->h->kernel.installed = kernel_has_module(l, release);
	if (l->h->kernel.installed != 0)
		return;
	n = look_list(l, "/lib/modules", KERNELS_MAX, &names);
	l->h->kernel.other_kernel = n < 0 ? -1 : 0;
	for (i = 0; i < n; i++)
		if (strcmp(names[i], release) != 0 && kernel_has_module(l, names[i]) == 1)
			l->h->kernel.other_kernel = 1;
}

/* Sources that DKMS builds from: /usr/src/nvidia-580.65.06, nvidia-srv-580.65.06, nvidia-open-580.65.06. */
static void module_take_sources(const struct looking *l)
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

static int64_t device_major(const struct looking *l, const char *device)
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

void host_look_modules(const struct looking *l)
{
	const char *modules = look_file(l, "/proc/modules", 1 << 20, NULL);
	const char *preserve;

	module_take_version(l);
	l->h->kernel.nvidia = l->h->kernel.version ? 1 : module_is_loaded(l, modules, "nvidia");
	l->h->kernel.uvm = module_is_loaded(l, modules, "nvidia_uvm");
	l->h->kernel.peermem = module_is_loaded(l, modules, "nvidia_peermem");
	l->h->kernel.nouveau = module_is_loaded(l, modules, "nouveau");
	module_take_installed(l);
	module_take_sources(l);
	preserve = look_field(l, look_file(l, "/proc/driver/nvidia/params", 1 << 14, NULL),
			      "PreserveVideoMemoryAllocations");
	if (preserve)
		l->h->kernel.preserve_memory = strcmp(preserve, "0") != 0;
	l->h->kernel.uvm_major = device_major(l, "nvidia-uvm");
	l->h->kernel.suspends = look_number(l, "/sys/power/suspend_stats/success");
}

#define NODES_MAX	4096

static bool is_node_name(const char *name)
{
	static const char *const exact[] = {"nvidiactl",      "nvidia-uvm",	    "nvidia-uvm-tools",
					    "nvidia-modeset", "nvidia-nvswitchctl", "dxg"};

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
static void node_numbers_in_tree(const struct looking *l, struct host_node *n)
{
	const char *text = look_line(l, n->path);
	unsigned int a, b;

	if (text && sscanf(text, "%u:%u", &a, &b) == 2) {
		n->major = a;
		n->minor = b;
	}
}

static void node_add(const struct looking *l, const char *path)
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
		node_numbers_in_tree(l, n);
	}
}

static void node_add_missing(const struct looking *l, const char *path)
{
	if (!host_node(l->h, path))
		node_add(l, path);
}

static void nodes_add_folder(const struct looking *l, const char *dir, bool all)
{
	char **names;
	int i, n = look_list(l, dir, NODES_MAX, &names);

	for (i = 0; i < n; i++)
		if (all || is_node_name(names[i]))
			node_add(l, pool_printf(l->pool, "%s/%s", dir, names[i]));
	if (n < 0 && n != -ENOENT)
		look_gap(l, dir, strerror(-n));
	if (all && strstr(dir, "imex"))
		l->h->fabric.imex_channel = n > 0;
}

static void take_nodes(const struct looking *l)
{
	if (!look_exists(l, "/dev")) {
		look_gap(l, "/dev", "it is not there");
		return;
	}
	nodes_add_folder(l, "/dev", false);
	node_add_missing(l, "/dev/nvidiactl");
	node_add_missing(l, "/dev/nvidia-uvm");
	for (ptrdiff_t i = 0; i < l->h->n_gpu; i++)
		if (l->h->gpu[i].minor >= 0)
			node_add_missing(l, pool_printf(l->pool, "/dev/nvidia%lld", (long long)l->h->gpu[i].minor));
	nodes_add_folder(l, "/dev/nvidia-caps", true);
	nodes_add_folder(l, "/dev/nvidia-caps-imex-channels", true);
}

#define CAPABILITIES "/proc/driver/nvidia/capabilities"

/* The number after a word: "gi7" is 7. -1 when it is something else. */
static int64_t instance_number(const char *name, const char *word)
{
	size_t n = strlen(word);
	uint64_t value;

	if (!str_starts(name, word) || !str_u64(name + n, &value) || value > 65535)
		return -1;
	return (int64_t)value;
}

static void mig_add_instance(const struct looking *l, const char *dir, int64_t gpu, int64_t gi, int64_t ci)
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

static void mig_take_gpu_instance(const struct looking *l, const char *dir, int64_t gpu, int64_t gi)
{
	char **names;
	int64_t ci;
	int i, n = look_list(l, dir, HOST_LIST_MAX, &names);

	l->h->mig.gpu_instances++;
	mig_add_instance(l, dir, gpu, gi, -1);
	for (i = 0; i < n; i++) {
		ci = instance_number(names[i], "ci");
		if (ci < 0)
			continue;
		l->h->mig.compute_instances++;
		mig_add_instance(l, pool_printf(l->pool, "%s/%s", dir, names[i]), gpu, gi, ci);
	}
}

static void take_mig(const struct looking *l)
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
		gpu = instance_number(gpus[i], "gpu");
		if (gpu < 0)
			continue;
		dir = pool_printf(l->pool, CAPABILITIES "/%s/mig", gpus[i]);
		m = look_list(l, dir, HOST_LIST_MAX, &names);
		for (k = 0; k < m; k++) {
			gi = instance_number(names[k], "gi");
			if (gi >= 0)
				mig_take_gpu_instance(l, pool_printf(l->pool, "%s/%s", dir, names[k]), gpu, gi);
		}
	}
}

void host_look_nodes(const struct looking *l)
{
	take_nodes(l);
	take_mig(l);
}

#define PATH_ENTRIES	64
#define CONF_FILES	64

static const char *const library_names[] = {"libcuda.so.1", "libnvidia-ml.so.1", "libnvidia-ptxjitcompiler.so.1"};

/* ELF: 64 or 32 bits; 0: something else, an empty file for one; -1: not readable. */
static int64_t elf_bits(const struct looking *l, const char *path)
{
	int fd = tree_open(l->root, path);
	char head[5] = "";
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n < 0)
		return -1;
	if (n < (ssize_t)sizeof(head) || memcmp(head, "\177ELF", 4) != 0)
		return 0;
	return head[4] == 2 ? 64 : head[4] == 1 ? 32 : 0;
}

static const char *library_kind(const char *path, const char *real)
{
	if (strstr(path, "/stubs") || (real && strstr(real, "/stubs")))
		return "stub";
	if (strstr(path, "/compat") || (real && strstr(real, "/compat")))
		return "compat";
	return strstr(path, "/usr/lib/wsl/") || (real && strstr(real, "/usr/lib/wsl/")) ? "wsl" : "system";
}

/* "libcuda.so.580.65.06"; the "1.1" in WSL is not a driver version. */
static const char *driver_library_version(const struct looking *l, const char *real)
{
	const char *so = real ? strstr(real, ".so.") : NULL;
	const char *version = so ? look_version(l, so + 4) : NULL;

	return version && strtol(version, NULL, 10) > 9 ? version : NULL;
}

static bool library_is_known(const struct looking *l, const char *name, const char *real, const char *path)
{
	for (ptrdiff_t i = 0; i < l->h->n_library; i++) {
		const struct host_library *b = &l->h->library[i];

		if (strcmp(b->name, name) != 0)
			continue;
		if (strcmp(b->path, path) == 0 || (real && b->real && strcmp(b->real, real) == 0))
			return true;
	}
	return false;
}

static void library_add_file(const struct looking *l, const char *dir, const char *name, bool in_path)
{
	char inside[TREE_PATH_MAX], *path = pool_printf(l->pool, "%s/%s", dir, name);
	struct host_library *b;
	const char *real = NULL, *from;
	struct stat st;

	if (tree_resolve(l->root, path, inside) == 0)
		real = look_clean(l, inside, strlen(inside));
	else if (!look_link_name(l, dir, name))
		return;		/* not even a broken link */
	if (library_is_known(l, name, real, path))
		return;
	b = host_add(l->h, l->pool, HOST_LIST_library);
	if (!b)
		return;
	b->name = name;
	b->path = look_clean(l, path, strlen(path));
	b->real = real;
	b->kind = library_kind(path, real);
	b->version = driver_library_version(l, real);
	b->in_path = in_path;
	from = look_mounted(l, real ? real : path);
	b->mounted = l->mounts ? from != NULL : -1;
	if (!b->version && from)	/* mounted under the short name; on the host it has the long one */
		b->version = driver_library_version(l, from);
	if (real && tree_stat(l->root, path, &st) == 0) {
		b->bytes = st.st_size;
		b->bits = elf_bits(l, path);
	}
}

static void libraries_add_folder(const struct looking *l, const char *dir, bool in_path)
{
	if (dir[0] != '/' || strlen(dir) > 1024 || !tree_is_dir(l->root, dir))
		return;
	for (size_t i = 0; i < sizeof(library_names) / sizeof(library_names[0]); i++)
		library_add_file(l, dir, library_names[i], in_path);
}

static void libraries_add_path(const struct looking *l, const char *list)
{
	size_t n;

	for (int i = 0; list && *list && i < PATH_ENTRIES; i++) {
		n = strcspn(list, ":;");
		if (n && n < 1024)
			libraries_add_folder(l, pool_copy(l->pool, list, n), true);
		list += n + (list[n] != '\0');
	}
}

/* Folders that the loader is configured with; pyenv/ follows how it combines them. */
static void libraries_add_conf(const struct looking *l)
{
	const char *text;
	char **files;
	size_t len;
	int i, n = look_list(l, "/etc/ld.so.conf.d", CONF_FILES, &files);

	for (i = 0; i < n; i++) {
		text = look_file(l, pool_printf(l->pool, "/etc/ld.so.conf.d/%s", files[i]), 4096, NULL);
		for (; text && *text; text += len, text += *text == '\n') {
			len = strcspn(text, "\n");
			if (*text == '/')
				libraries_add_folder(l, look_clean(l, text, len), false);
		}
	}
}

static void libraries_add_toolkits(const struct looking *l)
{
	static const char *const below[] = {"compat", "compat/lib", "compat/lib.real", "lib64/stubs"};
	char **dirs;
	int i, n = look_list(l, "/usr/local", 512, &dirs);

	for (i = 0; i < n; i++) {
		if (!str_starts(dirs[i], "cuda"))
			continue;
		for (size_t k = 0; k < sizeof(below) / sizeof(below[0]); k++)
			libraries_add_folder(l, pool_printf(l->pool, "/usr/local/%s/%s", dirs[i], below[k]), false);
	}
}

void host_look_libraries(const struct looking *l)
{
	static const char *const dirs[] = {
		"/usr/lib/x86_64-linux-gnu",
		"/usr/lib/aarch64-linux-gnu",
		"/usr/lib64",
		"/usr/lib",
		"/lib/x86_64-linux-gnu",
		"/lib64",
		"/usr/lib/wsl/lib", "/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/run/opengl-driver/lib",
		"/usr/lib/x86_64-linux-gnu/nvidia/current", "/usr/lib64/nvidia", "/usr/lib/i386-linux-gnu",
	};

	if (look_exists(l, "/usr") || look_exists(l, "/lib"))
		host_looked(l->h, HOST_LIST_library);
	libraries_add_path(l, look_env(l, "LD_LIBRARY_PATH"));
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		libraries_add_folder(l, dirs[i], false);
	libraries_add_conf(l);
	libraries_add_toolkits(l);
}
