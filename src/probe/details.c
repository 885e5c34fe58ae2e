/* SPDX-License-Identifier: Apache-2.0
 * What NVML tells of one GPU beyond its memory (see details.h). Names and arguments are from NVIDIA's "NVML API Reference
 * Guide"; all of them are optional here: older drivers have fewer.
 */
#include "probe/details.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "base/banned.h"

enum { UNCORRECTED = 1, VOLATILE = 0, AGGREGATE = 1, MIG_DEVICES_MAX = 64 };

/* nvmlGpuFabricInfo_t, with room behind it: it has grown before. */
struct fabric {
	unsigned char cluster[16];
	int status;
	unsigned int clique;
	unsigned char state, more[39];
};

static struct {
	int (*capability)(void *, int *, int *);
	int (*compute_mode)(void *, unsigned int *);
	int (*mig)(void *, unsigned int *, unsigned int *);
	int (*mig_count)(void *, unsigned int *);
	int (*mig_device)(void *, unsigned int, void **);
	int (*ecc)(void *, unsigned int *, unsigned int *);
	int (*ecc_errors)(void *, unsigned int, unsigned int, unsigned long long *);
	int (*remapped)(void *, unsigned int *, unsigned int *, unsigned int *, unsigned int *);
	int (*retired)(void *, unsigned int *);
	int (*persistence)(void *, unsigned int *);
	int (*fabric)(void *, struct fabric *);
} nvml;

static const struct { void *where; const char *name; } functions[] = {
	{&nvml.capability, "nvmlDeviceGetCudaComputeCapability"},
	{&nvml.compute_mode, "nvmlDeviceGetComputeMode"},
	{&nvml.mig, "nvmlDeviceGetMigMode"},
	{&nvml.mig_count, "nvmlDeviceGetMaxMigDeviceCount"},
	{&nvml.mig_device, "nvmlDeviceGetMigDeviceHandleByIndex"},
	{&nvml.ecc, "nvmlDeviceGetEccMode"},
	{&nvml.ecc_errors, "nvmlDeviceGetTotalEccErrors"},
	{&nvml.remapped, "nvmlDeviceGetRemappedRows"},
	{&nvml.retired, "nvmlDeviceGetRetiredPagesPendingStatus"},
	{&nvml.persistence, "nvmlDeviceGetPersistenceMode"},
	{&nvml.fabric, "nvmlDeviceGetGpuFabricInfo"},
};

void details_init(struct gpu_details *d)
{
#define DETAIL(field, text) d->field = -1;
#include "probe/details.def"
#undef DETAIL
}

void details_load(void *library)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		void *f = dlsym(library, functions[i].name);

		memcpy(functions[i].where, &f, sizeof(f));
	}
}

static int64_t ask_one(int (*f)(void *, unsigned int *), void *device)
{
	unsigned int value = 0;

	return f && f(device, &value) == 0 ? (int64_t)value : -1;
}

static void ask_two(int (*f)(void *, unsigned int *, unsigned int *), void *device, int64_t *now, int64_t *later)
{
	unsigned int a = 0, b = 0;

	if (!f || f(device, &a, &b) != 0)
		return;
	*now = a;
	*later = b;
}

static int64_t ask_errors(void *device, unsigned int which)
{
	unsigned long long n = 0;

	return nvml.ecc_errors && nvml.ecc_errors(device, UNCORRECTED, which, &n) == 0 && n <= INT64_MAX ? (int64_t)n : -1;
}

static int64_t count_mig_devices(void *device)
{
	int64_t most = ask_one(nvml.mig_count, device), n = 0;
	void *instance;

	if (most < 0 || !nvml.mig_device)
		return -1;
	for (unsigned int i = 0; i < most && i < MIG_DEVICES_MAX; i++)
		n += nvml.mig_device(device, i, &instance) == 0;
	return n;
}

static void ask_rows(void *device, struct gpu_details *d)
{
	unsigned int corrected = 0, uncorrected = 0, pending = 0, failed = 0;

	if (!nvml.remapped || nvml.remapped(device, &corrected, &uncorrected, &pending, &failed) != 0)
		return;
	d->remapped = uncorrected;
	d->remap_pending = pending != 0;
	d->remap_failed = failed != 0;
}

static void ask_fabric(void *device, struct gpu_details *d)
{
	struct fabric f = {.state = 0};

	if (!nvml.fabric || nvml.fabric(device, &f) != 0)
		return;
	d->fabric_state = f.state;
	d->fabric_status = f.status;
}

void details_ask(void *device, struct gpu_details *d)
{
	int major = 0, minor = 0;

	details_init(d);
	if (nvml.capability && nvml.capability(device, &major, &minor) == 0) {
		d->cc_major = major;
		d->cc_minor = minor;
	}
	d->compute_mode = ask_one(nvml.compute_mode, device);
	ask_two(nvml.mig, device, &d->mig, &d->mig_pending);
	if (d->mig == 1)
		d->mig_devices = count_mig_devices(device);
	ask_two(nvml.ecc, device, &d->ecc, &d->ecc_pending);
	d->ecc_volatile = ask_errors(device, VOLATILE);
	d->ecc_aggregate = ask_errors(device, AGGREGATE);
	ask_rows(device, d);
	d->retire_pending = ask_one(nvml.retired, device);
	d->persistence = ask_one(nvml.persistence, device);
	ask_fabric(device, d);
}
