/* SPDX-License-Identifier: Apache-2.0
 * libcuda loaded with dlopen (see cuda.h). No context is created: cuInit, attributes and names need none.
 */
#include "probe/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "probe/message.h"

#define LIBRARY "libcuda.so.1"

enum { SUCCESS = 0, ATTR_COMPUTE_MODE = 20, ATTR_CC_MAJOR = 75, ATTR_CC_MINOR = 76 };

static struct {
	int (*init)(unsigned int);
	int (*version)(int *);
	int (*count)(int *);
	int (*get)(int *, int);
	int (*name)(char *, int, int);
	int (*uuid)(unsigned char *, int);
	int (*pci)(char *, int, int);
	int (*attribute)(int *, int, int);
	int (*total)(size_t *, int);
	int (*peer)(int *, int, int);
} cu;

static const struct { void *where; const char *name[2]; } functions[] = {
	{&cu.init, {"cuInit"}},
	{&cu.version, {"cuDriverGetVersion"}},
	{&cu.count, {"cuDeviceGetCount"}},
	{&cu.get, {"cuDeviceGet"}},
	{&cu.name, {"cuDeviceGetName"}},
	{&cu.uuid, {"cuDeviceGetUuid_v2", "cuDeviceGetUuid"}},
	{&cu.pci, {"cuDeviceGetPCIBusId"}},
	{&cu.attribute, {"cuDeviceGetAttribute"}},
	{&cu.total, {"cuDeviceTotalMem_v2"}},
	{&cu.peer, {"cuDeviceCanAccessPeer"}},
};

static bool cuda_load(probe_tell tell, struct cuda_library *l)
{
	struct probe_message m = {.word = PROBE_NO_CUDA};
	void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL), *f;
	Dl_info info;

	if (!lib) {
		str_copy(m.text, sizeof(m.text), dlerror());
		tell(&m);
		return false;
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		f = dlsym(lib, functions[i].name[0]);
		if (!f && functions[i].name[1])
			f = dlsym(lib, functions[i].name[1]);
		memcpy(functions[i].where, &f, sizeof(f));
	}
	f = dlsym(lib, "cuInit");
	if (f && dladdr(f, &info) && info.dli_fname)
		str_copy(l->path, sizeof(l->path), info.dli_fname);
	if (cu.init && cu.count && cu.get)
		return true;
	str_copy(m.text, sizeof(m.text), LIBRARY " lacks CUDA's functions");
	tell(&m);
	return false;
}

static int32_t attribute(int device, int which)
{
	int value = 0;

	return cu.attribute && cu.attribute(&value, which, device) == SUCCESS ? value : -1;
}

static void ask_uuid(int device, char *to, size_t size)
{
	unsigned char b[16] = {0};
	size_t n;

	if (!cu.uuid || cu.uuid(b, device) != SUCCESS)
		return;
	n = (size_t)snprintf(to, size, "GPU-");
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(to + n, size - n, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", b[i]);
}

static void ask_peers(int ordinal, int device, int count, struct cuda_device *d)
{
	int can, peer;

	d->peers_known = cu.peer != NULL;
	for (int i = 0; cu.peer && i < count && i < CUDA_DEVICES_MAX; i++) {
		can = 0;
		if (i != ordinal && (cu.get(&peer, i) != SUCCESS || cu.peer(&can, device, peer) != SUCCESS))
			d->peers_known = 0;
		if (can)
			d->peers |= (uint64_t)1 << i;
	}
}

static void ask_device(int ordinal, int count, struct cuda_device *d)
{
	size_t total = 0;
	int device = 0;

	*d = (struct cuda_device){.cc_major = -1, .cc_minor = -1, .compute_mode = -1, .total = USAGE_UNKNOWN};
	if (cu.get(&device, ordinal) != SUCCESS)
		return;
	if (cu.name && cu.name(d->name, sizeof(d->name), device) != SUCCESS)
		d->name[0] = '\0';
	if (cu.pci && cu.pci(d->pci, sizeof(d->pci), device) != SUCCESS)
		d->pci[0] = '\0';
	ask_uuid(device, d->uuid, sizeof(d->uuid));
	d->cc_major = attribute(device, ATTR_CC_MAJOR);
	d->cc_minor = attribute(device, ATTR_CC_MINOR);
	d->compute_mode = attribute(device, ATTR_COMPUTE_MODE);
	if (cu.total && cu.total(&total, device) == SUCCESS)
		d->total = total;
	ask_peers(ordinal, device, count, d);
}

bool cuda_ask(probe_tell tell)
{
	struct probe_message m = {.word = PROBE_CUDA, .library = {.init = -1, .version = -1, .count = -1}}, one;
	int n = 0;

	if (!cuda_load(tell, &m.library))
		return false;
	if (cu.version && cu.version(&n) == SUCCESS)
		m.library.version = n;
	tell(&m);	/* it may hang from here on */
	m.library.init = cu.init(0);
	tell(&m);
	if (m.library.init != SUCCESS || cu.count(&n) != SUCCESS)
		return true;
	m.library.count = n;
	tell(&m);
	for (int i = 0; i < n && i < CUDA_DEVICES_MAX; i++) {
		one = (struct probe_message){.word = PROBE_CUDA_DEVICE, .gpu = (uint32_t)i};
		ask_device(i, n, &one.device);
		tell(&one);
	}
	return true;
}
