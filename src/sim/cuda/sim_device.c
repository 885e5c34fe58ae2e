/* SPDX-License-Identifier: Apache-2.0
 * Initialization and devices: cuInit, fork and exit, names, attributes. */
#include "sim/cuda/sim_fault.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ATTRIBUTE_MAX = 147 };		/* of R580 */

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;

static void after_fork_in_child(void)
{
	if (atomic_load(&sim.state) != SIM_READY)
		return;
	atomic_store(&sim.fast, false);
	atomic_store(&sim.state, SIM_FORKED);
}

/* Workers may still be running while the process exits: nothing is freed, calls just fail. */
static __attribute__((destructor)) void at_exit(void)
{
	if (atomic_load(&sim.state) != SIM_READY)
		return;
	while (atomic_load(&sim.stuck))
		pause();
	atomic_store(&sim.fast, false);
	atomic_store(&sim.state, SIM_ENDED);
	sim_trigger_stop();
}

/* Workers and handlers outlive a dlclose and would crash without their code: the library stays loaded. */
static void library_pin(void)
{
	Dl_info info;

	if (dladdr(&sim, &info) && info.dli_fname)
		dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

/* A program that uses the CUDA runtime has kernels that compute nothing here. It may copy before it loads the first of them. */
static bool has_runtime(void)
{
	return dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD) || dlopen("libcudart.so.12", RTLD_NOW | RTLD_NOLOAD);
}

static int init_once(void)
{
	int code = sim_config_load();

	if (!code)
		code = sim_devices_load();
	if (code)
		return code;
	library_pin();
	atomic_store(&sim.real_code, has_runtime());
	sim_pools_init();
	pthread_atfork(NULL, NULL, after_fork_in_child);
	sim_dump_env();
	return 0;
}

int sim_cuInit(unsigned int flags)
{
	int code;

	if (flags)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&init_lock);
	if (atomic_load(&sim.state) == SIM_FRESH) {
		sim.init_code = init_once();
		atomic_store(&sim.state, sim.init_code ? SIM_FAILED : SIM_READY);
		atomic_store(&sim.fast, !sim.init_code && !sim.config.plan_count);
	}
	code = sim.init_code;
	pthread_mutex_unlock(&init_lock);
	return code;
}

int sim_cuDriverGetVersion(int *version)
{
	int code = sim_config_load();

	if (!version)
		return SIM_INVALID_VALUE;
	if (!code)
		*version = sim.config.driver;
	return code;
}

static struct sim_device *device_get(int ordinal)
{
	return ordinal >= 0 && ordinal < sim.device_count ? &sim.devices[ordinal] : NULL;
}

/* Some calls log what is wrong, others do not; the texts are R580's. */
struct sim_device *sim_device_named(int ordinal, const char *parameter)
{
	struct sim_device *d = device_get(ordinal);

	if (!d)
		sim_log("Parameter %s must be between 0 and %d", parameter, sim.device_count);
	return d;
}

int sim_cuDeviceGet(int *device, int ordinal)
{
	if (!device)
		return SIM_INVALID_VALUE;
	if (!sim_device_named(ordinal, "ordinal"))
		return SIM_INVALID_DEVICE;
	*device = ordinal;
	return 0;
}

int sim_cuDeviceGetCount(int *count)
{
	if (!count)
		return SIM_INVALID_VALUE;
	*count = sim.device_count;
	return 0;
}

int sim_cuDeviceGetName(char *name, int length, int device)
{
	struct sim_device *d = device_get(device);

	if (!d)
		return SIM_INVALID_DEVICE;
	if (!name || length <= 0)
		return SIM_INVALID_VALUE;
	snprintf(name, (size_t)length, "%s", d->model->name);
	return 0;
}

int sim_cuDeviceGetUuid(struct sim_uuid *uuid, int device)
{
	struct sim_device *d = device_get(device);

	if (!d)
		return SIM_INVALID_DEVICE;
	if (!uuid)
		return SIM_INVALID_VALUE;
	*uuid = d->uuid;
	return 0;
}

int sim_cuDeviceGetUuid_v2(struct sim_uuid *uuid, int device)
{
	return sim_cuDeviceGetUuid(uuid, device);
}

int sim_cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	struct sim_device *d = device_get(device);

	if (!d)
		return SIM_INVALID_DEVICE;
	if (!bytes)
		return SIM_INVALID_VALUE;
	*bytes = d->total;
	return 0;
}

int sim_cuDeviceComputeCapability(int *major, int *minor, int device)
{
	struct sim_device *d = device_get(device);

	if (!d)
		return SIM_INVALID_DEVICE;
	if (!major || !minor)
		return SIM_INVALID_VALUE;
	*major = d->model->major;
	*minor = d->model->minor;
	return 0;
}

int sim_cuDeviceGetPCIBusId(char *id, int length, int device)
{
	struct sim_device *d = device_get(device);

	if (!d)
		return SIM_INVALID_DEVICE;
	if (!id || length < 13)
		return SIM_INVALID_VALUE;
	snprintf(id, (size_t)length, "0000:%02X:00.0", d->physical + 1);
	return 0;
}

int sim_cuDeviceGetByPCIBusId(int *device, const char *id)
{
	char own[16];

	if (!device || !id)
		return SIM_INVALID_VALUE;
	for (int i = 0; i < sim.device_count; i++) {
		sim_cuDeviceGetPCIBusId(own, sizeof(own), i);
		if (strcmp(own, id))
			continue;
		*device = i;
		return 0;
	}
	return SIM_INVALID_DEVICE;
}

bool sim_device_peers(int device, int peer)
{
	return device != peer && sim.devices[device].model->peers && sim.devices[peer].model->peers;
}

