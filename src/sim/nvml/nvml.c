/* SPDX-License-Identifier: Apache-2.0
 * A libnvidia-ml.so.1 of our own with the functions that the probe and PyTorch call (see README.md).
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml/sim_nvml.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	OK = 0,
	INVALID_ARGUMENT = 2,
	NOT_SUPPORTED = 3,
	NOT_FOUND = 6,
	INSUFFICIENT_SIZE = 7,
	DRIVER_NOT_LOADED = 9,
	FUNCTION_NOT_FOUND = 13,
	GPU_IS_LOST = 15
};

/* The planned failure of this function; 0 = none. */
static int planned(const char *name)
{
	for (size_t i = 0; i < machine.n_plans; i++) {
		if (strcmp(machine.plan[i].name, name) != 0)
			continue;
		while (machine.plan[i].what == 'h')
			pause();
		if (machine.plan[i].what == 'c')
			raise(SIGSEGV);
		return machine.plan[i].code;
	}
	return OK;
}

static int put_text(char *to, unsigned int room, const char *text)
{
	if (strlen(text) >= room)
		return INSUFFICIENT_SIZE;
	memcpy(to, text, strlen(text) + 1);
	return OK;
}

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
	return machine_read() ? planned(__func__) : DRIVER_NOT_LOADED;
}

EXPORT int nvmlInit(void);
EXPORT int nvmlInit(void)
{
	return nvmlInit_v2();
}

EXPORT int nvmlInitWithFlags(unsigned int flags);
EXPORT int nvmlInitWithFlags(unsigned int flags)
{
	(void)flags;			/* whether a machine without GPUs is an error */
	return nvmlInit_v2();
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void)
{
	return OK;
}

EXPORT const char *nvmlErrorString(int code);
EXPORT const char *nvmlErrorString(int code)
{
	switch (code) {
	case OK: return "Success";
	case INVALID_ARGUMENT: return "Invalid Argument";
	case NOT_SUPPORTED: return "Not Supported";
	case NOT_FOUND: return "Not Found";
	case INSUFFICIENT_SIZE: return "Insufficient Size";
	case DRIVER_NOT_LOADED: return "Driver Not Loaded";
	case FUNCTION_NOT_FOUND: return "Function Not Found";
	case GPU_IS_LOST: return "GPU is lost";
	default: return "Unknown Error";
	}
}

EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned int room);
EXPORT int nvmlSystemGetDriverVersion(char *to, unsigned int room)
{
	int rc = planned(__func__);

	return rc ? rc : put_text(to, room, machine.driver[0] ? machine.driver : "580.00.00");
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *n);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *n)
{
	*n = (unsigned int)machine.n_gpus;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetCount(unsigned int *n);
EXPORT int nvmlDeviceGetCount(unsigned int *n)
{
	return nvmlDeviceGetCount_v2(n);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct gpu **g);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int i, struct gpu **g)
{
	if (i >= machine.n_gpus)
		return INVALID_ARGUMENT;
	if (machine.gpu[i].lost)
		return GPU_IS_LOST;
	*g = &machine.gpu[i];
	return planned(__func__);
}

EXPORT int nvmlDeviceGetHandleByIndex(unsigned int i, struct gpu **g);
EXPORT int nvmlDeviceGetHandleByIndex(unsigned int i, struct gpu **g)
{
	return nvmlDeviceGetHandleByIndex_v2(i, g);
}

/* "0000:01:00.0", or with eight digits in front */
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, struct gpu **g);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, struct gpu **g)
{
	unsigned int domain, bus, device;

	if (!text || sscanf(text, "%x:%x:%x", &domain, &bus, &device) != 3)
		return INVALID_ARGUMENT;
	return bus ? nvmlDeviceGetHandleByIndex_v2(bus - 1, g) : NOT_FOUND;
}

EXPORT int nvmlDeviceGetHandleByPciBusId(const char *text, struct gpu **g);
EXPORT int nvmlDeviceGetHandleByPciBusId(const char *text, struct gpu **g)
{
	return nvmlDeviceGetHandleByPciBusId_v2(text, g);
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **g);
EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, struct gpu **g)
{
	for (unsigned int i = 0; uuid && i < machine.n_gpus; i++)
		if (strcmp(machine.gpu[i].uuid, uuid) == 0)
			return nvmlDeviceGetHandleByIndex_v2(i, g);
	return uuid ? NOT_FOUND : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetP2PStatus(struct gpu *g, struct gpu *peer, int index, int *status);
EXPORT int nvmlDeviceGetP2PStatus(struct gpu *g, struct gpu *peer, int index, int *status)
{
	(void)g, (void)peer, (void)index;
	*status = 0;			/* works */
	return OK;
}

/* No NVLink and no fabric: PyTorch then uses peer access alone. */
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *g, unsigned int link, int *type);
EXPORT int nvmlDeviceGetNvLinkRemoteDeviceType(struct gpu *g, unsigned int link, int *type)
{
	(void)g, (void)link, (void)type;
	return NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *g, unsigned int link, void *out);
