/* SPDX-License-Identifier: Apache-2.0
 * Private header of the simulated GPU: handles, global state, and what its files share. */
#ifndef CUWHY_SIM_H
#define CUWHY_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/cuda/sim_abi.h"
#include "sim/cuda/sim_spec.h"

enum {
	SIM_CONTEXT_DEPTH = 32,
	SIM_PARAM_BYTES = 352,		/* largest parameter block of a built-in kernel */
	SIM_PARAMS_MAX = 8,
	SIM_NAME_MAX = 256,
	SIM_PATTERN_BYTES = 16,		/* of one element that a fill repeats: a complex double */
	SIM_RING = 1024,		/* launches queued per stream before a launch blocks */
	SIM_DEPS_MAX = 8,
};

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_LIKELY(x) __builtin_expect(!!(x), 1)
#define SIM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Every handle begins with this. Handles live in pools that are never unmapped, so a stale or
 * wrong handle is detected instead of causing a crash. */
struct sim_head {
	_Atomic unsigned int alive;
	struct sim_head *next_free;
};

struct sim_fault;
struct sim_settings;
struct sim_real;
struct gpu_kernel;

struct sim_pool {
	size_t stride;
	size_t max;
	_Atomic(char *) base;
	_Atomic size_t used;
	struct sim_head *free_first, *free_last;
};

struct sim_device {
	const struct sim_model *model;
	int physical;			/* its number before CUDA_VISIBLE_DEVICES renumbers */
	struct sim_uuid uuid;
	size_t total, overhead;
	struct sim_ctx *primary;	/* under sim_memory's lock, like the fields below */
	int primary_count;
	unsigned int primary_flags;
	struct sim_heap *heap;
	int contexts;			/* on it */
	unsigned char epoch;		/* ends, with what was loaded, when the last context does */
	size_t code, code_charged;	/* bytes of real code that was loaded, and what was taken for it */
	struct sim_mempool *default_pool, *pool;	/* NULL: not asked for yet; the default one */
	_Atomic int broken;		/* code of the fault that made it unusable */
};

struct sim_mempool {			/* CUmemoryPool */
	struct sim_head head;
	int device;
	int reuse[3];
	uint64_t threshold;		/* under sim_memory's lock, like the fields below */
	uint64_t used, used_high, reserved, reserved_high;
	unsigned char access[SIM_DEVICES_MAX];
};

struct sim_ctx {
	struct sim_head head;
	int device;
	unsigned int flags;
	bool primary;
	_Atomic int cache_config;
	_Atomic int sticky;		/* code that every later call returns, or 0 */
	_Atomic bool stopped;		/* a fault is being handled: no kernel starts */
	_Atomic int blocking;		/* streams that synchronize with the legacy stream */
	_Atomic uint64_t grids;		/* kernels and fills so far; threads may share a number */
	_Atomic unsigned int peers;	/* devices whose memory its kernels may touch */
	struct sim_settings *settings;	/* for core dumps; NULL: the process-wide ones */
	struct sim_stream *legacy;
	struct sim_stream *streams;	/* all except legacy, under lock */
	struct sim_left { struct sim_stream *stream; uint64_t seq; } left[16];	/* destroyed ones, whose work goes on; likewise */
	unsigned int n_left;
	pthread_mutex_t lock;
	size_t limits[10];
};

struct sim_func {
	struct sim_head head;
	struct sim_func *func;		/* itself, or for a CUkernel the function behind it */
	struct sim_module *module;
	struct sim_library *library;	/* of a CUkernel; NULL: a function */
	struct sim_func *kernel;	/* of a library's function: its CUkernel */
	const struct sim_kernel_row *row;
	struct sim_func *next;		/* in the same module */
	const struct gpu_kernel *real;	/* of real code, which does nothing; NULL: a built-in kernel */
	char *name;			/* the function's own, or of its module's real code */
	char assertion[SIM_NAME_MAX];	/* "FILE:LINE: FUNCTION: CONDITION", or the kernel's own */
	int regs, shared, bounds, max_threads;
	int threads;			/* maximum per block */
	unsigned int param_count, param_bytes;
	struct { unsigned short offset, size; } params[SIM_PARAMS_MAX];
	_Atomic unsigned char loaded[SIM_DEVICES_MAX];	/* the device's `epoch` when it got the code */
	_Atomic unsigned char known;	/* enum sim_known: is it computed? */
	_Atomic int dynamic_max;	/* set by cuFuncSetAttribute, or the default */
	_Atomic int carveout;
	_Atomic int cluster_any;
	int cluster_must;
	int any_params;			/* they are not known: whatever a launch passes is accepted */
	unsigned int cluster_fixed[3];	/* by __cluster_dims__; 0: none */
	_Atomic int cluster_policy;
};

