/* SPDX-License-Identifier: Apache-2.0
 * What the program ran with, for those who read the answer elsewhere. From files alone: neither Python nor the driver is asked.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/run.h"
#include "cuwhy/format.h"

#define FILE_MAX	65536
#define DRIVER_VERSION	"/proc/driver/nvidia/version"
#define OS_RELEASE	"/etc/os-release"

/* What follows `key` in a file, up to one of `ends`; "" if there is none. */
static void value_in(const char *path, const char *key, const char *ends, char *out, size_t size)
{
	struct buf b;
	char *at;

	buf_init(&b, FILE_MAX);
	if (fs_read(path, &b, NULL) == 0 && b.data && (at = strstr(b.data, key)) != NULL) {
		at += strlen(key);
		at[strcspn(at, ends)] = '\0';
		str_plain(at, at, strlen(at));
		str_copy(out, size, at);
	}
	buf_release(&b);
}

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
	char *folder = ends ? strstr(h->torch_path, "/lib/libc10.so") : NULL, *file, *site;

	if (!folder)
		return;
	file = xasprintf("%.*s/version.py", (int)(folder - h->torch_path), h->torch_path);
	site = xasprintf("%.*s/..", (int)(folder - h->torch_path), h->torch_path);
	value_in(file, "__version__ = '", "'\n", h->torch_version, sizeof(h->torch_version));
	value_in(file, "\ncuda: Optional[str] = '", "'\n", h->torch_cuda, sizeof(h->torch_cuda));
	name_packages(h, site);
	free(file);
	free(site);
}

/* "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (...)": two spaces before the number. */
static void name_driver(struct cw_header *h)
{
	char line[256] = "", *number;

	value_in(DRIVER_VERSION, "NVRM version: ", "\n", line, sizeof(line));
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
	value_in(OS_RELEASE, "PRETTY_NAME=\"", "\"\n", h->os_name, sizeof(h->os_name));
}
