/* SPDX-License-Identifier: Apache-2.0
 * The functions that PyTorch's allocator reports to, in the library where PyTorch has them; a profiler would listen. */
#include <stddef.h>
#include <stdint.h>

#define USAGE _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define OUT   _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE

struct device { int8_t type, index; };

void USAGE(void *block, int64_t size, size_t allocated, size_t reserved, struct device d);
void USAGE(void *block, int64_t size, size_t allocated, size_t reserved, struct device d)
{
	(void)block, (void)size, (void)allocated, (void)reserved, (void)d;
}

void OUT(int64_t size, size_t allocated, size_t reserved, struct device d);
void OUT(int64_t size, size_t allocated, size_t reserved, struct device d)
{
	(void)size, (void)allocated, (void)reserved, (void)d;
}