struct sim_module {
	struct sim_head head;
	struct sim_ctx *ctx;		/* NULL for the module behind a library */
	struct sim_func *funcs;
	struct sim_real *real;		/* NULL: the simulated GPU's own format */
	int binary_version, ptx_version;
};

struct sim_library {
	struct sim_head head;
	struct sim_module *module;
	struct sim_func *kernels;
	int code;			/* why its image cannot be used, or 0 */
};

/* Nodes of a capture that the next one depends on. */
struct sim_deps {
	unsigned int count;
	struct sim_node *node[SIM_DEPS_MAX];
};

struct sim_event {
	struct sim_head head;
	unsigned int flags;
	pthread_mutex_t lock;
	bool made, recorded;
	struct sim_stream *stream;	/* last record: done when stream->done reaches seq */
	uint64_t seq;
	uint64_t turn;			/* number of the last record */
	uint64_t time_ns;
	uint64_t capture_id;		/* recorded inside this capture, or 0 */
	uint64_t capture_node;
	struct sim_deps deps;
};

enum sim_op_kind { SIM_OP_NONE, SIM_OP_KERNEL, SIM_OP_COPY, SIM_OP_FILL, SIM_OP_WAIT,
	SIM_OP_EVENT,
	SIM_OP_HOST,
	SIM_OP_FREE,
	SIM_OP_RECORD,			/* nodes of graphs: an event from outside that a launch records, */
	SIM_OP_AWAIT,			/* and one that it waits for */
	SIM_OP_GRAPH
};

/* What a read gets that nobody wrote: what `values` says; True, or the other one of the truth values; the number that it was computed
 * from; or whether the first of two numbers is greater. */
enum sim_invent {
	SIM_INVENT_NOT,
	SIM_INVENT_VALUES,
	SIM_INVENT_FALSE,
	SIM_INVENT_TRUE,
	SIM_INVENT_OTHER,
	SIM_INVENT_NUMBER
};

struct sim_op {
	enum sim_op_kind kind;
	int fault;			/* planned: the error code this work fails with */
	struct sim_ctx *ctx;
	union {
		struct {
			const struct sim_kernel_row *row;
			const struct sim_func *func;
			uint64_t id;	/* its number, as shown in core dumps */
			unsigned int grid[3], block[3];
			unsigned int shared;
		} kernel;
		struct {
			sim_addr to, from;
			size_t width, height, to_pitch, from_pitch;
			void *owned;	/* freed after the copy */
			bool drop;	/* keep no contents */
			enum sim_invent invent;
			sim_addr like;	/* the number */
		} copy;
		struct {
			sim_addr to;
			size_t width, height, pitch;
			unsigned int bytes;	/* of the pattern */
			unsigned char pattern[SIM_PATTERN_BYTES];	/* of a ramp: where it starts, and its steps */
			int ramp;	/* 0, or the type of the elements: see sim_known.c */
			bool drop;
		} fill;
		struct {
			struct sim_stream *stream;
			uint64_t seq;
		} wait;
		struct {
			struct sim_event *event;
			uint64_t turn;
		} event;
		struct {
			sim_host_fn fn;
			void *data;
		} host;
		sim_addr address;
		struct sim_exec *exec;
	} u;
	size_t param_bytes;
	_Alignas(16) unsigned char params[SIM_PARAM_BYTES];
};

