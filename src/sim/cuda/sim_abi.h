/* SPDX-License-Identifier: Apache-2.0
 * The driver's ABI: error codes, limits, and structures with the size and layout of the CUDA driver
 * API. Declared here so that the build needs none of NVIDIA's headers. */
#ifndef CUWHY_SIM_ABI_H
#define CUWHY_SIM_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long long sim_addr;	/* CUdeviceptr */

struct sim_stream;

/* Error codes returned by this driver; their names and texts are in kb/cuda_errors.def. */
enum sim_code {
	SIM_OK = 0,
	SIM_INVALID_VALUE = 1,
	SIM_OUT_OF_MEMORY = 2,
	SIM_NOT_INITIALIZED = 3,
	SIM_DEINITIALIZED = 4,
	SIM_NO_DEVICE = 100,
	SIM_INVALID_DEVICE = 101,
	SIM_INVALID_IMAGE = 200,
	SIM_INVALID_CONTEXT = 201,
	SIM_NO_BINARY_FOR_GPU = 209,
	SIM_UNSUPPORTED_LIMIT = 215,
	SIM_INVALID_PTX = 218,
	SIM_UNSUPPORTED_PTX_VERSION = 222,
	SIM_JIT_DISABLED = 223,
	SIM_FILE_NOT_FOUND = 301,
	SIM_OPERATING_SYSTEM = 304,
	SIM_INVALID_HANDLE = 400,
	SIM_ILLEGAL_STATE = 401,
	SIM_NOT_FOUND = 500,
	SIM_NOT_READY = 600,
	SIM_ILLEGAL_ADDRESS = 700,
	SIM_LAUNCH_OUT_OF_RESOURCES = 701,
	SIM_PEER_ALREADY_ENABLED = 704,
	SIM_PEER_NOT_ENABLED = 705,
	SIM_CONTEXT_IS_DESTROYED = 709,
	SIM_ASSERT = 710,
	SIM_ALREADY_REGISTERED = 712,
	SIM_NOT_REGISTERED = 713,
	SIM_ILLEGAL_INSTRUCTION = 715,
	SIM_MISALIGNED_ADDRESS = 716,
	SIM_LAUNCH_FAILED = 719,
	SIM_COOPERATIVE_TOO_LARGE = 720,
	SIM_NOT_PERMITTED = 800,
	SIM_NOT_SUPPORTED = 801,
	SIM_CAPTURE_UNSUPPORTED = 900,
	SIM_CAPTURE_INVALIDATED = 901,
	SIM_CAPTURE_MERGE = 902,
	SIM_CAPTURE_UNMATCHED = 903,
	SIM_CAPTURE_UNJOINED = 904,
	SIM_CAPTURE_ISOLATION = 905,
	SIM_CAPTURE_IMPLICIT = 906,
	SIM_CAPTURED_EVENT = 907,
	SIM_CAPTURE_WRONG_THREAD = 908,
	SIM_INVALID_CLUSTER_SIZE = 912,
	SIM_UNKNOWN = 999,
};

/* The same on every GPU since compute capability 3.0. */
enum {
	SIM_GRID_X_MAX = 2147483647,
	SIM_GRID_YZ_MAX = 65535,
	SIM_BLOCK_XY_MAX = 1024,
	SIM_BLOCK_Z_MAX = 64,
	SIM_BLOCK_THREADS_MAX = 1024,
	SIM_WARP = 32,
	SIM_SHARED_DEFAULT = 49152,
	SIM_REGS_PER_BLOCK = 65536,
	SIM_SHARED_RESERVED = 1024,	/* per block, since compute capability 8.0 */
	SIM_CLUSTER_PORTABLE = 8,
};

struct sim_uuid {
	unsigned char bytes[16];
};

struct sim_launch_attr {		/* CUlaunchAttribute */
	int id;
	char pad[4];
	union {
		char bytes[64];
		int cooperative;
		unsigned int cluster[3];
	} value;
};

struct sim_launch_config {		/* CUlaunchConfig */
	unsigned int grid[3];
	unsigned int block[3];
	unsigned int shared;
	struct sim_stream *stream;
	struct sim_launch_attr *attrs;
	unsigned int attr_count;
};

struct sim_location {			/* CUmemLocation */
	int type;
	int id;
};

struct sim_alloc_prop {			/* CUmemAllocationProp */
	int type;
	int handle_types;
	struct sim_location location;
	void *unused;
	unsigned char flags[8];
};

struct sim_pool_props {			/* CUmemPoolProps */
	int type;
	int handle_types;
	struct sim_location location;
	void *security;
	size_t max_size;
	unsigned char reserved[56];
};

struct sim_access {			/* CUmemAccessDesc */
	struct sim_location location;
	int flags;
};

struct sim_copy2d {			/* CUDA_MEMCPY2D */
	size_t src_x, src_y;
	int src_type;
	const void *src_host;
	sim_addr src_device;
	void *src_array;
	size_t src_pitch;
	size_t dst_x, dst_y;
	int dst_type;
	void *dst_host;
	sim_addr dst_device;
	void *dst_array;
	size_t dst_pitch;
	size_t width, height;
};

struct sim_copy3d {			/* CUDA_MEMCPY3D */
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	sim_addr src_device;
	void *src_array, *reserved0;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	sim_addr dst_device;
	void *dst_array, *reserved1;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
};

struct sim_ipc {			/* CUipcMemHandle */
	char reserved[64];
};

struct sim_func;
struct sim_kernel_params {		/* CUDA_KERNEL_NODE_PARAMS */
	struct sim_func *func;
	unsigned int grid[3], block[3];
	unsigned int shared;
	void **params, **extra;
};

struct sim_kernel_params_v2 {		/* CUDA_KERNEL_NODE_PARAMS_v2 */
	struct sim_kernel_params v1;
	void *kernel, *context;
};

struct sim_instantiate_params {		/* CUDA_GRAPH_INSTANTIATE_PARAMS */
	unsigned long long flags;
	struct sim_stream *upload;
	void *error_node;
	int result;
};

struct sim_copy3d_peer {			/* CUDA_MEMCPY3D_PEER */
	size_t src_x, src_y, src_z, src_lod;
	int src_type;
	const void *src_host;
	sim_addr src_device;
	void *src_array, *src_context;
	size_t src_pitch, src_height;
	size_t dst_x, dst_y, dst_z, dst_lod;
	int dst_type;
	void *dst_host;
	sim_addr dst_device;
	void *dst_array, *dst_context;
	size_t dst_pitch, dst_height;
	size_t width, height, depth;
};

typedef void (*sim_host_fn)(void *data);
typedef void (*sim_stream_fn)(struct sim_stream *stream, int status, void *data);
typedef size_t (*sim_dynamic_fn)(int threads);
typedef uint32_t (*sim_place_fn)(void);
/* As in the recording: enum cw_ranks_blame in format.h. */
enum sim_blame { SIM_BLAME_ODD, SIM_BLAME_EITHER, SIM_BLAME_WAITS };
typedef void (*sim_mismatch_fn)(uint32_t place, uint64_t mono_ns, const char *call, const char *sentence, int blame);
/* What a truth value (one byte) is to be read as: what `values` says, the other one, or what is said here. */
enum sim_answer { SIM_ANSWER_USUAL, SIM_ANSWER_OTHER, SIM_ANSWER_FALSE, SIM_ANSWER_TRUE };
typedef int (*sim_unknown_fn)(sim_addr from, size_t bytes, int why);	/* enum sim_unknown in sim_contents.h; enum sim_answer */
typedef void (*sim_log_fn)(void *data, int level, char *message, size_t length);

#endif
