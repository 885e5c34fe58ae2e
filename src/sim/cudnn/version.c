/* SPDX-License-Identifier: Apache-2.0
 * Which version of cuDNN this is. PyTorch refuses a cuDNN that is older than the one it was built with, and its choices depend on the
 * version, so it is the one that the wheel in this process requires: "Requires-Dist: nvidia-cudnn-cu13==9.19.0.56" in the metadata
 * beside its libraries.
 */
#include "sim/cudnn/cudnn.h"

#include <dirent.h>
#include <link.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* For programs other than PyTorch's wheels: what torch 2.15.0 requires, the newest that was looked at. */
enum { MAJOR = 9, MINOR = 26, PATCH = 0, CUDA_MAJOR = 13 };

static const char torch_library[] = "/torch/lib/libtorch_cuda.so";
static const char requirement[] = "Requires-Dist: nvidia-cudnn-cu";

static int major_version = MAJOR, minor_version = MINOR, patch_version = PATCH, cuda_major = CUDA_MAJOR;

/* Takes "13==9.19.0.56; …" or "12 (==9.1.0.70) ; …". */
static bool take_requirement(const char *text)
{
	int cuda, major, minor, patch;

	if (sscanf(text, "%d%*[ (]==%d.%d.%d", &cuda, &major, &minor, &patch) != 4 &&
	    sscanf(text, "%d==%d.%d.%d", &cuda, &major, &minor, &patch) != 4)
		return false;
	/* a cuDNN of another major version has another name */
	if (major != MAJOR || minor < 0 || minor > 99 || patch < 0 || patch > 99)
		return false;
	cuda_major = cuda;
	minor_version = minor;
	patch_version = patch;
	return true;
}

static bool read_metadata(const char *site, const char *folder)
{
	char path[PATH_MAX + 512], line[1024];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/METADATA", site, folder);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		if (strncmp(line, requirement, sizeof(requirement) - 1) == 0)
			found = take_requirement(line + sizeof(requirement) - 1);
	if (f)
		fclose(f);
	return found;
}

static void read_site(const char *site)
{
	DIR *d = opendir(site);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strncmp(e->d_name, "torch-", 6) == 0 && strstr(e->d_name, ".dist-info") &&
		    read_metadata(site, e->d_name))
			break;
	if (d)
		closedir(d);
}

static int look_at_library(struct dl_phdr_info *info, size_t size, void *data)
{
	char *site = data;
	const char *end = info->dlpi_name ? strstr(info->dlpi_name, torch_library) : NULL;

	(void)size;
	if (!end || (size_t)(end - info->dlpi_name) >= PATH_MAX)
		return 0;
	snprintf(site, PATH_MAX, "%.*s", (int)(end - info->dlpi_name), info->dlpi_name);
	return 1;
}

static void find_version(void)
{
	char site[PATH_MAX];

	/* the file is read after the walk: opening files inside it could take the loader's lock twice */
	if (dl_iterate_phdr(look_at_library, site))
		read_site(site);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

int dnn_version(void)
{
	pthread_once(&once, find_version);
	return major_version * 10000 + minor_version * 100 + patch_version;
}

int dnn_cudart_version(void)
{
	pthread_once(&once, find_version);
	return cuda_major * 1000;
}

STANDIN(size_t, cudnnGetVersion, (void))
{
	return (size_t)dnn_version();
}

/* The minor version of CUDA is not known here. */
STANDIN(size_t, cudnnGetCudartVersion, (void))
{
	return (size_t)dnn_cudart_version();
}

DNN(cudnnGetProperty, (int property, int *value))
{
	int version = dnn_version();

	DNN_NEEDS(value);
	switch (property) {
	case 0:
		*value = version / 10000;
		return DNN_SUCCESS;
	case 1:
		*value = version / 100 % 100;
		return DNN_SUCCESS;
	case 2:
		*value = version % 100;
		return DNN_SUCCESS;
	}
	return dnn_fail(DNN_BAD_PARAM, "there is no such property");
}
