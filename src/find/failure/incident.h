/* SPDX-License-Identifier: Apache-2.0
 * One mistake usually leaves several failures in a recording: the driver refuses a launch, PyTorch
 * notices, an exception ends the program. An incident groups what belongs together.
 */
#ifndef CUWHY_INCIDENT_H
#define CUWHY_INCIDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/case.h"
#include "case/line.h"

struct trace;
struct cw_failure;
struct xid;
struct xid_log;
struct gpu_usage;
struct ram_state;

#define INCIDENT_FAILURES 16	/* more of the same add nothing */

struct incident {
	const struct cw_failure *failure[INCIDENT_FAILURES];
	size_t n;
	const struct cw_failure *lead;	/* nearest to the cause: gives code, call, launch */
	uint32_t code;			/* of the lead; 0 = none */
	bool sticky;
	bool raised;			/* PyTorch or Python raised for it */
	bool benign;			/* normal in a healthy program unless something was raised for it */
	bool lookup;			/* code was asked for that is not there for this GPU */
	bool python_only;		/* nothing but an exception's message */
	bool check_only;		/* nothing but a failed check of PyTorch */
	const char *doubt;		/* why something else may have ended the program; NULL = nothing did */
	const struct gpu_usage *usage;	/* who held the GPUs then; NULL = not checked */
	const struct ram_state *ram;	/* the host's memory then; NULL = not checked */
	const struct xid_log *xids;	/* while the program ran; NULL = not checked */
	bool hang;			/* a wait that `cuwhy run` considered too long, and the errors after it */
};

struct incidents {
	struct incident *list;		/* in the order of their first failures */
	size_t n;
	const struct cw_failure *const *python;	/* the exception that ended the program, then its causes */
	size_t n_python;
};

/* All incidents of a recording; harmless codes are left out. */
void incidents_collect(struct incidents *all, const struct trace *t, struct pool *pool);

/* The incident that ended a process that ended badly; NULL when none of them did. The
 * exception joins the incident it belongs to. */
struct process_end;
struct incident *incidents_fatal(struct incidents *all, struct trace *t, const struct process_end *end,
				 struct pool *pool);

/* The incident of a process that waited too long, among `all`; NULL when it did not, or when the GPU had
 * failed before. */
struct incident *incidents_hang(struct incidents *all, const struct trace *t, struct pool *pool);

/* The incident that ended the process, including waits and a CUDA that did not start; NULL when none did. */
struct incident *incidents_that_ended(struct incidents *all, struct trace *t, const struct process_end *end,
				      struct pool *pool);

/* Where an incident happened. `place.file` NULL = not known. */
struct scene {
	struct place where;
	struct place noticed;	/* the exception's own line */
	struct place forward;	/* where the forward op was called, for failures in backward */
	struct place backward;	/* the line that called backward */
	struct place capture;	/* where the capture in progress was started */
	uint32_t node_name;	/* the autograd node that was running: offset of a cw_string, 0 = none */
};
void incident_scene(const struct incident *i, struct trace *t, struct scene *s);

/* The same for the launch of a kernel that failed later; `noticed` stays. */
struct cw_launch;
void launch_scene(const struct cw_launch *l, struct trace *t, struct scene *s);

/* Can hardware be the reason for this CUDA error, or for an exception without one (0)? If not, there is no need to read the log. */
bool xid_matters(uint32_t code);

/* The most serious Xid that may be about the incident; NULL when there is none or the log is not known. `*about`: 1 when it
 * names the process or the GPU, -1 when that is not known. */
const struct xid *incident_xid(const struct incident *i, const struct trace *t, int *about);

/* CUDA says that there is no GPU to use: the answer to a question that programs ask, and often expect. */
bool incident_no_gpu(const struct incident *i, const struct trace *t);

/* First member of the source (enum cw_source), NULL when there is none. */
const struct cw_failure *incident_from(const struct incident *i, uint32_t source);

#endif
