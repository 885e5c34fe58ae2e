/* SPDX-License-Identifier: Apache-2.0
 * Stand-ins for NVIDIA's libraries on the simulated GPU: what they have in common.
 *
 * A stand-in has the name (SONAME), the version node and the functions of the original, as far as PyTorch's wheels use them. It
 * checks arguments as the original does, takes the device memory that the original takes, and launches one named kernel per call,
 * which computes nothing. It is linked to the simulated driver and calls nothing else.
 */
#ifndef CUWHY_STANDIN_H
#define CUWHY_STANDIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/cuda/sim_abi.h"

#define STANDIN_EXPORT __attribute__((visibility("default")))

/* A function of the library's: STANDIN(int, cublasCreate_v2, (void **handle)) { … } */
#define STANDIN(type, name, params)     \
	STANDIN_EXPORT type name params; \
	type name params

/* The driver, as it is exported. */
struct sim_ctx;
struct sim_module;
struct sim_func;
struct sim_library;
struct sim_event;
struct sim_graph;
struct sim_exec;
#define SIM_API(base, symbol, since, twin, need, params, args) int symbol params;
#include "sim/cuda/sim_api.def"
#undef SIM_API

/* Around copies to the host and back that are no reads of the program's (src/sim/README.md). */
void cuwhy_sim_staging(bool on);
uint32_t cuwhy_sim_place(void);
void cuwhy_sim_mismatch(uint32_t place, uint64_t mono_ns, const char *call, const char *sentence, int blame);

/* One kernel of a library's, without code or parameters: STANDIN_KERNEL(gemm, "cublas_gemm"). */
struct standin_kernel {
	const char *name;
	_Atomic(struct sim_func *) func, using;	/* the second one has a workspace */
};
#define STANDIN_KERNEL(variable, text) static struct standin_kernel variable = {.name = text}

/* Launches it with one block of 128 threads in the current context. Returns the driver's code. */
int standin_launch(struct standin_kernel *k, struct sim_stream *stream);
/* Likewise; if the launch is captured, the kernel uses the workspace whenever the graph is run: by then it may be gone. */
int standin_launch_using(struct standin_kernel *k, struct sim_stream *stream, sim_addr workspace);

/* Says once per function that it cannot be stood in for; returns `status`, the library's code for "not supported". */
int standin_refuse(const char *function, int status);

/* A row of a library's list of functions that cannot be stood in for. */
#define STANDIN_REFUSED(name, status) \
	STANDIN(int, name, (void)) { return standin_refuse(#name, status); }

#endif
