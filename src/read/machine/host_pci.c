/* SPDX-License-Identifier: Apache-2.0
 * NVIDIA's devices on the PCI bus, seen without a driver, and what the kernel module says about each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/tree.h"
#include "read/machine/look.h"

#define BUS		"/sys/bus/pci/devices"
#define DEVICES_MAX	4096
#define CAPABILITIES_MAX 64
#define NVIDIA		0x10de
#define CLASS_VGA	0x0300
#define CLASS_3D	0x0302
#define CLASS_BRIDGE	0x0680		/* an NVSwitch */
#define CAP_ACS		0x000d
#define ACS_REDIRECT	0x1c		/* requests, completions and upstream forwarding */

static char *device_file(const struct looking *l, const char *address, const char *name)
{
	return pool_printf(l->pool, BUS "/%s/%s", address, name);
}

/* One word of the configuration space. Each read goes to the device, so read only what is needed. */
static bool config_word(int fd, uint32_t at, uint32_t *word)
{
	unsigned char c[4];

	if (pread(fd, c, sizeof(c), at) != (ssize_t)sizeof(c))
		return false;
	*word = (uint32_t)c[0] | (uint32_t)c[1] << 8 | (uint32_t)c[2] << 16 | (uint32_t)c[3] << 24;
	return true;
}

static int gpu_answers(const struct looking *l, const char *address)
{
	int fd = tree_open(l->root, device_file(l, address, "config"));
	uint32_t word;
	bool read;

	if (fd < 0)
		return -1;
	read = config_word(fd, 0, &word);
	close(fd);
	return read ? (word & 0xffff) != 0xffff : -1;
}

/* The capabilities beyond the first 256 bytes are a list. Without root the kernel shows only 64 bytes. */
static int64_t acs_bits(int fd)
{
	uint32_t at = 0x100, head, control;

	if (!config_word(fd, at, &head))
		return -1;
	for (int i = 0; i < CAPABILITIES_MAX && head != 0 && head != UINT32_MAX; i++) {
		if ((head & 0xffff) == CAP_ACS)
			return config_word(fd, at + 4, &control) ? (int64_t)(control >> 16 & ACS_REDIRECT) : -1;
		at = head >> 20 & 0xffc;
		if (at < 0x100 || !config_word(fd, at, &head))
			break;
	}
	return 0;
}

/* ACS bits that send traffic between GPUs up to the CPU; -1 when they cannot be read. */
static int64_t acs_of(const struct looking *l, const char *address)
{
	int fd = tree_open(l->root, device_file(l, address, "config"));
	int64_t bits;

	if (fd < 0)
		return -1;
	bits = acs_bits(fd);
	close(fd);
	return bits;
}

static bool is_pci_address(const char *s, size_t n)
{
	return n >= 12 && n < 20 && strspn(s, "0123456789abcdef:.") >= n && memchr(s, ':', n) && memchr(s, '.', n);
}

/* The bridges above a device are the folders above it. */
static void gpu_take_path(const struct looking *l, struct host_gpu *g)
{
	char inside[TREE_PATH_MAX], above[512] = "";
	const char *s, *end;
	size_t used = 0;

	if (tree_resolve(l->root, pool_printf(l->pool, BUS "/%s", g->address), inside) != 0)
		return;
	for (s = inside + 1; (end = strchr(s, '/')) != NULL; s = end + 1) {
		if (!is_pci_address(s, (size_t)(end - s)) || used + (size_t)(end - s) + 2 > sizeof(above))
			continue;
		if (used)
			above[used++] = '/';
		memcpy(above + used, s, (size_t)(end - s));
		used += (size_t)(end - s);
		above[used] = '\0';
	}
	g->path = pool_strdup(l->pool, above);
}

static void gpu_take_acs(const struct looking *l, struct host_gpu *g)
{
	const char *s = g->path;
	int64_t bits, all = 0;
	char *bridge;

	for (; s && *s; s += strcspn(s, "/"), s += *s == '/') {
		bridge = pool_copy(l->pool, s, strcspn(s, "/"));
		bits = acs_of(l, bridge);
		if (bits < 0 || all < 0)
			all = -1;
		else
			all |= bits;
	}
	g->acs = g->path ? all : -1;
}

static const char *gpu_driver(const struct looking *l, const char *address)
{
	const char *dir = pool_printf(l->pool, BUS "/%s", address), *name = look_link_name(l, dir, "driver");

	return name ? name : errno == ENOENT ? "" : NULL;
}

