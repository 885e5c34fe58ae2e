/* SPDX-License-Identifier: Apache-2.0
 * One frame of `cuwhy memory --watch`: every GPU and its processes, and PyTorch's memory by line of those that are being recorded.
 */
#ifndef CUWHY_WRITE_MEMORY_LIVE_H
#define CUWHY_WRITE_MEMORY_LIVE_H

#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

struct gpu_usage;
struct live;

#define HISTORY_SECONDS	600
#define HISTORY_GPUS	16

/* What was in use on each GPU, a value a second. */
struct usage_history {
	uint64_t used[HISTORY_GPUS][HISTORY_SECONDS];	/* the newest last */
	size_t n;
};

void usage_history_add(struct usage_history *h, const struct gpu_usage *u);

struct memory_frame {
	const struct gpu_usage *usage;
	const struct live *live;
	size_t n_live;
	const struct usage_history *history;
};

/* `top` lines of each process; history lines take what `width` leaves. */
void memory_frame_print(FILE *out, const struct memory_frame *f, size_t top, int width);
json_t *memory_frame_json(const struct memory_frame *f);

#endif