EXPORT int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct gpu *g, unsigned int link, void *out)
{
	(void)g, (void)link, (void)out;
	return NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetGpuFabricInfoV(struct gpu *g, void *out);
EXPORT int nvmlDeviceGetGpuFabricInfoV(struct gpu *g, void *out)
{
	(void)g, (void)out;
	return NOT_SUPPORTED;
}

EXPORT int nvmlDeviceGetName(struct gpu *g, char *to, unsigned int room);
EXPORT int nvmlDeviceGetName(struct gpu *g, char *to, unsigned int room)
{
	int rc = planned(__func__);

	return rc ? rc : put_text(to, room, g->name);
}

EXPORT int nvmlDeviceGetUUID(struct gpu *g, char *to, unsigned int room);
EXPORT int nvmlDeviceGetUUID(struct gpu *g, char *to, unsigned int room)
{
	int rc = planned(__func__);

	return rc ? rc : put_text(to, room, g->uuid);
}

EXPORT int nvmlDeviceGetPciInfo_v3(struct gpu *g, void *out);
EXPORT int nvmlDeviceGetPciInfo_v3(struct gpu *g, void *out)
{
	struct {
		char legacy[16];
		unsigned int domain, bus, device, device_id, subsystem_id;
		char bus_id[32];
	} pci = {.bus = (unsigned int)(g - machine.gpu) + 1};

	snprintf(pci.bus_id, sizeof(pci.bus_id), "00000000:%02X:00.0", pci.bus);
	memcpy(out, &pci, sizeof(pci));
	return planned(__func__);
}

static int index_of(struct gpu *g, unsigned int *index)
{
	*index = (unsigned int)(g - machine.gpu);
	return OK;
}

EXPORT int nvmlDeviceGetIndex(struct gpu *g, unsigned int *index);
EXPORT int nvmlDeviceGetIndex(struct gpu *g, unsigned int *index)
{
	return index_of(g, index);
}

EXPORT int nvmlDeviceGetMinorNumber(struct gpu *g, unsigned int *minor);
EXPORT int nvmlDeviceGetMinorNumber(struct gpu *g, unsigned int *minor)
{
	return index_of(g, minor);
}

EXPORT int nvmlDeviceGetTopologyCommonAncestor(struct gpu *g, struct gpu *other, int *level);
EXPORT int nvmlDeviceGetTopologyCommonAncestor(struct gpu *g, struct gpu *other, int *level)
{
	enum { SAME_BOARD = 0, SAME_MACHINE = 50 };

	*level = g == other ? SAME_BOARD : SAME_MACHINE;
	return OK;
}

EXPORT int nvmlDeviceIsMigDeviceHandle(struct gpu *g, unsigned int *is);
EXPORT int nvmlDeviceIsMigDeviceHandle(struct gpu *g, unsigned int *is)
{
	(void)g;
	*is = 0;
	return OK;
}

EXPORT int nvmlDeviceGetMigMode(struct gpu *g, unsigned int *now, unsigned int *later);
EXPORT int nvmlDeviceGetMigMode(struct gpu *g, unsigned int *now, unsigned int *later)
{
	*now = *later = g->mig;
	return planned(__func__);
}

EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	*version = machine.cuda;
	return machine.cuda ? planned(__func__) : FUNCTION_NOT_FOUND;
}

EXPORT int nvmlSystemGetCudaDriverVersion(int *version);
EXPORT int nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

EXPORT int nvmlSystemGetNVMLVersion(char *to, unsigned int room);
EXPORT int nvmlSystemGetNVMLVersion(char *to, unsigned int room)
{
	return put_text(to, room, "13.580.00");
}