struct sim_stream {
	struct sim_head head;
	struct sim_ctx *ctx;
	struct sim_stream *next;
	unsigned int flags;
	int priority;
	bool made;			/* locks exist; they outlive the handle */
	bool legacy;
	struct sim_tls *owner;		/* thread whose default stream this is, or NULL */
	pthread_mutex_t lock;		/* producers */
	struct sim_op *ring;
	_Atomic bool running;		/* its worker thread exists */
	_Atomic uint64_t tail;		/* work accepted */
	_Atomic uint64_t done;		/* work finished */
	pthread_mutex_t sleep_lock;
	pthread_cond_t sleep_cond;
	_Atomic int sleeping;		/* the worker is sleeping */
	_Atomic int waiters;		/* threads are sleeping until done advances */
	_Atomic(struct sim_capture *) capture;
	uint64_t capture_node;		/* last node that this stream added */
	struct sim_deps deps;
	bool unjoined;
};

enum sim_capture_mode { SIM_CAPTURE_GLOBAL, SIM_CAPTURE_THREAD, SIM_CAPTURE_RELAXED };
enum sim_capture_status { SIM_NOT_CAPTURING, SIM_CAPTURING, SIM_CAPTURE_BROKEN };

struct sim_node {			/* CUgraphNode */
	struct sim_head head;
	struct sim_graph *graph;
	size_t index;
	struct sim_deps deps;
};

struct sim_object {			/* CUuserObject */
	struct sim_head head;
	void *data;
	sim_host_fn destroy;
	long references;
};

struct sim_owned {			/* references of a graph to an object */
	struct sim_owned *next;
	struct sim_object *object;
	long count;
};

struct sim_graph {
	struct sim_head head;
	struct sim_op *nodes;
	struct sim_node **handles;	/* of the nodes */
	size_t count, capacity;
	struct sim_owned *owned;
};

struct sim_exec {
	struct sim_head head;
	struct sim_op *nodes;
	size_t count;
	bool external;			/* has events from outside */
	struct sim_owned *owned;
	int in_flight;			/* under the lock of sim_graph.c */
	bool doomed;			/* destroyed while running: the worker frees it */
};

enum sim_state { SIM_FRESH, SIM_READY, SIM_FAILED, SIM_FORKED, SIM_ENDED };

enum sim_need { SIM_NEED_ANY, SIM_NEED_INIT, SIM_NEED_CTX, SIM_NEED_WORK };

struct sim_global {
	_Atomic int state;		/* enum sim_state */
	_Atomic bool fast;		/* ready and nothing planned */
	_Atomic int captures;		/* streams that are capturing */
	_Atomic bool real_code;		/* the program has kernels that compute nothing */
	_Atomic bool stuck;		/* a dump was abandoned with locks held: contexts can no longer be released */
	int init_code;
	int device_count;
	struct sim_device devices[SIM_DEVICES_MAX];
	struct sim_config config;
	struct sim_pool contexts, streams, events, modules, libraries, funcs, graphs, execs, mems, mempools, nodes,
		objects;
};

struct sim_tls {
	struct sim_ctx *stack[SIM_CONTEXT_DEPTH];
	int depth;
	int per_thread;			/* inside a _ptsz or _ptds twin */
	int fault;			/* a planned fault for the work being submitted */
	bool worker;
	void *caller;			/* of cuGetExportTable */
	enum sim_capture_mode capture_mode;
	struct sim_stream *stream;	/* per-thread default stream */
};

extern struct sim_global sim;
extern __thread struct sim_tls sim_tls;	/* not initial-exec: a program that loads the driver late has little room for that */

/* sim_config.c */
int sim_config_load(void);		/* 0, or SIM_UNKNOWN after saying why on stderr */
int sim_devices_load(void);		/* 0 or SIM_NO_DEVICE */

/* sim_witness.c */
SIM_EXPORT uint32_t cuwhy_sim_place(void);	/* where in the program the calling thread is; 0: not known */

/* sim_device.c */
struct sim_device *sim_device_named(int ordinal, const char *parameter);	/* NULL: logged */
bool sim_device_peers(int device, int peer);	/* may kernels of one access memory of the other? */

/* sim_log.c */
void sim_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_log_returning(const char *name, int code);
const char *sim_error_name(int code);

