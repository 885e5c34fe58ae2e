/* SPDX-License-Identifier: Apache-2.0
 * Initialization and devices: cuInit, fork and exit, names, attributes. */
#include "sim/sim_fault.h"

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

static int init_once(void)
{
	int code = sim_config_load();

	if (!code)
		code = sim_devices_load();
	if (code)
		return code;
	library_pin();
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
	return device != peer;
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

/* Number and value of each attribute; those not listed are 0, as for features a GPU lacks. */
static int attribute_value(const struct sim_device *d, int attribute)
{
	const struct sim_model *m = d->model;

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
	case 13: return 1980000;		/* clock, kHz */
	case 14: return 512;			/* texture alignment */
	case 15: return 1;			/* overlap of copies and kernels */
	case 16: return m->sms;
	case 19: return 1;			/* maps host memory */
	case 31: return 1;			/* concurrent kernels */
	case 33: return d->physical + 1;	/* PCI bus */
	case 38: return 50 << 20;		/* L2 cache */
	case 39: return m->threads_sm;
	case 40: return 3;			/* copy engines */
	case 41: return 1;			/* unified addressing */
	case 75: return m->major;
	case 76: return m->minor;
	case 78: return 1;			/* stream priorities */
	case 81: return m->shared_sm;
	case 82: return SIM_REGS_PER_BLOCK;	/* per multiprocessor: the same value */
	case 83: return 1;			/* managed memory */
	case 89: return 1;			/* concurrent managed access */
	case 91: return 1;			/* registered memory keeps its address */
	case 95: return 1;			/* cooperative launch */
	case 97: return m->shared_optin;
	case 102: return 1;			/* virtual memory management */
	case 106: return m->blocks_sm;
	case 111: return SIM_SHARED_RESERVED;
	case 115: return 1;			/* memory pools */
	case 120: return m->cluster_max > 0;
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
