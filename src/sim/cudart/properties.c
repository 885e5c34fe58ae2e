/* SPDX-License-Identifier: Apache-2.0
 * Properties and attributes of devices.
 */
#include "sim/cudart/cudart.h"

#include <string.h>

#if SONAME_MAJOR >= 13
#define INT12(field, attribute)
#define INT13(field, attribute) INT(field, attribute)
#define RESERVED 56
#else
#define INT12(field, attribute) INT(field, attribute)
#define INT13(field, attribute)
#define RESERVED 63
#endif

struct properties {
	char name[256];
	struct sim_uuid uuid;
	char luid[8];
	unsigned int luid_nodes;
#define INT(field, attribute)	int field;
#define SIZE(field, attribute)	size_t field;
#define INTS(field, count)	int field[count];
#include "sim/cudart/properties.def"
#undef INT
#undef SIZE
#undef INTS
};

static int attribute(int device, int number)
{
	int value = 0;

	if (number)
		cuDeviceGetAttribute(&value, number, device);
	return value;
}

/* `count` attributes in a row, the first one with this number. */
static void fill(int *to, int count, int device, int number)
{
	for (int i = 0; i < count; i++)
		to[i] = attribute(device, number + i);
}

static void fill_textures(struct properties *p, int device)
{
	fill(p->texture_2d, 2, device, 22);
	fill(p->texture_2d_mipmap, 2, device, 73);
	fill(p->texture_2d_linear, 3, device, 70);
	fill(p->texture_2d_gather, 2, device, 45);
	fill(p->texture_3d, 3, device, 24);
	fill(p->texture_3d_alternate, 3, device, 47);
	fill(p->texture_1d_layered, 2, device, 42);
	fill(p->texture_2d_layered, 3, device, 27);
	fill(p->texture_cubemap_layered, 2, device, 53);
	fill(p->surface_2d, 2, device, 56);
	fill(p->surface_3d, 3, device, 58);
	fill(p->surface_1d_layered, 2, device, 61);
	fill(p->surface_2d_layered, 3, device, 63);
	fill(p->surface_cubemap_layered, 2, device, 67);
}

static int get_properties(struct properties *p, int device)
{
	int code = rt_init();

	if (code || !p)
		return code ? code : SIM_INVALID_VALUE;
	memset(p, 0, sizeof(*p));
	code = cuDeviceGetName(p->name, sizeof(p->name), device);
	if (code)
		return code;
	cuDeviceGetUuid_v2(&p->uuid, device);
#define INT(field, number)	p->field = attribute(device, number);
#define SIZE(field, number)	p->field = (size_t)attribute(device, number);
#define INTS(field, count)
#include "sim/cudart/properties.def"
#undef INT
#undef SIZE
#undef INTS
	cuDeviceTotalMem_v2(&p->total_memory, device);
	fill(p->block_max, 3, device, 2);
	fill(p->grid_max, 3, device, 5);
	fill_textures(p, device);
	return 0;
}

/* CUDA 12 has the present structure under a name of its own; nothing that PyTorch builds uses the older one. */
#if SONAME_MAJOR >= 13
#define GET_PROPERTIES cudaGetDeviceProperties
#else
#define GET_PROPERTIES cudaGetDeviceProperties_v2
#endif
RUNTIME(GET_PROPERTIES, (struct properties * p, int device))
{
	return rt_done(get_properties(p, device));
}

/* The runtime's attributes have the driver's numbers. */
RUNTIME(cudaDeviceGetAttribute, (int *value, int number, int device))
{
	RT_WITH_DRIVER(cuDeviceGetAttribute(value, number, device));
}
