/* SPDX-License-Identifier: Apache-2.0
 * NVML (libnvidia-ml.so.1) loaded with dlopen: every GPU, its processes and its state. Facts from NVIDIA's "NVML API
 * Reference Guide" unless noted:
 *
 *  - nvmlMemory_v2_t wants `version` = sizeof | 2 << 24. Whether its `used` includes `reserved` differs between the
 *    guide of R525 (yes) and what nvidia-smi prints, so `used` is not read: what is neither free nor reserved is used.
 *  - A process list is requested with its capacity; NVML_ERROR_INSUFFICIENT_SIZE returns the capacity needed.
 *  - nvmlProcessInfo_t has had 16 bytes (pid, bytes), 24 (and two MIG instances) and, under the same function names,
 *    in drivers 535.43 to 535.86, 32 (nvitop's pull requests 79, 89, 94). So the size is measured at each call: how far
 *    did the driver write into a prefilled buffer?
 *  - usedGpuMemory is all ones where it is not available.
 */
#include "probe/message.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define LIBRARY "libnvidia-ml.so.1"

enum { NVML_SUCCESS = 0, NVML_NOT_SUPPORTED = 3, NVML_INSUFFICIENT_SIZE = 7, NVML_FUNCTION_NOT_FOUND = 13 };

typedef struct nvml_device *nvml_device;

struct nvml_memory_v1 { unsigned long long total, free, used; };

struct nvml_memory_v2 {
	unsigned int version;
	unsigned long long total, reserved, free, used;
};

struct nvml_pci {
	char legacy[16];
	unsigned int domain, bus, device, device_id, subsystem_id;
	char bus_id[32];
};

struct nvml_utilization { unsigned int gpu, memory; };	/* percent */

/* nvmlGpuFabricInfo_t, with room after it: it has grown before. */
struct fabric {
	unsigned char cluster[16];
	int status;
	unsigned int clique;
	unsigned char state, more[39];
};

_Static_assert(sizeof(struct nvml_memory_v2) == 40, "NVML's layout");
_Static_assert(sizeof(struct nvml_pci) == 68, "NVML's layout");

/* Functions by all their names over time, newest first: all take the same arguments. */
static struct {
	int (*init)(void);
	int (*count)(unsigned int *);
	int (*device)(unsigned int, nvml_device *);
	int (*driver)(char *, unsigned int);
	int (*name)(nvml_device, char *, unsigned int);
	int (*uuid)(nvml_device, char *, unsigned int);
	int (*pci)(nvml_device, struct nvml_pci *);
	int (*memory_v2)(nvml_device, struct nvml_memory_v2 *);
	int (*memory_v1)(nvml_device, struct nvml_memory_v1 *);
	int (*compute)(nvml_device, unsigned int *, void *);
	int (*graphics)(nvml_device, unsigned int *, void *);
	int (*mps)(nvml_device, unsigned int *, void *);
	int (*mig)(nvml_device, unsigned int *, unsigned int *);
	int (*version)(char *, unsigned int);
	int (*cuda)(int *);
	const char *(*error)(int);
	/* for a GPU's state: older drivers have fewer of them */
	int (*capability)(nvml_device, int *, int *);
	int (*compute_mode)(nvml_device, unsigned int *);
	int (*mig_count)(nvml_device, unsigned int *);
	int (*mig_device)(nvml_device, unsigned int, nvml_device *);
	int (*ecc)(nvml_device, unsigned int *, unsigned int *);
	int (*ecc_errors)(nvml_device, unsigned int, unsigned int, unsigned long long *);
	int (*remapped)(nvml_device, unsigned int *, unsigned int *, unsigned int *, unsigned int *);
	int (*retired)(nvml_device, unsigned int *);
	int (*persistence)(nvml_device, unsigned int *);
	int (*fabric)(nvml_device, struct fabric *);
	int (*utilization)(nvml_device, struct nvml_utilization *);
} nvml;

