/* SPDX-License-Identifier: Apache-2.0
 * What the probe sends to `cuwhy` through its pipe: messages of one size, each complete by itself, so that whatever
 * arrived before a driver hung or crashed still counts.
 */
#ifndef CUWHY_PROBE_MESSAGE_H
#define CUWHY_PROBE_MESSAGE_H

#include "probe/cuda.h"
#include "probe/usage.h"

enum probe_word {
	PROBE_DRIVER = 0x70620001,	/* text: its version */
	PROBE_GPU,			/* card */
	PROBE_HOLDER,			/* gpu, holder: pid, instance, kind, bytes */
	PROBE_HOLDERS_END,		/* gpu: these were all its processes */
	PROBE_NAME,			/* holder: pid, state, own_user, command */
	PROBE_NO_LIBRARY,		/* text: why NVML could not be loaded */
	PROBE_REFUSED,			/* gpu: the error's number; text: what NVML refused */
	PROBE_DETAILS,			/* gpu, details */
	PROBE_NVML,			/* gpu: CUDA version, 0 = not known; text: NVML's version */
	PROBE_CUDA,			/* library: what is known of libcuda so far; replaces earlier ones */
	PROBE_CUDA_DEVICE,		/* gpu, device */
	PROBE_NO_CUDA,			/* text: why libcuda could not be loaded */
	PROBE_END,			/* nothing is missing */
};

struct probe_message {
	uint32_t word;
	uint32_t gpu;			/* counts PROBE_GPU, from 0 */
	union {
		char text[240];
		struct gpu_card card;
		struct gpu_holder holder;
		struct gpu_details details;
		struct cuda_library library;
		struct cuda_device device;
	};
};

typedef void (*probe_tell)(const struct probe_message *m);

/* Both report what they learn as they learn it; only the probe calls them, because a driver may hang or crash in them.
 * False when the library could not be used at all, which they also report. */
bool nvml_ask(probe_tell tell, bool details);	/* every GPU and its processes; `details`: also struct gpu_details */
bool cuda_ask(probe_tell tell);

#endif
