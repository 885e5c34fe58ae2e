/* SPDX-License-Identifier: Apache-2.0
 * What the two halves of stream capture share. */
#ifndef CUWHY_SIM_CAPTURE_H
#define CUWHY_SIM_CAPTURE_H

#include "sim/cuda/sim.h"

struct sim_capture {
	struct sim_capture *next;	/* all active captures */
	uint64_t id;
	enum sim_capture_mode mode;
	enum sim_capture_status status;
	pthread_t thread;
	struct sim_ctx *ctx;
	struct sim_stream *origin;
	struct sim_graph *graph;
	bool own_graph;			/* created by us, so we free it when the capture fails */
	uint64_t nodes;
};

extern pthread_mutex_t sim_capture_lock;		/* for all of the above and the list */
extern struct sim_capture *sim_capture_list;

/* 906 if the legacy stream would have to wait for a capturing one; may break that capture. */
int sim_capture_legacy(struct sim_stream *s, bool breaks);

static inline void break_capture(struct sim_capture *cap)
{
	cap->status = SIM_CAPTURE_BROKEN;
}

#endif