/* sim_pool.c */
void *sim_pool_new(struct sim_pool *pool);
void *sim_pool_get(struct sim_pool *pool, const void *handle);
void sim_pool_drop(struct sim_pool *pool, void *object);
void sim_pools_init(void);
void sim_keep(void *block);	/* only a handle refers to it: not a leak, but leak checkers cannot tell */

/* sim_context.c */
struct sim_ctx *sim_ctx_current(void);
struct sim_device *sim_device_current(void);
void sim_ctx_fail(struct sim_ctx *ctx, int code);

/* sim_memory.c and sim_heap.c */
enum sim_mem_kind { SIM_MEM_DEVICE, SIM_MEM_MANAGED, SIM_MEM_HOST, SIM_MEM_REGISTERED, SIM_MEM_VMM };

struct sim_mem {
	sim_addr start;
	size_t bytes, charged;
	enum sim_mem_kind kind;
	int device;
	unsigned int flags;
	struct sim_ctx *ctx;
	unsigned long long id;
	bool access;
	struct sim_mempool *pool;	/* NULL: not from a pool */
	struct sim_mem_handle *handle;
	int shared;			/* of memory for other processes: its file; 0: none */
	bool foreign;			/* it belongs to another process */
};

struct sim_mem_handle {			/* CUmemGenericAllocationHandle */
	struct sim_head head;
	int fd, device, maps;
	long long offset;		/* in that file */
	char *memory;			/* NULL: it is in that file */
	int references;			/* by handles */
	bool imported;			/* its memory belongs to another process */
	int handle_types;
	size_t bytes;
};

extern pthread_mutex_t sim_mem_lock;
struct sim_mem *sim_mem_add(sim_addr start, size_t bytes, enum sim_mem_kind kind);
struct sim_mem *sim_mem_find(sim_addr address);		/* with sim_mem_lock held */
void sim_mem_remove(struct sim_mem *mem);		/* with sim_mem_lock held */
bool sim_mem_covers(sim_addr address, size_t bytes);
size_t sim_mem_reach(struct sim_ctx *ctx, sim_addr address, size_t bytes);
int sim_mem_kind_of(sim_addr address);			/* enum sim_mem_kind or -1 */
int sim_mem_charge(struct sim_device *dev, size_t bytes);
int sim_mem_charge_locked(struct sim_device *dev, size_t bytes);	/* with sim_mem_lock held */
void sim_mem_uncharge(struct sim_device *dev, size_t bytes);
void sim_mem_uncharge_locked(struct sim_device *dev, size_t bytes);	/* likewise */
size_t sim_mem_round(size_t bytes);
int sim_mem_alloc(sim_addr *address, size_t bytes, struct sim_mempool *pool);
int sim_mem_free(sim_addr address);
void sim_mem_free_all(struct sim_ctx *ctx);
sim_addr sim_heap_take(struct sim_device *dev, size_t bytes);
size_t sim_heap_resident(const struct sim_device *dev);	/* bytes of this machine's memory */
void sim_heap_give(struct sim_device *dev, sim_addr address, size_t bytes, bool seal);

/* sim_ipc.c */
void sim_ipc_forget(struct sim_mem *mem);		/* with sim_mem_lock held */

/* sim_mempool.c */
struct sim_mempool *sim_mempool_of(struct sim_device *dev);	/* the one that cuMemAllocAsync uses */
int sim_mempool_take(struct sim_mempool *p, size_t bytes);	/* with sim_mem_lock held */
void sim_mempool_give(struct sim_mempool *p, size_t bytes);	/* likewise */
void sim_mempools_trim(struct sim_device *dev);

/* sim_stream.c: queues and workers */
struct sim_stream *sim_stream_new(struct sim_ctx *ctx, unsigned int flags, int priority);
void sim_stream_drop(struct sim_stream *s);
struct sim_stream *sim_stream_resolve(struct sim_stream *handle);	/* NULL: bad handle */
bool sim_stream_idle(struct sim_stream *s);
void sim_stream_wait(struct sim_stream *s, uint64_t seq);
bool sim_stream_done(struct sim_stream *s, uint64_t seq);
void sim_ctx_drain(struct sim_ctx *ctx);
int sim_work_submit(struct sim_stream *s, struct sim_op *op, uint64_t *seq);
int sim_work_finish(struct sim_stream *s, uint64_t seq);
void sim_op_run(struct sim_op *op);			/* sim_work.c */
uint64_t sim_clock_ns(void);
bool sim_ctx_stopped(const struct sim_ctx *ctx);