int sim_cuDeviceCanAccessPeer(int *can, int device, int peer)
{
	if (!device_get(device) || !device_get(peer))
		return SIM_INVALID_DEVICE;
	if (!can)
		return SIM_INVALID_VALUE;
	*can = sim_device_peers(device, peer);
	return 0;
}

/* 1: rank of the link, 2: access, 3: atomics, 4: arrays, 5: partial atomics. */
int sim_cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
	if (!device_get(from) || !device_get(to) || from == to)
		return SIM_INVALID_DEVICE;
	if (!value || attribute < 1 || attribute > 5)
		return SIM_INVALID_VALUE;
	*value = attribute != 1 && sim_device_peers(from, to);
	return 0;
}

int sim_cuDeviceGetExecAffinitySupport(int *supported, int type, int device)
{
	if (!device_get(device))
		return SIM_INVALID_DEVICE;
	if (!supported || type != 0)
		return SIM_INVALID_VALUE;
	*supported = 0;
	return 0;
}

/* How many times as fast as double precision single precision is. */
static int single_to_double(const struct sim_model *m)
{
	if (m->major == 8 && m->minor == 0)
		return 2;
	if (m->major >= 9 && m->major < 12)
		return 2;
	return m->major == 7 ? 32 : 64;
}

/* Number and value of each attribute; those not listed are 0, as for features a GPU lacks. Sizes of textures are those of the CUDA
 * C++ Programming Guide, the same since compute capability 5.0. */
static int attribute_value(const struct sim_device *d, int attribute)
{
	const struct sim_model *m = d->model;
	int since_8 = m->major >= 8, since_9 = m->major >= 9;

	switch (attribute) {
	case 1: return SIM_BLOCK_THREADS_MAX;
	case 2: return SIM_BLOCK_XY_MAX;
	case 3: return SIM_BLOCK_XY_MAX;
	case 4: return SIM_BLOCK_Z_MAX;
	case 5: return SIM_GRID_X_MAX;
	case 6: return SIM_GRID_YZ_MAX;
	case 7: return SIM_GRID_YZ_MAX;
	case 8: return SIM_SHARED_DEFAULT;
	case 9: return 65536;			/* constant memory */
	case 10: return SIM_WARP;
	case 11: return 2147483647;		/* pitch */
	case 12: return SIM_REGS_PER_BLOCK;
	case 13: return m->core_mhz * 1000;	/* kHz */
	case 14: return 512;			/* texture alignment */
	case 15: return 1;			/* overlap of copies and kernels */
	case 16: return m->sms;
	case 19: return 1;			/* maps host memory */
	case 21: return 131072;			/* texture: 1D */
	case 22: return 131072;			/* 2D width */
	case 23: return 65536;			/* 2D height */
	case 24: case 25: case 26: return 16384;	/* 3D */
	case 27: case 28: return 32768;		/* 2D layered */
	case 29: return 2048;			/* layers */
	case 30: return 512;			/* surface alignment */
	case 31: return 1;			/* concurrent kernels */
	case 32: return strstr(m->name, "GeForce") ? 0 : 1;	/* ECC */
	case 33: return d->physical + 1;	/* PCI bus */
	case 36: return m->memory_mhz * 1000;
	case 37: return m->bus_bits;
	case 38: return m->l2_kib << 10;
	case 39: return m->threads_sm;
	case 40: return 3;			/* copy engines */
	case 41: return 1;			/* unified addressing */
	case 42: return 32768;			/* 1D layered */
	case 43: return 2048;
	case 51: return 32;			/* pitch alignment of textures */
	case 53: case 54: return 32768;		/* cubemaps */
	case 55: return 2046;
	case 75: return m->major;
	case 76: return m->minor;
	case 78: return 1;			/* stream priorities */
	case 79: case 80: return 1;		/* global and local memory in L1 */
	case 81: return m->shared_sm;
	case 82: return SIM_REGS_PER_BLOCK;	/* per multiprocessor: the same value */
	case 83: return 1;			/* managed memory */
	case 85: return d->physical;		/* group of boards */
	case 87: return single_to_double(m);
	case 89: return 1;			/* concurrent managed access */
	case 90: return 1;			/* compute preemption */
	case 91: return 1;			/* registered memory keeps its address */
	case 93: case 94: return 1;		/* values in memory: 64 bits, "nor" */
	case 95: return 1;			/* cooperative launch */
	case 97: return m->shared_optin;
	case 98: case 99: return 1;		/* flushes remote writes, host registration */
	case 102: return 1;			/* virtual memory management */
	case 103: return 1;			/* handles that are file descriptors */
	case 106: return m->blocks_sm;
	case 107: return 0;			/* generic compression */
	case 108: return since_8 ? (m->l2_kib << 10) / 4 * 3 : 0;	/* persisting L2 */
	case 109: return since_8 ? 134213632 : 0;	/* window of an access policy */
	case 111: return sim_shared_reserved(m);
	case 113: return 1;			/* host memory registered as read-only */
	case 115: return 1;			/* memory pools */
	case 119: return 1;			/* pools for other processes: file descriptors */
	case 120: return m->cluster_max > 0;
	case 121: case 123: return m->cluster_max > 0;	/* deferred mapping; tensor maps */
	case 128: return since_9;		/* unified function pointers */
	}
	return 0;
}

int sim_cuDeviceGetAttribute(int *value, int attribute, int device)
{
	struct sim_device *d = sim_device_named(device, "dev");

	if (!d)
		return SIM_INVALID_DEVICE;
	if (!value)
		return SIM_INVALID_VALUE;
	if (attribute < 1 || attribute > ATTRIBUTE_MAX) {
		sim_log("Invalid device attribute enum value");
		return SIM_INVALID_VALUE;
	}
	*value = attribute_value(d, attribute);
	return 0;
}
