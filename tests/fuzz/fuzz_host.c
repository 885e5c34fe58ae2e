/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as the files of a machine and as the environment of a program.
 *
 * Records end with byte 30; the first byte of a record chooses the file ('a' the environment, 'b' … the list below), the rest
 * is its content. Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/fs.h"
#include "base/pool.h"
#include "read/machine/host.h"
#include "read/machine/variables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define GPU "/sys/bus/pci/devices/0000:01:00.0"

static const char *const files[] = {
	"/proc/self/environ",
	"/proc/driver/nvidia/version",
	"/proc/modules",
	"/proc/meminfo",
	"/proc/self/limits",
	"/proc/self/mountinfo",
	"/proc/self/cgroup",
	"/proc/self/status",
	"/proc/cpuinfo",
	"/proc/devices",
	"/proc/driver/nvidia/params",
	"/proc/driver/nvidia/gpus/0000:01:00.0/information",
	"/etc/os-release",
	"/etc/docker/daemon.json",
	"/etc/nvidia-container-runtime/config.toml",
	"/dev/kmsg",
	"/var/log/fabricmanager.log",
	"/var/lib/dpkg/status",
	"/usr/local/cuda/version.json",
	"/usr/local/cuda/version.txt",
	GPU "/vendor",
	GPU "/device",
	GPU "/class",
	GPU "/config", "/sys/fs/cgroup/devices/devices.list", "/sys/power/suspend_stats/success", "/proc/cmdline",
};
#define N_FILES (sizeof(files) / sizeof(files[0]))

static char root[64];

static void remove_all(void)
{
	char path[512];

	for (size_t i = 0; i < N_FILES; i++) {
		snprintf(path, sizeof(path), "%s%s", root, files[i]);
		for (unlink(path); strlen(path) > strlen(root);) {
			*strrchr(path, '/') = '\0';
			if (rmdir(path) != 0)
				break;
		}
	}
}

static void begin(void)
{
	snprintf(root, sizeof(root), "/tmp/cuwhy-fuzz-XXXXXX");
	if (!mkdtemp(root))
		abort();
	atexit(remove_all);
}

static void put(const char *path, const uint8_t *bytes, size_t len)
{
	char full[512];
	int fd;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0700);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	close(fd);
}

static void look(void)
{
	struct pool pool = {0};
	struct host_from from = {.root = root};
	struct variables v;
	struct host h, again;
	json_t *o;

	from.env = variables_read(&pool, root, 0);
	variables_judge(&v, &pool, from.env);
	host_collect(&h, &pool, &from);
	o = host_to_json(&h);
	if (!o || !host_from_json(&again, &pool, o))
		abort();
	json_decref(o);
	pool_release(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = 0;

	if (!root[0])
		begin();
	for (size_t i = 0; i < N_FILES; i++)
		put(files[i], NULL, 0);
	while (at < size) {
		const uint8_t *end = memchr(data + at, 30, size - at);
		size_t len = end ? (size_t)(end - data) - at : size - at;

		if (len > 1)
			put(files[(unsigned)(data[at] - 'a') % N_FILES], data + at + 1, len - 1);
		at += len + 1;
	}
	look();
	return 0;
}