/* sim_capture.c */
int sim_capture_check_unsafe(void);	/* for calls that are illegal during a capture */
int sim_capture_check_legacy(struct sim_stream *s);
int sim_capture_check_context(struct sim_ctx *ctx);
void sim_capture_spoil(struct sim_stream *s);	/* a failed call on it breaks the capture */
void sim_capture_abandon(struct sim_stream *s);	/* it is being destroyed */
void sim_event_mark(struct sim_event *e, struct sim_stream *s, uint64_t seq);	/* this work records it */
int sim_event_await(struct sim_event *e, struct sim_stream *s);			/* the stream's next work waits for it */
int sim_capture_event(struct sim_event *e);	/* may it be queried or waited for? */
int sim_capture_refuse(struct sim_stream *s);	/* for waiting on s or querying it */
int sim_capture_add(struct sim_stream *s, struct sim_op *op);
int sim_capture_record(struct sim_stream *s, struct sim_event *e);
int sim_capture_join(struct sim_stream *s, struct sim_event *e, bool *handled);
struct sim_graph *sim_graph_new(void);
void sim_graph_free(struct sim_graph *g);
/* sim_graph.c: after `deps`, which then are what was added. */
int sim_graph_add(struct sim_graph *g, const struct sim_op *op, struct sim_deps *deps);
/* sim_graph_ask.c */
struct sim_node *sim_node_new(struct sim_graph *g, const struct sim_deps *deps);
void sim_deps_add(struct sim_deps *deps, struct sim_node *node);
void sim_owned_copy(struct sim_owned **to, const struct sim_owned *from);
void sim_owned_free(struct sim_owned **list);
void sim_exec_leave(struct sim_exec *exec);

/* sim_image.c */
struct sim_func *sim_func_new(const struct sim_kernel_row *row);	/* not alive yet */
void sim_funcs_free(struct sim_func *list);
/* `kept`: the image stays where it is for as long as the module exists. */
int sim_module_new(struct sim_module **out, struct sim_ctx *ctx, int device, const void *image, bool kept);

/* sim_real.c: takes the device memory that the function's code needs, the first time; 0 or SIM_OUT_OF_MEMORY. */
int sim_func_load(struct sim_func *f, int device);
size_t sim_real_param(const struct sim_func *f, size_t index, size_t *bytes);	/* its offset, or SIZE_MAX */
void sim_code_unload(struct sim_device *dev);	/* with sim_mem_lock held */

/* sim_function.c */
struct sim_func *sim_func_get(const void *handle);	/* the function behind either handle */

/* sim_kernels.c */
struct sim_kernel_row {
	const char *name, *mangled, *params;
	const char *code;		/* what it does with memory, see sim_kernels.def */
	int regs, shared;
	void (*run)(const struct sim_op *op, struct sim_fault *fault);
};

const struct sim_kernel_row *sim_kernel_find(const char *name, size_t length);
size_t sim_kernel_layout(const struct sim_kernel_row *row, unsigned int index, size_t *size);
size_t sim_kernel_bytes(const struct sim_kernel_row *row);

/* sim_launch.c */
uint64_t sim_grid_number(struct sim_ctx *ctx);
int sim_shared_reserved(const struct sim_model *m);	/* shared memory that the driver keeps of each block */
int sim_func_threads(const struct sim_func *f);
int sim_func_occupancy(const struct sim_func *f, unsigned int threads, size_t dynamic);

/* The implementation of each exported function: sim_<symbol>. */
#define SIM_API(base, symbol, since, twin, need, params, args) int sim_##symbol params;
#include "sim/cuda/sim_api.def"
#undef SIM_API

enum sim_fn {
#define SIM_API(base, symbol, since, twin, need, params, args) SIM_FN_##symbol,
#include "sim/cuda/sim_api.def"
#undef SIM_API
	SIM_FN_COUNT
};

#endif