EXPORT int nvmlDeviceGetCudaComputeCapability(struct gpu *g, int *major, int *minor);
EXPORT int nvmlDeviceGetCudaComputeCapability(struct gpu *g, int *major, int *minor)
{
	*major = (int)g->cc / 10;
	*minor = (int)g->cc % 10;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetComputeMode(struct gpu *g, unsigned int *mode);
EXPORT int nvmlDeviceGetComputeMode(struct gpu *g, unsigned int *mode)
{
	*mode = g->mode;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct gpu *g, unsigned int *n);
EXPORT int nvmlDeviceGetMaxMigDeviceCount(struct gpu *g, unsigned int *n)
{
	*n = g->mig ? 7 : 0;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *g, unsigned int i, struct gpu **instance);
EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(struct gpu *g, unsigned int i, struct gpu **instance)
{
	*instance = g;
	return i < g->migs ? planned(__func__) : NOT_FOUND;
}

EXPORT int nvmlDeviceGetEccMode(struct gpu *g, unsigned int *now, unsigned int *later);
EXPORT int nvmlDeviceGetEccMode(struct gpu *g, unsigned int *now, unsigned int *later)
{
	(void)g;
	*now = *later = 1;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetTotalEccErrors(struct gpu *g, unsigned int type, unsigned int counter, unsigned long long *n);
EXPORT int nvmlDeviceGetTotalEccErrors(struct gpu *g, unsigned int type, unsigned int counter, unsigned long long *n)
{
	(void)counter;
	*n = type == 1 ? g->ecc : 0;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetRemappedRows(struct gpu *g, unsigned int *corrected, unsigned int *uncorrected,
				     unsigned int *pending, unsigned int *failed);
EXPORT int nvmlDeviceGetRemappedRows(struct gpu *g, unsigned int *corrected, unsigned int *uncorrected,
				     unsigned int *pending, unsigned int *failed)
{
	*corrected = *uncorrected = 0;
	*pending = g->remap_pending;
	*failed = g->remap_failed;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetPersistenceMode(struct gpu *g, unsigned int *mode);
EXPORT int nvmlDeviceGetPersistenceMode(struct gpu *g, unsigned int *mode)
{
	(void)g;
	*mode = 1;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetUtilizationRates(struct gpu *g, unsigned int *rates);
EXPORT int nvmlDeviceGetUtilizationRates(struct gpu *g, unsigned int *rates)
{
	rates[0] = g->busy;
	rates[1] = 0;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetGpuFabricInfo(struct gpu *g, void *out);
EXPORT int nvmlDeviceGetGpuFabricInfo(struct gpu *g, void *out)
{
	struct {
		unsigned char cluster[16];
		int status;
		unsigned int clique;
		unsigned char state;
	} info = {.state = (unsigned char)g->fabric};

	memcpy(out, &info, sizeof(info));
	return planned(__func__);
}

EXPORT int nvmlDeviceGetMemoryInfo(struct gpu *g, unsigned long long out[3]);
EXPORT int nvmlDeviceGetMemoryInfo(struct gpu *g, unsigned long long out[3])
{
	gpu_renew(g);
	out[0] = g->total;
	out[1] = g->total - g->reserved - g->used;
	out[2] = g->reserved + g->used;
	return planned(__func__);
}

EXPORT int nvmlDeviceGetMemoryInfo_v2(struct gpu *g, void *out);
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct gpu *g, void *out)
{
	struct {
		unsigned int version;
		unsigned long long total, reserved, free, used;
	} *m = out;

	if (machine.no_v2)
		return FUNCTION_NOT_FOUND;
	if (m->version != (sizeof(*m) | 2u << 24))
		return INVALID_ARGUMENT;
	gpu_renew(g);
	m->total = g->total;
	m->reserved = g->reserved;
	m->free = g->total - g->reserved - g->used;
	m->used = g->used;
	return planned(__func__);
}

static int list(struct gpu *g, char kind, size_t bytes, unsigned int *n, unsigned char *out)
{
	unsigned int room = *n;
	unsigned char entry[32];

	gpu_renew(g);
	*n = 0;
	for (size_t i = 0; i < g->n_holders; i++) {
		const struct holder *h = &g->holder[i];

		if (h->kind != kind)
			continue;
		memset(entry, 0, sizeof(entry));
		memcpy(entry, &h->pid, sizeof(h->pid));
		memcpy(entry + 8, &h->bytes, sizeof(h->bytes));
		memcpy(entry + 16, &h->instance, sizeof(h->instance));
		memcpy(entry + 20, &h->instance, sizeof(h->instance));
		if (*n < room)
			memcpy(out + *n * bytes, entry, bytes);
		(*n)++;
	}
	return *n > room ? INSUFFICIENT_SIZE : OK;
}

#define LIST(name, kind, bytes)                                                                                   \
	EXPORT int name(struct gpu *g, unsigned int *n, void *out);                                        \
	EXPORT int name(struct gpu *g, unsigned int *n, void *out)                                         \
	{                                                                                                  \
		int rc = planned(__func__);                                                                \
\
		return rc ? rc : list(g, kind, bytes, n, out);                                                    \
	}

LIST(nvmlDeviceGetComputeRunningProcesses_v3, 'c', machine.entry)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 'g', machine.entry)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 'm', machine.entry)
LIST(nvmlDeviceGetComputeRunningProcesses, 'c', 16)	/* the first form: PID and bytes */

#define NVML_OTHER(name)            \
	EXPORT int name(void);      \
	EXPORT int name(void)       \
	{                           \
		return NOT_SUPPORTED; \
	}
#include "sim/nvml/others.def"
