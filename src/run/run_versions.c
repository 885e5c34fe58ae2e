/* SPDX-License-Identifier: Apache-2.0
 * What the program ran with, for those who read the answer elsewhere. From files alone: neither Python nor the driver is asked.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "read/recording/torch_version.h"
#include "run/run.h"
#include "cuwhy/format.h"

#define DRIVER_VERSION	"/proc/driver/nvidia/version"
#define OS_RELEASE	"/etc/os-release"

/* "nvidia_cudnn_cu13-9.13.0.50.dist-info" in site-packages. */
static void name_package(DIR *site, const char *package, char *out, size_t size)
{
	struct dirent *entry;

	rewinddir(site);
	while ((entry = readdir(site)) != NULL) {
		const char *dash = str_starts(entry->d_name, package) ? strchr(entry->d_name, '-') : NULL;
		const char *end = dash ? strstr(dash, ".dist-info") : NULL;

		if (!end || (size_t)(end - dash - 1) >= size)
			continue;
		snprintf(out, size, "%.*s", (int)(end - dash - 1), dash + 1);
		return;
	}
}

static void name_packages(struct cw_header *h, const char *site)
{
	DIR *dir = opendir(site);

	if (!dir)
		return;
	name_package(dir, "nvidia_cudnn_cu", h->cudnn_version, sizeof(h->cudnn_version));
	name_package(dir, "nvidia_nccl_cu", h->nccl_version, sizeof(h->nccl_version));
	closedir(dir);
}

/* Beside the library that the process loaded. */
static void name_torch(struct cw_header *h)
{
	bool ends = memchr(h->torch_path, '\0', sizeof(h->torch_path)) != NULL;
	char *folder = ends ? strstr(h->torch_path, "/lib/libc10.so") : NULL, *site;

	if (!folder)
		return;
	site = xasprintf("%.*s/..", (int)(folder - h->torch_path), h->torch_path);
	torch_value(h->torch_path, TORCH_VERSION_KEY, h->torch_version, sizeof(h->torch_version));
	torch_value(h->torch_path, TORCH_CUDA_KEY, h->torch_cuda, sizeof(h->torch_cuda));
	name_packages(h, site);
	free(site);
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (...)": two spaces before the number. */
static void name_driver(struct cw_header *h)
{
	char line[256] = "", *number;

	file_value(DRIVER_VERSION, "NVRM version: ", "\n", line, sizeof(line));
	number = strstr(line, "  ");
	if (!number)
		return;
	number += strspn(number, " ");
	number[strcspn(number, " ")] = '\0';
	str_copy(h->driver_release, sizeof(h->driver_release), number);
}

void versions_name(void *bytes, size_t len)
{
	struct cw_header *h = bytes;

	if (!bytes || len < sizeof(*h))
		return;
	name_torch(h);
	if (!h->sim)
		name_driver(h);
	file_value(OS_RELEASE, "PRETTY_NAME=\"", "\"\n", h->os_name, sizeof(h->os_name));
}
