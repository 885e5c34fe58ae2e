/* SPDX-License-Identifier: Apache-2.0
 * What NVML tells of one GPU beyond its memory, each -1 where it is not known. Only the probe asks.
 */
#ifndef CUWHY_DETAILS_H
#define CUWHY_DETAILS_H

#include <stdint.h>

struct gpu_details {
#define DETAIL(field, text) int64_t field;
#include "probe/details.def"
#undef DETAIL
};

void details_init(struct gpu_details *d);	/* nothing is known */

/* Finds the functions in NVML's library, then asks one GPU. */
void details_load(void *library);
void details_ask(void *device, struct gpu_details *d);

#endif