static const struct { void *where; const char *name[3]; } functions[] = {
	{&nvml.init, {"nvmlInit_v2", "nvmlInit"}},
	{&nvml.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"}},
	{&nvml.device, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"}},
	{&nvml.driver, {"nvmlSystemGetDriverVersion"}},
	{&nvml.name, {"nvmlDeviceGetName"}},
	{&nvml.uuid, {"nvmlDeviceGetUUID"}},
	{&nvml.pci, {"nvmlDeviceGetPciInfo_v3"}},
	{&nvml.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"}},
	{&nvml.memory_v1, {"nvmlDeviceGetMemoryInfo"}},
	{&nvml.compute, {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
	  "nvmlDeviceGetComputeRunningProcesses"}},
	{&nvml.graphics, {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
	  "nvmlDeviceGetGraphicsRunningProcesses"}},
	{&nvml.mps, {"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
	  "nvmlDeviceGetMPSComputeRunningProcesses"}},
	{&nvml.mig, {"nvmlDeviceGetMigMode"}},
	{&nvml.version, {"nvmlSystemGetNVMLVersion"}},
	{&nvml.cuda, {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"}},
	{&nvml.error, {"nvmlErrorString"}},
	{&nvml.capability, {"nvmlDeviceGetCudaComputeCapability"}},
	{&nvml.compute_mode, {"nvmlDeviceGetComputeMode"}},
	{&nvml.mig_count, {"nvmlDeviceGetMaxMigDeviceCount"}},
	{&nvml.mig_device, {"nvmlDeviceGetMigDeviceHandleByIndex"}},
	{&nvml.ecc, {"nvmlDeviceGetEccMode"}},
	{&nvml.ecc_errors, {"nvmlDeviceGetTotalEccErrors"}},
	{&nvml.remapped, {"nvmlDeviceGetRemappedRows"}},
	{&nvml.retired, {"nvmlDeviceGetRetiredPagesPendingStatus"}},
	{&nvml.persistence, {"nvmlDeviceGetPersistenceMode"}},
	{&nvml.fabric, {"nvmlDeviceGetGpuFabricInfo"}},
	{&nvml.utilization, {"nvmlDeviceGetUtilizationRates"}},
};

static void tell_text(probe_tell tell, enum probe_word word, const char *text)
{
	struct probe_message m = {.word = word};

	str_copy(m.text, sizeof(m.text), text);
	tell(&m);
}

static void tell_refusal(probe_tell tell, const char *what, int code)
{
	const char *words = nvml.error ? nvml.error(code) : NULL;
	struct probe_message m = {.word = PROBE_REFUSED, .gpu = (uint32_t)code};

	snprintf(m.text, sizeof(m.text), "%s: %s (NVML error %d)", what, words ? words : "failed", code);
	tell(&m);
}

static bool nvml_load(probe_tell tell)
{
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *f;
	size_t i, k;

	if (!lib) {
		tell_text(tell, PROBE_NO_LIBRARY, dlerror());
		return false;
	}
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		for (f = NULL, k = 0; !f && k < 3 && functions[i].name[k]; k++)
			f = dlsym(lib, functions[i].name[k]);
		memcpy(functions[i].where, &f, sizeof(f));
	}
	if (nvml.init && nvml.count && nvml.device)
		return true;
	tell_text(tell, PROBE_NO_LIBRARY, LIBRARY " lacks NVML's functions");
	return false;
}

static void ask_memory(nvml_device d, struct gpu_card *c)
{
	struct nvml_memory_v2 v2 = {.version = (unsigned int)sizeof(v2) | 2u << 24};
	struct nvml_memory_v1 v1;

	c->total = c->reserved = c->used = c->free = USAGE_UNKNOWN;
	if (nvml.memory_v2 && nvml.memory_v2(d, &v2) == NVML_SUCCESS && v2.free <= v2.total &&
	    v2.reserved <= v2.total - v2.free) {
		c->total = v2.total;
		c->reserved = v2.reserved;
		c->free = v2.free;
		c->used = v2.total - v2.free - v2.reserved;
	} else if (nvml.memory_v1 && nvml.memory_v1(d, &v1) == NVML_SUCCESS && v1.free <= v1.total) {
		c->total = v1.total;
		c->free = v1.free;
		c->used = v1.total - v1.free;	/* includes what the driver reserves */
	}
}

static void ask_card(nvml_device d, uint32_t index, struct gpu_card *c)
{
	unsigned int now = 0, later = 0;
	struct nvml_pci pci = {.bus_id = ""};

	*c = (struct gpu_card){.index = index};
	if (nvml.name && nvml.name(d, c->name, sizeof(c->name)) != NVML_SUCCESS)
		c->name[0] = '\0';
	if (nvml.uuid && nvml.uuid(d, c->uuid, sizeof(c->uuid)) != NVML_SUCCESS)
		c->uuid[0] = '\0';
	if (nvml.pci && nvml.pci(d, &pci) == NVML_SUCCESS) {
		pci.bus_id[sizeof(pci.bus_id) - 1] = '\0';
		str_copy(c->pci, sizeof(c->pci), pci.bus_id);
	}
	if (nvml.mig && nvml.mig(d, &now, &later) == NVML_SUCCESS)
		c->mig = now == 1;
	ask_memory(d, c);
}

enum { UNCORRECTED = 1, VOLATILE = 0, AGGREGATE = 1, MIG_DEVICES_MAX = 64 };

static int64_t ask_one(int (*f)(nvml_device, unsigned int *), nvml_device device)
{
	unsigned int value = 0;

	return f && f(device, &value) == 0 ? (int64_t)value : -1;
}

static void ask_two(int (*f)(nvml_device, unsigned int *, unsigned int *), nvml_device device, int64_t *now,
		    int64_t *later)
{
	unsigned int a = 0, b = 0;

	if (!f || f(device, &a, &b) != 0)
		return;
	*now = a;
	*later = b;
}

static int64_t ask_errors(nvml_device device, unsigned int which)
{
	unsigned long long n = 0;

	return nvml.ecc_errors && nvml.ecc_errors(device, UNCORRECTED, which, &n) == 0 && n <= INT64_MAX ? (int64_t)n
													 : -1;
}

static int64_t count_mig_devices(nvml_device device)
{
	int64_t most = ask_one(nvml.mig_count, device), n = 0;
	nvml_device instance;

	if (most < 0 || !nvml.mig_device)
		return -1;
	for (unsigned int i = 0; i < most && i < MIG_DEVICES_MAX; i++)
		n += nvml.mig_device(device, i, &instance) == 0;
	return n;
}

static void ask_rows(nvml_device device, struct gpu_details *d)
{
	unsigned int corrected = 0, uncorrected = 0, pending = 0, failed = 0;

	if (!nvml.remapped || nvml.remapped(device, &corrected, &uncorrected, &pending, &failed) != 0)
		return;
	d->remapped = uncorrected;
	d->remap_pending = pending != 0;
	d->remap_failed = failed != 0;
}

static void ask_fabric(nvml_device device, struct gpu_details *d)
{
	struct fabric f = {.state = 0};

	if (!nvml.fabric || nvml.fabric(device, &f) != 0)
		return;
	d->fabric_state = f.state;
	d->fabric_status = f.status;
}

static int64_t ask_utilization(nvml_device device)
{
	struct nvml_utilization u = {.gpu = 0};

	return nvml.utilization && nvml.utilization(device, &u) == 0 && u.gpu <= 100 ? (int64_t)u.gpu : -1;
}

static void ask_details(nvml_device device, struct gpu_details *d)
{
	int major = 0, minor = 0;

	gpu_details_unknown(d);
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
	d->utilization = ask_utilization(device);
}

#define ENTRY_MAX	32u
#define FILL		0xa5
#define TRIES		4

struct entries {
	unsigned char *bytes;
	unsigned int n;
	size_t size;		/* of one */
};

static size_t entry_size(const unsigned char *bytes, unsigned int n, size_t room)
{
	static const size_t sizes[] = {16, 24, ENTRY_MAX};
	size_t end = room, i;

	while (end > 0 && bytes[end - 1] == FILL)
		end--;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (end <= n * sizes[i])
			return sizes[i];
	return ENTRY_MAX;
}

/* NVML's answer; e->bytes is the caller's in any case. */
static int ask_list(int (*list)(nvml_device, unsigned int *, void *), nvml_device d, struct entries *e)
{
	unsigned int room = 64;
	int rc = NVML_INSUFFICIENT_SIZE, i;

	for (i = 0; rc == NVML_INSUFFICIENT_SIZE && i < TRIES && room < 1u << 20; i++) {
		e->bytes = xrealloc(e->bytes, room, ENTRY_MAX);
		memset(e->bytes, FILL, (size_t)room * ENTRY_MAX);
		e->n = room;
		rc = list(d, &e->n, e->bytes);
		if (rc == NVML_SUCCESS && e->n <= room)
			e->size = entry_size(e->bytes, e->n, (size_t)room * ENTRY_MAX);
		else
			room = (e->n > room ? e->n : room) + 64;	/* more may come meanwhile */
	}
	return rc;
}

static void read_entry(const unsigned char *from, size_t size, struct gpu_holder *h)
{
	unsigned long long bytes;

	memcpy(&h->pid, from, sizeof(h->pid));
	memcpy(&bytes, from + 8, sizeof(bytes));
	h->bytes = bytes;	/* all ones mean the same to us */
	h->instance = UINT32_MAX;
	if (size >= 24)
		memcpy(&h->instance, from + 16, sizeof(h->instance));
}

/* False if the list exists but NVML did not return it. */
static bool ask_holders(nvml_device d, uint32_t gpu, int (*list)(nvml_device, unsigned int *, void *),
			enum holder_kind kind, probe_tell tell)
{
	struct probe_message m = {.word = PROBE_HOLDER, .gpu = gpu};
	struct entries e = {0};
	int rc = list ? ask_list(list, d, &e) : NVML_NOT_SUPPORTED;
	unsigned int i;

	for (i = 0; rc == NVML_SUCCESS && i < e.n; i++) {
		m.holder = (struct gpu_holder){.kind = kind};
		read_entry(e.bytes + i * e.size, e.size, &m.holder);
		tell(&m);
	}
	free(e.bytes);
	return rc == NVML_SUCCESS ||
	       (kind != HOLDER_COMPUTE && (rc == NVML_NOT_SUPPORTED || rc == NVML_FUNCTION_NOT_FOUND));
}

static void ask_gpu(uint32_t index, uint32_t gpu, nvml_device d, probe_tell tell, bool details)
{
	struct probe_message m = {.word = PROBE_GPU, .gpu = gpu};
	bool all;

	ask_card(d, index, &m.card);
	tell(&m);
	if (details) {
		m = (struct probe_message){.word = PROBE_DETAILS, .gpu = gpu};
		ask_details(d, &m.details);
		tell(&m);
	}
	all = ask_holders(d, gpu, nvml.compute, HOLDER_COMPUTE, tell);
	all &= ask_holders(d, gpu, nvml.graphics, HOLDER_GRAPHICS, tell);
	all &= ask_holders(d, gpu, nvml.mps, HOLDER_MPS, tell);
	m = (struct probe_message){.word = PROBE_HOLDERS_END, .gpu = gpu};
	if (all)
		tell(&m);
}

static void tell_versions(probe_tell tell)
{
	struct probe_message m = {.word = PROBE_NVML};
	char version[80] = "";
	int cuda = 0;

	if (nvml.driver && nvml.driver(version, sizeof(version)) == NVML_SUCCESS)
		tell_text(tell, PROBE_DRIVER, version);
	if (nvml.version && nvml.version(m.text, 80) != NVML_SUCCESS)
		m.text[0] = '\0';
	if (nvml.cuda && nvml.cuda(&cuda) == NVML_SUCCESS && cuda > 0)
		m.gpu = (uint32_t)cuda;
	tell(&m);
}

bool nvml_ask(probe_tell tell, bool details)
{
	unsigned int n = 0, i, gpu = 0;
	nvml_device d;
	int rc;

	if (!nvml_load(tell))
		return false;
	rc = nvml.init();
	if (rc != NVML_SUCCESS) {
		tell_refusal(tell, "NVML failed to start", rc);
		return false;
	}
	tell_versions(tell);
	rc = nvml.count(&n);
	if (rc != NVML_SUCCESS) {
		tell_refusal(tell, "NVML failed to count the GPUs", rc);
		return false;
	}
	for (i = 0; i < n; i++) {
		rc = nvml.device(i, &d);
		if (rc == NVML_SUCCESS)
			ask_gpu(i, gpu++, d, tell, details);
		else
			tell_refusal(tell, "NVML failed to open a GPU", rc);
	}
	return true;
}