static void gpu_add(const struct looking *l, const char *address, int64_t class)
{
	struct host_gpu *g = host_add(l->h, l->pool, HOST_LIST_gpu);

	if (!g)
		return;
	g->address = look_clean(l, address, strlen(address));
	g->class = class;
	g->device = look_number(l, device_file(l, address, "device"));
	g->driver = gpu_driver(l, address);
	g->answers = gpu_answers(l, address);
	g->link_speed = look_line(l, device_file(l, address, "current_link_speed"));
	g->link_width = look_number(l, device_file(l, address, "current_link_width"));
	g->link_width_max = look_number(l, device_file(l, address, "max_link_width"));
	g->numa = look_number(l, device_file(l, address, "numa_node"));
	gpu_take_path(l, g);
	gpu_take_acs(l, g);
}

static struct host_gpu *gpu_at(const struct looking *l, const char *address)
{
	struct host_gpu *g;

	for (ptrdiff_t i = 0; i < l->h->n_gpu; i++)
		if (l->h->gpu[i].address && strcmp(l->h->gpu[i].address, address) == 0)
			return &l->h->gpu[i];
	g = host_add(l->h, l->pool, HOST_LIST_gpu);
	if (g)
		g->address = look_clean(l, address, strlen(address));
	return g;
}

static void gpu_take_information(const struct looking *l, const char *address)
{
	const char *text =
		look_file(l, pool_printf(l->pool, "/proc/driver/nvidia/gpus/%s/information", address), 4096, NULL);
	struct host_gpu *g = text ? gpu_at(l, address) : NULL;
	const char *s;

	if (!g)
		return;
	g->model = look_field(l, text, "Model");
	g->uuid = look_field(l, text, "GPU UUID");
	if (g->uuid && strchr(g->uuid, '?'))
		g->uuid = NULL;
	s = look_field(l, text, "Device Minor");
	if (s && *s >= '0' && *s <= '9')
		g->minor = strtol(s, NULL, 10);
	g->firmware = look_field(l, text, "GPU Firmware");
	s = look_field(l, text, "GPU Excluded");
	if (s)
		g->excluded = strcmp(s, "Yes") == 0;
}

static void take_bus(const struct looking *l)
{
	int64_t class, switches = 0;
	char **names;
	int i, n = look_list(l, BUS, DEVICES_MAX, &names);

	if (n < 0)
		look_gap(l, "the PCI bus", strerror(-n));
	for (i = 0; i < n; i++) {
		if (look_number(l, device_file(l, names[i], "vendor")) != NVIDIA)
			continue;
		class = look_number(l, device_file(l, names[i], "class"));
		class = class < 0 ? -1 : class >> 8;
		if (class == CLASS_VGA || class == CLASS_3D)
			gpu_add(l, names[i], class);
		switches += class == CLASS_BRIDGE;
	}
	if (n >= 0) {
		l->h->fabric.switches = switches;
		host_looked(l->h, HOST_LIST_gpu);
	}
	n = look_list(l, "/proc/driver/nvidia/gpus", HOST_LIST_MAX, &names);
	for (i = 0; i < n; i++)
		gpu_take_information(l, names[i]);
}

static void count_bridges(const struct looking *l)
{
	const char *seen = "", *s;
	char *bridge;

	l->h->iommu.acs_bridges = 0;
	for (ptrdiff_t i = 0; i < l->h->n_gpu; i++) {
		if (l->h->gpu[i].acs < 0) {
			l->h->iommu.acs_bridges = -1;
			return;
		}
		for (s = l->h->gpu[i].path; s && *s; s += strcspn(s, "/"), s += *s == '/') {
			bridge = pool_copy(l->pool, s, strcspn(s, "/"));
			if (strstr(seen, bridge))
				continue;
			seen = pool_printf(l->pool, "%s %s", seen, bridge);
			if (acs_of(l, bridge) <= 0)
				continue;
			if (l->h->iommu.acs_bridges++ == 0)
				l->h->iommu.acs_first = bridge;
		}
	}
}

static void take_iommu(const struct looking *l)
{
	const char *cmdline = look_line(l, "/proc/cmdline");
	char **names;
	int n = look_list(l, "/sys/class/iommu", 64, &names);

	if (n >= 0)
		l->h->iommu.on = n > 0;
	else if (look_exists(l, "/sys/class"))
		l->h->iommu.on = 0;
	if (cmdline)
		l->h->iommu.passthrough =
			strstr(cmdline, "iommu=pt") != NULL || strstr(cmdline, "iommu.passthrough=1") != NULL;
	if (l->h->n_gpu > 0)
		count_bridges(l);
}

void host_look_pci(const struct looking *l)
{
	take_bus(l);
	take_iommu(l);
}
