/* SPDX-License-Identifier: Apache-2.0
 * What the probe tells `cuwhy` through its pipe: messages of one size, each complete by itself, so that what was said
 * before a driver hung or crashed still counts.
 */
#ifndef CUWHY_PROBE_MESSAGE_H
#define CUWHY_PROBE_MESSAGE_H

#include "probe/usage.h"

enum probe_word {
	PROBE_DRIVER = 0x70620001,	/* text: its version */
	PROBE_GPU,			/* card */
	PROBE_HOLDER,			/* gpu, holder: pid, instance, kind, bytes */
	PROBE_HOLDERS_END,		/* gpu: these were all its processes */
	PROBE_NAME,			/* holder: pid, state, own_user, command */
	PROBE_NO_LIBRARY,		/* text: why NVML could not be loaded */
	PROBE_REFUSED,			/* text: what NVML refused */
	PROBE_END,			/* nothing is missing */
};

struct probe_message {
	uint32_t word;
	uint32_t gpu;			/* counts PROBE_GPU, from 0 */
	union {
		char text[240];
		struct gpu_card card;
		struct gpu_holder holder;
	};
};

typedef void (*probe_tell)(const struct probe_message *m);

#endif
