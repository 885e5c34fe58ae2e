/* SPDX-License-Identifier: Apache-2.0
 * The recording of one process: what the recorder writes and the CLI reads.
 *
 * A recording is one address space of at most 4 GiB. The recorder fills it in segments: each segment
 * is a memfd that is reserved in full, mapped, and handed to `cuwhy run` over its socket together
 * with the offset at which it belongs (struct cw_hello). The file on disk is those segments written
 * at their offsets. All references are offsets from the start ("off"), 0 meaning "none".
 *
 * The writer may be killed at any instruction. So every record is valid by itself (a slot carries
 * its own sequence number, written last), counters only grow, and the reader trusts nothing
 * that it has not checked against the size of the file. docs/develop/format.md explains all of it.
 */
#ifndef CUWHY_FORMAT_H
#define CUWHY_FORMAT_H

#include <stdint.h>

#define CW_MAGIC	"CUWHYREC"
#define CW_MAJOR	2	/* raised when an old reader would misread a new file */
#define CW_MINOR	13	/* raised when something was added */

#define CW_RING_LAUNCHES	8192	/* per thread; power of two */
#define CW_RING_CALLS		4096	/* per thread; power of two */
#define CW_RING_NODES		262144	/* autograd nodes per forward thread; power of two */
#define CW_RING_TURNS		4096	/* per thread that launches; power of two */
#define CW_RING_FREED		16384	/* PyTorch's blocks per process; power of two */
#define CW_RING_FREED_DRIVER	4096	/* the same for the driver's allocations */
#define CW_MAX_RANGES		4096
#define CW_PARAM_BYTES		256
#define CW_MAX_FRAMES		128	/* innermost frames kept per Python stack */
#define CW_MAX_DEVICES		32
#define CW_MAX_FAILURES		256	/* the first half is kept forever, the second half is a ring */
#define CW_MAX_CHUNKS		192
#define CW_MAX_ARGS		11
#define CW_UNKNOWN		0xffffffffu

/* What a chunk of the address space holds. Numbers are never reused. */
#define CW_CHUNKS(X)                                                                 \
	X(1, FAILURES,    "failures: struct cw_failure[]")                           \
	X(2, FUNCTIONS,   "functions: struct cw_function[]; index 0 is never used")  \
	X(3, STACK_INDEX, "the recorder's own hash table; not for reading")          \
	X(4, HEAP,        "strings (struct cw_string) and stacks (struct cw_stack)") \
	X(5, ALLOCATIONS, "live allocations: struct cw_allocation[], addr 0 = free") \
	X(6, LAUNCHES,    "one thread's ring: struct cw_ring, then struct cw_launch[]") \
	X(7, CALLS,       "one thread's ring: struct cw_ring, then struct cw_call[]") \
	X(8, NODES, \
	  "one thread's autograd nodes: struct cw_ring, then struct cw_node[], then the module of each: uint16_t[]") \
	X(9, STRING_INDEX, "the recorder's own hash table; not for reading")         \
	X(10, GRAPHS,     "launches captured into a graph, kept as long as the graph: like LAUNCHES") \
	X(11, BLOCKS,     "live blocks of PyTorch's allocator: like ALLOCATIONS")    \
	X(12, FREED,      "most recent frees, PyTorch's or the driver's: struct cw_ring, then struct cw_freed[], then the site of each: uint32_t[]") \
	X(13, RANGES,     "the process's own memory at the first fatal error: struct cw_range[]") \
	X(14, SITES,      "memory by allocation site: struct cw_site[]; index 0 is never used") \
	X(15, TIMELINE,   "memory of one device over time: struct cw_timeline, then struct cw_sample[]") \
	X(16, SITE_INDEX, "the recorder's own hash table; not for reading") \
	X(17, EVENTS,     "allocator events on their way to a file: struct cw_events, then bytes") \
	X(18, EPOCHS,     "the time spans for which one device's histories have a value: struct cw_epochs") \
	X(19, SITE_MARKS, "the generation of each site's mark: uint32_t[]; see struct cw_epochs") \
	X(20, HISTORIES,  "what each site held in each epoch: struct cw_history[]") \
	X(21, LOOPS,      "loops of Python code: struct cw_loop[]; index 0 is never used") \
	X(22, TURNS,      "turns in which live blocks were allocated: struct cw_turn[]") \
	X(23, FAILURE_TURNS, "the turns in which each failure was seen: struct cw_failure_turns[]") \
	X(24, TURN_LOG,   "the turns of one thread's launches: struct cw_ring, then struct cw_turned[]") \
	X(25, EVENT_LOG,  "the newest allocator events: struct cw_event_log") \
	X(26, EVENT_SLOTS, "the events themselves, chunk after chunk: struct cw_event_slot[]") \
	X(27, COMMS,      "NCCL's communicators: struct cw_comms") \
	X(28, GUARD,      "what `cuwhy run --guard` did: struct cw_guard") \
	X(29, TENSORS,    "tensors in the frames of the exception that ended the program: struct cw_tensor[]") \
	X(30, HANDLERS,   "what would have caught an exception at each failure: struct cw_failure_handlers[]") \
	X(31, PRINTED,    "what the driver and the kernels printed: struct cw_printed") \
	X(32, HOLDERS,    "which Python objects kept PyTorch's blocks: struct cw_holders") \
	X(33, COPIES,     "what was copied to the GPU: struct cw_copies, struct cw_copy[], then contents") \
	X(34, MODULES,    "modules of the program's models: struct cw_module[]; index 0 is never used") \
	X(35, SITE_MODULES, "the module of each site: uint16_t[], an index into MODULES; 0 = none or not known") \
	X(36, NUMBERS,    "where the program read NaN or infinity: struct cw_number[]")

enum cw_chunk_kind {
#define X(number, name, text) CW_CHUNK_##name = number,
	CW_CHUNKS(X)
#undef X
};

struct cw_chunk {
	uint32_t kind;		/* written last: 0 = not there yet */
	uint32_t off;
	uint32_t len;
	uint32_t tid;		/* rings: the thread using it now */
};

/* Why the recorder, or a part of it, does not record. The text is for people. */
#define CW_REASONS(X)                                                                     \
	X(0, NONE,          "recording")                                                  \
	X(1, NO_DOORS,      "the driver lacks entry points that every driver has")            \
	X(2, NO_MEMORY,     "no memory for the recording")                                \
	X(3, PY_VERSION,    "the recorder does not support this Python version")           \
	X(4, PY_MISMATCH,   "the recorded Python stack differed from Python's own")        \
	X(5, PY_UNREADABLE, "Python's frames could not be read")                          \
	X(6, PY_ABSENT,     "no Python interpreter in this process")                      \
	X(7, ASKED,         "switched off on request")                                    \
	X(8, PY_FREETHREAD, "free-threaded Python is not supported yet")                  \
	X(9, DUMP_USER,     "the user has core dump settings of their own")                \
	X(10, DUMP_DRIVER,  "the driver does not support core dumps on request")           \
	X(11, DUMP_TRACED,  "a debugger is attached")                                     \
	X(12, NOT_ASKED,    "not requested")                                               \
	X(13, DUMP_BLOCKING, "launches are synchronous: the traceback is already exact") \
	X(14, DUMP_FOLDER,  "the folder for core dumps is gone")                           \
	X(15, DUMP_PROFILER, "a profiler (CUPTI) is in use, and the driver serves one developer tool at a time")

enum cw_reason {
#define X(number, name, text) CW_REASON_##name = number,
	CW_REASONS(X)
#undef X
};

/* Limits and properties kept per device: our name, cuDeviceGetAttribute's number. */
#define CW_DEVICE_ATTRS(X)          \
	X(threads_per_block, 1)     \
	X(block_x, 2)               \
	X(block_y, 3)               \
	X(block_z, 4)               \
	X(grid_x, 5)                \
	X(grid_y, 6)                \
	X(grid_z, 7)                \
	X(shared_per_block, 8)      \
	X(warp_size, 10)            \
	X(registers_per_block, 12)  \
	X(sm_count, 16)             \
	X(threads_per_sm, 39)       \
	X(cc_major, 75)             \
	X(cc_minor, 76)             \
	X(shared_per_sm, 81)        \
	X(registers_per_sm, 82)     \
	X(cooperative, 95)          \
	X(shared_optin, 97)         \
	X(blocks_per_sm, 106)       \
	X(shared_reserved, 111)     \
	X(cluster_launch, 120)

/* Function attributes kept when a launch fails: our name, cuFuncGetAttribute's number. */
#define CW_FUNC_ATTRS(X)        \
	X(max_threads, 0)       \
	X(static_shared, 1)     \
	X(const_bytes, 2)       \
	X(local_bytes, 3)       \
	X(registers, 4)         \
	X(ptx_version, 5)       \
	X(binary_version, 6)    \
	X(max_dynamic_shared, 8)

enum cw_device_attr {
#define X(name, number) CW_DEV_##name,
	CW_DEVICE_ATTRS(X)
#undef X
	CW_DEV_COUNT
};

enum cw_func_attr {
#define X(name, number) CW_FUNC_##name,
	CW_FUNC_ATTRS(X)
#undef X
	CW_FUNC_COUNT
};

struct cw_device {
	char name[64];
	uint64_t total_bytes;
	int32_t attr[CW_DEV_COUNT];	/* -1 = unknown */
	uint8_t uuid[16];
	uint32_t pad;
};

/* Two simultaneous readings of both clocks turn ticks into nanoseconds. */
struct cw_clock {
	uint64_t ticks;
	uint64_t mono_ns;		/* CLOCK_MONOTONIC */
};

/* A thread waiting for the GPU: inside a driver call, or polling. */
struct cw_wait {
	uint64_t since_ns;		/* CLOCK_MONOTONIC; 0 = not waiting; written last */
	uint32_t api;
	uint32_t stack;
};

/* A process that waited too long. `cuwhy run` writes this; the recorder writes everything else. */
#define CW_HANG_THREADS		16
#define CW_HANG_TRIGGERED	1u	/* a core dump of the running GPU was requested */
#define CW_HANG_END		2u	/* the program will be ended: the recorder holds it at its next error */
#define CW_HANG_NO_DUMP		4u	/* no dump arrived in time */
#define CW_HANG_NO_PIPE		8u	/* nothing was reading the pipe */

struct cw_hang {
	uint64_t mono_ns;		/* when it was noticed; 0 = never */
	uint32_t flags;			/* CW_HANG_* */
	uint32_t n;			/* waiting threads, the longest wait first */
	struct {
		uint32_t tid, api, stack;
		uint32_t polls;		/* 0 = inside the call, else how many times it had polled */
		uint64_t waited_ns;
	} thread[CW_HANG_THREADS];
};

/* Memory of a device. */
struct cw_memory_now {
	uint64_t allocated, reserved;	/* PyTorch's: in blocks in use by tensors, and including its cache; 0 = not seen */
	uint64_t peak_allocated, peak_reserved;
	uint64_t driver, driver_peak;	/* this process's allocations through the driver, PyTorch's included */
	uint64_t peak_ticks;		/* when peak_allocated was reached */
	uint32_t peak_generation;	/* counts new peaks: see struct cw_site */
	uint32_t n_oom;			/* times that PyTorch's allocator ran out of memory */
};

/* The simulated GPU alone: a line that read a value which kernels should have computed. */
#define CW_READS	128
struct cw_read {
	uint32_t stack;			/* of the Python code; in a backward without any, that of the forward op; 0 = none */
	uint32_t why;			/* CW_READ_* */
	uint64_t count;
};
#define CW_READ_KERNELS	1u		/* nothing but kernels wrote it */
#define CW_READ_MAYBE	2u		/* the host wrote it, and a kernel was given its address since */
#define CW_READ_DROPPED	3u		/* the host wrote it, and it was too large to keep */
#define CW_READ_TURNED	4u		/* like CW_READ_KERNELS, a truth value: the answer was the other one */
#define CW_READ_PATIENCE	1000u	/* equal answers at one place before the other one is given: a loop may be waiting for it */

struct cw_header {
	char magic[8];
	uint16_t major, minor;
	uint32_t header_size;		/* sizeof(struct cw_header) of the writer */
	uint64_t cap;			/* the address space ends here */
	uint64_t used;			/* assigned so far, segments rounded up */
	uint32_t pid, ppid;
	uint64_t start_realtime_ns;	/* at clock0 */
	struct cw_clock clock0, clock1;	/* when the program began, and the newest reading */
	uint32_t rank, local_rank, world_size;	/* CW_UNKNOWN when not set */
	uint32_t off_because;		/* enum cw_reason: whole recorder */
	uint32_t frames_off_because;	/* enum cw_reason: Python frames */
	uint32_t py_version;		/* PY_VERSION_HEX, 0 = no Python */
	uint32_t driver_version;	/* cuDriverGetVersion, 0 = unknown */
	uint32_t init_result;		/* first cuInit; CW_UNKNOWN = never called */
	uint32_t device_count;		/* visible devices; CW_UNKNOWN = unknown */
	uint32_t forked;		/* 1: this process came from fork() of one that had used CUDA */
	uint32_t parent_recorded_pid;	/* the process it was forked from, 0 = none */
	uint32_t sim;			/* 1: the simulated GPU */
	/* how it ended: set by exit() and _exit(), not on death by signal */
	uint32_t exit_known, exit_status;
	uint64_t exit_mono_ns;
	/* counters: what was seen (launches and calls: the heads of the rings) and what was lost */
	uint64_t n_failures, n_allocs, n_frees;
	uint64_t lost_stacks, lost_functions, lost_allocations, lost_threads, lost_strings;
	uint64_t inexact_since_ns;	/* live allocations are exact up to here; 0 = exact */
	uint64_t live_device_bytes, peak_device_bytes;
	/* the environment when CUDA was first used, and at the newest failure */
	char visible_devices_at_init[256];	/* "\001" = was not set */
	char visible_devices_now[256];
	char alloc_conf[256];
	char exe[256], cmdline[1024], cwd[256];
	char torch_path[256];		/* where libtorch was loaded from, "" = not loaded */
	char libcuda_path[256];
	char dump_path[256];		/* where the driver writes a GPU core dump, "" = not armed */
	uint32_t dump_reason;		/* enum cw_reason: why not */
	uint32_t dump_enforced;		/* calls for which the driver reported success although a kernel had failed */
	struct cw_device device[CW_MAX_DEVICES];
	uint32_t n_chunks;
	uint32_t pad;
	struct cw_chunk chunk[CW_MAX_CHUNKS];
	/* dumps of a running GPU */
	char pipe_path[256];		/* writing to it takes one; "" = not armed */
	uint32_t pipe_reason;		/* enum cw_reason: why not */
	uint32_t pad2;
	struct cw_hang hang;
	uint64_t n_blocks, n_blocks_freed;	/* PyTorch's allocator: allocated, freed; 0 = not seen */
	uint64_t lost_blocks;
	uint64_t blocks_inexact_since_ns;	/* like inexact_since_ns */
	uint32_t peers[CW_MAX_DEVICES];	/* bit n: kernels on this device may access memory of device n */
	/* memory, as last reported by PyTorch's allocator and the driver */
	struct cw_memory_now memory[CW_MAX_DEVICES];
	uint64_t pinned_bytes, pinned_peak_bytes;	/* host memory, pinned or registered through the driver */
	uint64_t lost_sites;
	/* autograd: nodes created by forward ops and nodes that backward ran (not counting those that accumulate gradients) */
	uint64_t n_nodes, n_nodes_run;
	char memory_trace_path[256];	/* the file with every event (--memory-trace), beside this one; "" = none */
	/* looks at the GPU after calls that waited, those that were slow for no reason, contexts in which they failed */
	uint64_t n_looks, n_false_looks, lost_looks;
	/* the simulated GPU alone: most memory in use on each device (contexts, code, allocations), written at exit; 0 = unknown */
	uint64_t sim_used_peak[CW_MAX_DEVICES];
	/* likewise: who read values that were not computed; entries are complete before they are counted */
	uint32_t n_reads;
	uint32_t lost_reads;		/* reads for which there was no entry */
	struct cw_read read[CW_READS];
	uint64_t lost_turns;		/* blocks for whose turn there was no room */
	char torch_version[32];		/* from torch/version.py; `cuwhy run` writes this; "" = not known */
	uint64_t seal;			/* since 2.8: of all other bytes; `cuwhy run` writes it when it stores them; 0 = none */
	/* since 2.8: what the program ran with; `cuwhy run` writes these, too; "" = not known */
	char torch_cuda[16], cudnn_version[24], nccl_version[24], driver_release[24], os_name[64];
};

#define CW_NOT_SET "\001"

struct cw_string {			/* in HEAP */
	uint32_t len;			/* without the NUL that follows the bytes */
	char text[];
};

struct cw_frame {
	uint32_t file;			/* off of a cw_string */
	uint32_t function;		/* off of a cw_string */
	uint32_t line;
	uint32_t first_line;		/* of the function */
};

struct cw_stack {			/* in HEAP; innermost frame first */
	uint32_t n;
	uint32_t flags;			/* CW_STACK_* */
	struct cw_frame frame[];
};
#define CW_STACK_CUT	1u		/* deeper than CW_MAX_FRAMES: outermost frames omitted */

struct cw_function {
	uint64_t handle;
	uint32_t name;			/* off of a cw_string: mangled, as the driver returns it */
	uint32_t generation;		/* a module unload raises it: handles are reused */
	uint32_t n_params;		/* CW_UNKNOWN = sizes not known */
	uint32_t param_bytes;		/* of the whole parameter block */
	uint32_t layout;		/* off of a cw_layout, 0 = sizes not known */
	uint16_t plain;			/* 1: a CUfunction; 0: a CUkernel, as far as we know */
	uint8_t stock;			/* 1: its code is from PyTorch's or NVIDIA's own libraries; 0: it is not, or not known */
	uint8_t settled;		/* the recorder's own: stock, and has been launched */
	uint64_t launches;		/* until its layout was known; not the total */
};

struct cw_layout {			/* in HEAP: where each parameter lies in the block */
	uint32_t n;
	struct { uint16_t off, size; } param[];
};

struct cw_ring {			/* 64 bytes, then the slots */
	uint32_t tid;			/* current owner; an old owner's slots keep their own tid */
	uint32_t slot_size;
	uint32_t n_slots;
	uint32_t polls;			/* CALLS: times it polled since wait.since_ns; 0 = inside a call */
	uint64_t head;			/* slots started so far; slot i is at (i & (n_slots-1)) */
	uint64_t thread_key;		/* NODES: at::RecordFunction's number for this thread; TURN_LOG: off of its ring of launches */
	char comm[16];
	struct cw_wait wait;		/* CALLS, with --hang-after only */
};

#define CW_LAUNCH_CAPTURED	1u	/* went into a graph, did not run */
#define CW_LAUNCH_EX		2u
#define CW_LAUNCH_COOPERATIVE	4u
#define CW_LAUNCH_GRAPH		8u	/* cuGraphLaunch: func is 0, stream as given, params[0..7] = exec handle */
#define CW_LAUNCH_IN_BACKWARD	16u	/* node is valid */
#define CW_LAUNCH_DEVICE(flags)	((int)((flags) >> 8) - 1)	/* the device it ran on, -1 = unknown */
#define CW_LAUNCH_ON(device)	((uint16_t)(((device) + 1) << 8))

struct cw_launch {
	uint64_t seq;			/* its index in the ring + 1; 0 while being written */
	uint64_t ticks;
	uint64_t stream;
	uint32_t func;			/* index into FUNCTIONS, 0 = unknown */
	uint32_t stack;			/* off of a cw_stack, 0 = no Python frame */
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t shared;
	uint32_t result;		/* CUresult; of a captured launch: the capture's number */
	uint32_t forward_stack;		/* where the autograd node was created */
	uint32_t node_name;		/* off of a cw_string: the node's C++ type, mangled */
	uint32_t tid;
	uint16_t flags;
	uint16_t n_param;		/* bytes in params */
	uint8_t params[CW_PARAM_BYTES];	/* as the device sees them, at their true offsets */
};

struct cw_call {			/* any other recorded call, successful or not */
	uint64_t seq;
	uint64_t ticks;
	uint32_t api;			/* number in kb/cuda_api.def */
	uint32_t result;
	uint32_t stack;
	uint32_t tid;
	uint64_t arg[6];
	uint64_t out;			/* what the call returned: an address, a handle, a device */
};

struct cw_node {			/* a forward op that autograd will differentiate */
	uint32_t seq_low;		/* low half of the sequence number */
	uint32_t stack;			/* stacks begin at multiples of 8; the bits below: CW_NODE_* */
};
#define CW_NODE_HAS_RUN	1u	/* backward has run it */
#define CW_NODE_RELEASED	2u	/* since 2.8: and then let go of the tensors that it had saved */
#define CW_NODE_BITS	7u

/* Kinds of memory. */
#define CW_MEMORY(X)                                   \
	X(1, DEVICE, "device")                         \
	X(2, ASYNC, "device, stream-ordered")          \
	X(3, VMM, "device, mapped (cuMemCreate)")      \
	X(4, PINNED, "host, pinned")                   \
	X(5, REGISTERED, "host, registered")           \
	X(6, MANAGED, "managed")                       \
	X(7, RESERVED, "address range only")           \
	X(8, IPC, "another process's, opened here")    \
	X(9, TORCH, "a block of PyTorch's allocator")  \
	X(10, WORKSPACE, "one that PyTorch gave to cuBLAS; in FREED only")

enum cw_memory {
#define X(number, name, text) CW_MEM_##name = number,
	CW_MEMORY(X)
#undef X
};

struct cw_allocation {
	uint64_t addr;			/* 0 = empty slot; for a RESERVED range, its address + 1 */
	uint64_t size;
	uint64_t ticks;
	uint32_t stack;
	uint16_t kind;			/* enum cw_memory */
	int16_t device;			/* -1 = host or unknown */
	uint64_t extra;			/* VMM: the memory handle; ASYNC: the stream; TORCH: the forward stack, and above bit 31
					 * the off of a cw_turn, 0 = not in a loop or not known; others, if PyTorch's allocator
					 * asked: the lane (struct cw_event_log) + 1, 0 = not known */
	uint32_t site;			/* index into SITES, 0 = not known */
	/* off of a cw_string: the file that called the driver, 0 = not known; TORCH: the library that PyTorch gave this
	 * block as a workspace, or, with CW_BLOCK_DETAIL, the slack and lane of its events above that bit, 0 = neither */
	uint32_t library;
};

/* A loop of Python code, the program's or a library's. */
#define CW_LOOP_FOR	1u		/* `for`, also in a comprehension; else `while` and the like */
#define CW_LOOP_CALLS	2u		/* no loop: C code (map, hooks) that calls Python code again from this line */
struct cw_loop {
	struct cw_frame frame;		/* `line`: where it begins */
	uint32_t flags;			/* CW_LOOP_* */
	uint32_t reserved[3];
};

/* Which turn of a loop, from 1. With CW_TURN_EXACT, it is the number of elements that the loop has taken from its iterator.
 * Without, it counts the turns that could be told apart: those without any event are not among them, and now and then
 * two turns look like one. */
#define CW_TURN_EXACT	1u
#define CW_LOOP_TURNS	12u
struct cw_loop_turn {
	uint32_t loop;			/* index into LOOPS */
	uint32_t turn;
	uint32_t flags;			/* CW_TURN_* */
};

struct cw_turn {			/* kept as long as a live block refers to it, and then until its place is needed */
	uint32_t up;			/* off of the cw_turn of the loop around it, 0 = none */
	struct cw_loop_turn at;
	uint32_t refs;			/* blocks, and turns of inner loops; if serial is 0: the low half of what it was */
	uint32_t next;			/* the recorder's own */
	uint64_t serial;		/* counts from 1; 0 = no longer or never used */
};

/* A thread's loops have changed. What was at the same depth and deeper is over; a change of several has one entry for each,
 * the outermost first. */
struct cw_turned {
	uint64_t seq;			/* as in cw_launch */
	uint64_t launch;		/* `seq` of the first launch for which it holds */
	uint32_t depth;			/* 0 = the outermost loop */
	struct cw_loop_turn at;		/* loop 0: none */
};

struct cw_failure_turns {		/* entry i is for failure i of FAILURES */
	uint64_t seq;			/* equal to the failure's; written last */
	uint32_t n;
	uint32_t reserved;
	struct cw_loop_turn at[CW_LOOP_TURNS];	/* innermost loop first */
};

/* What Python code would do with an exception that leaves a failed call. `finally` and cleaning up are not among them: they pass it on. */
#define CW_HANDLERS	16u
#define CW_HANDLER_EXCEPT	1u	/* a clause of a `try` statement */
#define CW_HANDLER_WITH		2u	/* a `with` statement: its context manager may end the exception */
#define CW_HANDLER_GOES_ON	0u	/* `does`: the program goes on behind the clause, or the function returns */
#define CW_HANDLER_RAISES	1u	/* it raises an exception, the same or another */
#define CW_HANDLER_EXITS	2u	/* it calls sys.exit(), os._exit() or the like */
#define CW_HANDLER_BRANCHES	1u	/* flag: it does so on a condition */
struct cw_handler {
	uint32_t frame;			/* of the failure's stack: 0 = the innermost */
	uint16_t kind, does;
	uint32_t flags;
	uint32_t types;			/* off of a cw_string: what it catches, "OSError, OutOfMemoryError" as the code names it, 0 = anything; of a
					 * `with`: the type of its context manager */
	uint32_t first_line, last_line;	/* of the clause, as far as it was read; of a `with`: that line */
};

struct cw_failure_handlers {		/* entry i is for failure i of FAILURES */
	uint64_t seq;			/* equal to the failure's; written last */
	uint32_t n, known;		/* known: 1 = the frames could be read, so no handlers means that there are none */
	struct cw_handler at[CW_HANDLERS];	/* in the order in which they are asked */
};

/* A variable of a frame that is a tensor, or an element of one that is a list, a tuple or a dict. */
#define CW_TENSORS	64
#define CW_TENSOR_DIMS	8
struct cw_tensor {
	uint64_t seq;			/* counts from 1; 0 = empty or being written */
	struct cw_frame frame;
	uint32_t number;		/* of the frame: those of one frame have the same, 0 = the innermost that has any */
	uint32_t name, dtype, device;	/* off of a cw_string each */
	uint32_t n_dims;		/* may exceed CW_TENSOR_DIMS: the rest is not kept */
	uint32_t reserved;
	int64_t dim[CW_TENSOR_DIMS];
};

/* Since 2.12: the objects of the program that keep its tensors alive, when an out-of-memory error ends it. The recorder asks and waits, for a
 * second at most; `cuwhy run` reads the objects from outside and writes everything but the first two fields. */
#define CW_HOLDERS		8
#define CW_HOLDERS_WAIT_NS	1000000000u
enum cw_holders_state { CW_HOLDERS_ASKED, CW_HOLDERS_DONE, CW_HOLDERS_TOO_LATE };

struct cw_holder {
	uint64_t bytes, graph;		/* of its blocks; of these, by way of autograd graphs and gradients */
	uint64_t gradients;		/* of these, blocks that were made to accumulate gradients */
	uint64_t used;			/* of `bytes`, what tensors have elements in: views may keep much more; 0 = not known */
	uint64_t length;		/* items of the object, 0 = it has none, or there are many such objects */
	uint32_t tensors, blocks;
	uint32_t stack;			/* where most of these bytes were allocated; 0 = at several places */
	uint32_t line;			/* of the frame whose variable the path begins with; 0 = it begins with a module's */
	char kind[48];			/* of the object: the name of its class */
	char function[96], file[256];
	char path[320];			/* "trainer.metrics.history" */
};

/* Blocks to which no Python object leads, by what the recording says of them: the largest first. */
#define CW_UNHELD		4
#define CW_UNHELD_WORKSPACE	8u	/* and CW_SITE_* */
struct cw_unheld {
	uint64_t bytes;
	uint32_t blocks, stack, flags, pad;
};

struct cw_holders {
	uint64_t asked_ns;		/* CLOCK_MONOTONIC */
	uint64_t exception;		/* the address of the Python object */
	uint32_t state;			/* enum cw_holders_state; written last. TOO_LATE: the recorder waited no longer */
	uint32_t n;
	uint64_t took_ns;
	uint64_t live_bytes, live_blocks;	/* PyTorch's blocks in use, and those of tensors that were found */
	uint64_t bytes, blocks;
	uint64_t objects;
	uint32_t whole, pad;		/* whole: all objects were looked at */
	char why[96];			/* why there is nothing; "" = it was looked for */
	struct cw_holder list[CW_HOLDERS];	/* the most bytes first; each block is counted once */
	struct cw_unheld unheld[CW_UNHELD];	/* bytes 0: no more */
};

/* An allocation site: a line, a kind, a device. Kept for the whole run, so that totals outlive the blocks. */
#define CW_SITE_BACKWARD	1u	/* allocated while an autograd node ran */
#define CW_SITE_GRADIENT	2u	/* by the node that accumulates gradients */
#define CW_SITE_CAPTURED	4u	/* during a stream capture: a graph's pool */

struct cw_site {
	uint32_t stack, forward_stack;	/* off of a cw_stack, 0 = none */
	uint32_t library;		/* off of a cw_string; not for PyTorch's blocks */
	uint16_t kind;			/* enum cw_memory */
	int16_t device;
	uint32_t flags;			/* CW_SITE_* */
	uint32_t peak_generation;	/* the device's, when at_peak was written */
	uint64_t live, live_count;	/* bytes and blocks now */
	uint64_t peak;			/* most bytes this site held at once */
	uint64_t at_peak;		/* its bytes at the device's peak, if peak_generation equals the device's; else `live` is */
	uint64_t total, total_count;	/* over the whole run */
	uint64_t first_ticks, last_ticks;
};

/* Since 2.13: a torch.nn.Module in one of whose methods memory was allocated. Its name is the one by which the next module around it on the stack
 * reaches it: "h.7", "attn". */
#define CW_MODULES		4096u
#define CW_MODULE_UNSURE	1u	/* something else was at its address when that was looked at again: its memory may not be its own */

struct cw_module {
	uint32_t parent;		/* index; 0 = no other module has it */
	uint32_t name;			/* off of a cw_string; 0 = the outermost */
	uint32_t class_name;		/* off of a cw_string; written last */
	uint32_t flags;			/* CW_MODULE_* */
	uint64_t ticks;			/* when it was first seen */
	uint64_t address;
};

/* Samples are at least `every` ticks apart and hold the largest values in between. When the table is full, neighbors
 * are merged and `every` doubles: the samples always cover the whole run. */
struct cw_timeline {			/* 64 bytes, then the samples */
	int32_t device;
	uint32_t n, n_max;		/* samples written; room in the table */
	uint32_t pad;
	uint64_t every;			/* ticks */
	uint64_t reserved[5];
};

struct cw_sample {
	uint64_t ticks;
	uint64_t allocated, reserved;	/* PyTorch's */
	uint64_t driver;		/* this process's, through the driver */
};

/* What each site held over time. The run is divided into epochs, and the moment of an epoch is when PyTorch had the
 * most allocated (without PyTorch: the driver). Each new moment of a device gets the next generation, which the epoch
 * keeps. Before a site's total changes, its mark is compared with the device's generation and set to it: the site has
 * held the same amount since its mark, so it held that amount at every moment with a later generation. A site whose
 * mark is older than an epoch's generation still holds what it held then.
 * When the table is full, one of each pair of neighbors is kept, the one that had more; `every` doubles and `scale`
 * goes up. Each history catches up when its site next changes. */
#define CW_EPOCHS	126u
#define CW_EPOCH_SCALES	32u

struct cw_epoch {
	uint64_t begin, at;		/* ticks: its start (it ends where the next begins) and its moment */
	uint64_t allocated, reserved, driver;	/* as in cw_sample, at the moment */
	uint32_t generation;
	uint32_t flags;			/* CW_EPOCH_* */
};
#define CW_EPOCH_BACKWARD	1u	/* an autograd node made the allocation at the moment */

struct cw_epochs {
	int32_t device;
	uint32_t n_max;			/* CW_EPOCHS */
	uint64_t now;			/* scale << 32 | epochs; table [scale & 1] counts; written last */
	uint64_t every;			/* ticks: no epoch is shorter, except the last */
	uint64_t lost;			/* times there was no room for a history */
	uint64_t reserved[4];
	uint64_t second[CW_EPOCH_SCALES];	/* for each past scale: bit i means that of epochs 2i and 2i+1 the second was kept */
	struct cw_epoch epoch[2][CW_EPOCHS];
};

#define CW_HISTORY_UNIT	512u		/* bytes */
#define CW_HISTORY_BAD	0xffffffffu	/* being changed, or incomplete: do not read */
struct cw_history {
	uint32_t scale;			/* its epochs are those of this scale */
	uint32_t site;			/* 0 = unused; a site without a history held nothing before its mark */
	uint32_t held[CW_EPOCHS];	/* in units, rounded up; those after the site's mark are not written yet */
};

/* Every allocator event (--memory-trace). The recorder writes bytes into a ring, `cuwhy run` moves them to a file
 * that begins with struct cw_events_file, and reports how far it got. When it is too slow, events are lost. */
struct cw_events {			/* 64 bytes, then the ring */
	uint64_t head;			/* bytes written so far; written last */
	uint64_t tail;			/* bytes in the file: `cuwhy run` writes this */
	uint64_t n, lost;		/* events */
	uint32_t size;			/* of the ring; power of two */
	uint32_t pad[7];
};

#define CW_EVENTS_MAGIC	"CUWHYMEM"
struct cw_events_file {
	char magic[8];
	uint16_t major, minor;		/* CW_MAJOR, CW_MINOR */
	uint32_t pid;
	uint64_t start_mono_ns;
};

/* One event: a byte (CW_EVENT_* and, from bit 3 up, the device; 31 = none), the time, the address, and for an
 * allocation the size and the site. Times and addresses are differences from the previous event, the first one's from
 * 0; times are in units of 64 ticks. Numbers have 7 bits in each byte, the lowest first, bit 7 set if more follow. A
 * difference d is stored as 2d, or -2d-1 if it is negative. The number n of an address or a size is stored as
 * 2(n/512) if 512 divides it, else as 2n+1. */
#define CW_EVENTS(X)                                                \
	X(0, MADE,   "PyTorch allocated a block")                   \
	X(1, FREED,  "PyTorch freed it: no size, no site")          \
	X(2, GAVE,   "the driver allocated memory")                 \
	X(3, TOOK,   "the driver freed it: no size, no site")       \
	X(4, OOM,    "PyTorch ran out of memory: time, then the size requested") \
	X(5, LOST,   "events are missing here: how many")            \
	X(6, ASKED,  "the size that PyTorch was asked for, of the next MADE: only where it is not the block's") \
	X(7, MORE,   "what kind (CW_MORE_*), then one number; a reader skips kinds that it does not know")

enum cw_event {
#define X(number, name, text) CW_EVENT_##name = number,
	CW_EVENTS(X)
#undef X
};
#define CW_EVENT_TICKS	64u

/* MORE: neither time nor address. Sizes are in bytes, streams and pools as PyTorch numbers them (0: the default one). */
#define CW_MORES(X)                                                               \
	X(0, STREAM,  "the stream of the blocks from here on")                    \
	X(1, POOL,    "their pool: 0, or that of a CUDA graph")                    \
	X(2, REFUSED, "the driver had no memory for this many bytes")              \
	X(3, FREE,    "what the card has free (cuMemGetInfo)")                      \
	X(4, LATER,   "1: the next FREED waits for other streams, and is in use until they are done") \
	X(5, START,   "the events begin here; what comes before was there already, in an unknown order: how many slots were overwritten")

enum cw_event_more {
#define X(number, name, text) CW_MORE_##name = number,
	CW_MORES(X)
#undef X
};
#define CW_EVENT_UNIT	512u

/* The newest allocator events of a process that uses PyTorch. The slots of all EVENT_SLOTS chunks, in
 * the order of the chunks, are one ring; it grows by a chunk when it is full, and once it cannot, begins again. Pages of
 * CW_LOG_PAGE slots begin with a time and depend on no other, so all but the page being overwritten can be read. What was live
 * before the oldest event follows from the events and from what is live at the end. */
#define CW_LOG_PAGE	256u		/* slots: 4096 bytes */
#define CW_LANES	256u

struct cw_lane {			/* what a block can be reused for, besides its size */
	uint64_t stream;		/* as PyTorch numbers them */
	uint32_t pool;			/* 0, or the number of a capture */
	uint32_t pad;
};

struct cw_event_log {
	uint64_t head;			/* slots written so far; written last */
	uint64_t lost;			/* events, at unknown places */
	uint32_t n_lanes, full;		/* full: lanes that found no room share the last one */
	uint64_t pad[5];
	uint64_t free[CW_MAX_DEVICES];	/* the last CW_MORE_FREE, 0 = none */
	struct cw_lane lane[CW_LANES];
};

/* MADE and FREED take one slot; GAVE, TOOK, OOM and MORE two of one page:
 *   `what`: CW_EVENT_* or CW_SLOT_*, from bit 3 the device (31 = none), and for
 *     MADE, FREED, LATER   the address (512 divides it)
 *     GAVE, TOOK           from bit 9 its lane + 1 (0 = not known), from bit 18 its site
 *     MORE                 from bit 9 CW_MORE_*
 *   `value`: of the first slot of two, and of TIME, the ticks; the second slot has the address in `what` and the size, or whatever
 *     the number is, in `value`. For MADE, FREED and LATER see CW_SLOT_*_SHIFT: size and slack, the bytes by which a block is larger
 *     than the request, are in units of 512. */
#define CW_SLOT_LATER		5u	/* FREED, and in use until other streams are done */
#define CW_SLOT_TIME		6u	/* at the start of a page; value 0: an empty slot */
#define CW_SLOT_SIZE_MAX	((1u << 29) - 1)
#define CW_SLOT_SITE_SHIFT	29
#define CW_SLOT_SITE_MAX	((1u << 15) - 1)
#define CW_SLOT_SLACK_SHIFT	44
#define CW_SLOT_SLACK_MAX	((1u << 12) - 1)
#define CW_SLOT_LANE_SHIFT	56
#define CW_SLOT_NOTE_LANE_SHIFT 9
#define CW_SLOT_NOTE_SITE_SHIFT 18

struct cw_event_slot {
	uint64_t what, value;
};

/* In `library` of a live block: from bit 1 the slack, from bit 13 the lane. */
#define CW_BLOCK_DETAIL	1u

/* For a small block: what the thread last did with CUDA, because no line is looked up for those. */
#define CW_FREED_AFTER		1u	/* in free_stack; offs are multiples of 8 */

struct cw_freed {			/* an allocation that was freed */
	uint64_t seq;			/* as in cw_launch */
	uint64_t addr, size;
	uint64_t made_ticks, ticks;	/* allocated, freed */
	uint32_t stack, forward_stack;	/* of the allocation; in backward: where the autograd node was created */
	uint32_t free_stack;		/* the Python line running when its last owner released it; CW_FREED_AFTER: before that */
	int16_t device;
	uint16_t kind;			/* enum cw_memory */
	uint32_t turn, turn_serial;	/* since 2.6: off and serial (low half) of the cw_turn in which it was allocated; 0 = none */
};

/* Since 2.9: NCCL's communicators and the newest calls of each. A call is written before NCCL is called: it may never return. */
#define CW_COLLECTIVES(X)                  \
	X(1, ALL_REDUCE, "all_reduce")     \
	X(2, BROADCAST, "broadcast")       \
	X(3, REDUCE, "reduce")             \
	X(4, ALL_GATHER, "all_gather")     \
	X(5, REDUCE_SCATTER, "reduce_scatter")

enum cw_collective {
#define X(number, name, text) CW_COLLECTIVE_##name = number,
	CW_COLLECTIVES(X)
#undef X
};

#define CW_COMMS	32u
#define CW_COMM_MARKS	16u
#define CW_COMM_CALLS	16u

struct cw_comm_call {
	uint64_t seq;			/* from 1; 0 = empty or being written */
	uint64_t count;			/* elements */
	uint64_t mono_ns;
	uint32_t stack;
	uint16_t op, type;		/* enum cw_collective; ncclDataType_t */
};

struct cw_comm_mark {			/* slot n: the newest call whose number 2^n divides */
	uint64_t seq, digest;		/* of all calls up to this one: which, how many elements, of which type */
};

struct cw_comm {
	uint64_t id;			/* hash of its unique id; of a split: of parent, color and order */
	uint64_t parent;		/* id of the one that it was split from; 0 = none */
	int64_t color;
	uint64_t order;			/* which split of its parent it was, from 1 */
	uint64_t handle;		/* ncclComm_t; 0 = destroyed or aborted */
	uint64_t stream;		/* of the newest call */
	uint32_t rank, size;		/* CW_UNKNOWN, 0: a split */
	uint64_t init_in_ns, init_out_ns;	/* CLOCK_MONOTONIC; out 0: it did not return, or not only after all ranks had called */
	uint64_t called, messages, splits;	/* collectives; sends and receives */
	uint64_t digest;
	uint32_t aborted, async_error;	/* ncclResult_t that ncclCommGetAsyncError told last */
	struct cw_comm_call call[CW_COMM_CALLS];	/* number n in slot n % CW_COMM_CALLS */
	struct cw_comm_mark mark[CW_COMM_MARKS];
};

struct cw_comms {
	uint32_t n, lost;		/* lost: communicators that found no room */
	uint64_t lost_calls;		/* of communicators that are not known */
	struct cw_comm comm[CW_COMMS];
};

/* Since 2.11: lines that the driver printed, for kernels that fail an assertion or call printf. Each once: lines that differ
 * only in the numbers of "block: [0,0,0], thread: [1,0,0]" are one, since the driver prints one for each thread. */
#define CW_PRINTED_LINES	8u

struct cw_printed_line {
	uint64_t count;			/* times that it was printed; 0 = none yet */
	uint64_t ticks;			/* when first */
	uint32_t stream;		/* 1 standard output, 2 standard error */
	uint32_t length;		/* of all of it, which may be longer than `text` */
	uint32_t place, place_end;	/* where in `text` the block and the thread are; 0, 0: it names none */
	uint32_t block[3], thread[3];	/* of the first */
	uint64_t blocks[4];		/* bit (x + 31 y + 961 z) mod 256 of each block: no fewer than there are bits */
	char text[1024 - 88];		/* the first, without the end of line */
};

struct cw_printed {
	uint32_t redirected;		/* calls of the driver to libc that are watched; 0: none could be */
	uint32_t pad;
	uint64_t lost;			/* lines for which there was no room; of kernels' own, no more than 1,000 are counted */
	uint64_t reserved[6];
	struct cw_printed_line assertion[CW_PRINTED_LINES];	/* "… block: […], thread: […] Assertion …" */
	struct cw_printed_line other[CW_PRINTED_LINES];
	struct cw_printed_line open[2];	/* of each stream: a line that is not complete; its length so far, and no count */
};

/* Since 2.13: the newest copies from the host to a GPU, with the contents of small ones. Both are rings: slot i is that of copy i, i + n_slots
 * and so on, and byte b of the contents is at b % n_bytes, as long as no more than n_bytes were written behind it. */
#define CW_COPIES		4096u
#define CW_COPIES_BYTES		(4u << 20)
#define CW_COPIES_WHOLE		(64u << 10)	/* kept as a whole up to this many bytes, */
#define CW_COPIES_PREFIX	(4u << 10)	/* of larger ones so many */

#define CW_COPY_PINNED		1u		/* from pinned memory, perhaps after the call returned: the program may have changed it */
#define CW_COPY_IN_STREAM	2u		/* by a call that names a stream: it may have been done after the call returned */

struct cw_copy {
	uint64_t seq;			/* as in cw_launch */
	uint64_t ticks;			/* after the call */
	uint64_t to, from, bytes, stream;
	uint64_t contents;		/* the number of its first byte in the ring */
	uint32_t kept;			/* bytes of them, from the start */
	uint32_t stack, tid, flags;	/* CW_COPY_* */
	int32_t device;			/* the current one, -1 = not known */
	uint32_t pad;
};

struct cw_copies {			/* 64 bytes, then the slots, then the contents */
	uint64_t head;			/* copies so far */
	uint64_t written;		/* bytes of contents so far; before they are written */
	uint64_t lost;			/* copies that are not here: another thread was busy with the ring */
	uint32_t n_slots, n_bytes;
	uint64_t shared;		/* when memory was first given to another process, which may write it unseen; 0 = never */
	uint64_t reserved[3];
};

/* Since 2.13: a single value that the program copied to the host, and whose bytes are NaN or infinity in some floating-point format. One for each
 * stack: the first. */
#define CW_NUMBERS		64u
struct cw_number {
	uint32_t stack;			/* written last; 0 = empty */
	uint32_t bytes;			/* 2, 4 or 8 */
	uint64_t value;			/* as it was in memory */
	uint64_t ticks, from;
	uint64_t block_ticks;		/* when PyTorch's block was made, 0 = not known */
	/* This thread's first launch since then that was given its address, and the last: index into FUNCTIONS, off of a cw_stack; 0 = none.
	 * maker_stack = 0: the first one is not known, and `maker` is the last. */
	uint32_t maker, maker_stack, user, user_stack;
	uint32_t count;			/* how often this stack read such bytes */
	uint32_t n;
	struct cw_loop_turn at[CW_LOOP_TURNS];	/* innermost loop first */
};

struct cw_range {			/* memory of the process that came from no device */
	uint64_t start, end;
};

/* Who noticed a failure. */
#define CW_SOURCES(X)                                                                   \
	X(1, DRIVER, "driver", "a driver call returned an error")                       \
	X(2, RUNTIME, "runtime", "the CUDA runtime itself returned an error")           \
	X(3, TORCH_CUDA, "torch-cuda", "PyTorch saw a CUDA call fail and raises")       \
	X(4, TORCH_OOM, "torch-oom", "PyTorch's allocator ran out of memory and raises") \
	X(5, TORCH_CHECK, "torch-check", "PyTorch itself rejected the operation")        \
	X(6, PYTHON, "python", "an exception ended the Python program")                 \
	X(7, FORK, "fork", "CUDA was used in a forked child")                           \
	X(8, WAIT, "wait", "`cuwhy run` saw the process wait too long; never in a recording") \
	X(9, RANKS, "ranks", "the simulated NCCL saw that the ranks do not agree: `what` this one calls") \
	X(10, GUARD, "guard", \
	  "`cuwhy run --guard` found bytes that are not as they should be: `what`, and CW_GUARD_ARGS")

enum cw_source {
#define X(number, name, id, text) CW_SRC_##name = number,
	CW_SOURCES(X)
#undef X
};

/* RANKS: arg[0], if n_args is not 0. */
enum cw_ranks_blame {
	CW_BLAME_ODD,		/* most ranks call something else */
	CW_BLAME_EITHER,	/* the ranks disagree, and neither side has a majority */
	CW_BLAME_WAITS,		/* it waits in a call that most ranks came to, for ranks that have ended */
};

/* GUARD: `what`, `stack` (where the allocation was made) and `arg`: its address and size, then
 *   SLACK          where behind its end, and how many bytes, were written; the stack of the free; ticks of the
 *                  allocation; is it PyTorch's; the first 8 bytes there
 *   UNINITIALIZED  which bytes of it nobody wrote: from, how many; the stack of the copy to the host; ticks; is it
 *                  PyTorch's; 0; how many other allocations have such bytes; did a launch or a copy have a pointer to it,
 *                  or is that only possible (a table of pointers, a launch that could not be looked at) */
#define CW_GUARD_SLACK		"slack"
#define CW_GUARD_UNINITIALIZED	"uninitialized"
#define CW_GUARD_ARGS(X) X(addr) X(size) X(from) X(bytes) X(noticed) X(ticks) X(torch) X(value) X(others) X(given)
enum cw_guard_arg {
#define X(name) CW_GUARD_ARG_##name,
	CW_GUARD_ARGS(X)
#undef X
	CW_GUARD_ARG_COUNT
};

/* Why an allocation was not guarded. */
#define CW_GUARD_SKIPS(X)                                                            \
	X(0, MEMORY, "there was no memory for a 2 MiB page each")                    \
	X(1, ONLY, "they are not from the lines that were asked for")                \
	X(2, SAMPLE, "only a sample was asked for")                                  \
	X(3, POOL, "they are in a memory pool of PyTorch's that is not a plain graph's") \
	X(4, SHARED, "NCCL shares them with other processes")                        \
	X(5, OTHER, "the driver or the recorder could not")
enum cw_guard_skip {
#define X(number, name, text) CW_GUARD_SKIP_##name = number,
	CW_GUARD_SKIPS(X)
#undef X
	CW_GUARD_SKIP_COUNT
};

#define CW_GUARD_BEFORE	1u		/* the hole is before the allocation */
#define CW_GUARD_VALUES	2u		/* fresh memory held the pattern */
#define CW_GUARD_TORCH	4u		/* PyTorch's allocator is guarded, too */
struct cw_guard {
	uint32_t flags;			/* CW_GUARD_* */
	uint32_t align, sample;
	uint32_t pad;
	uint64_t made, freed;		/* guarded allocations */
	uint64_t skipped[8];		/* by enum cw_guard_skip */
	uint64_t reused;		/* times that address space was used again */
	uint64_t checked, damaged;	/* allocations behind which the pattern was compared, and was not there */
	uint64_t searches;
	uint64_t extra;			/* bytes beyond what the program needs, when it last ran out of memory */
	uint64_t reserved[3];
	char only[256];
};

struct cw_failure {
	uint64_t seq;			/* counts from 1 in the order seen; 0 = empty or being written */
	uint64_t ticks, last_ticks;	/* the first and last time this failure was seen */
	uint64_t mono_ns;
	uint32_t count;			/* times seen: same source, call, code and stack */
	uint32_t source;		/* enum cw_source */
	uint32_t api;			/* number in kb/cuda_api.def, 0 = not a driver call */
	uint32_t code;			/* CUresult or cudaError_t, 0 = none */
	uint32_t tid;
	uint32_t stack;
	uint32_t forward_stack;
	uint32_t node_name;
	int32_t device;			/* current device, -1 = unknown */
	uint32_t capturing;		/* a stream capture was in progress in this process */
	uint32_t capture_stack;		/* where that capture began */
	uint32_t n_args;
	uint64_t arg[CW_MAX_ARGS];
	/* launches, cuFuncSetAttribute and the like: the function */
	uint32_t func;
	uint32_t is_launch;
	uint32_t grid[3], block[3];
	uint32_t shared;
	uint32_t cluster[3];		/* 0 = none requested */
	uint32_t cooperative;
	uint64_t stream;
	int32_t func_attr[CW_FUNC_COUNT];	/* -1 = unknown */
	/* memory */
	uint32_t memory_known;
	uint32_t whole_text;		/* off of a cw_string: a message too long for `text`, its end if it is very long; 0 = none */
	uint64_t free_bytes, total_bytes;	/* cuMemGetInfo just after the failure */
	uint64_t request_bytes;		/* the size requested, 0 = not an allocation */
	uint64_t torch_allocated, torch_reserved;	/* TORCH_OOM */
	uint64_t live_device_bytes;	/* this process's driver allocations */
	/* words */
	char visible_devices[64];	/* CUDA_VISIBLE_DEVICES at the failure, CW_NOT_SET if unset */
	char what[96];			/* function or exception type, as its source names it */
	char file[160];			/* source file as PyTorch names it */
	char library[160];		/* file that made the call, or that contains the code it loads; "" = not known */
	union {
		uint32_t line;		/* in `file` */
		uint32_t found_beside;	/* DRIVER, lookups of code: kernels that the thread had found in one go by then, without launching any */
	};
	uint32_t python_chain;		/* PYTHON: 0 = the exception itself, 1.. = its causes and the exceptions it carries */
	char text[1024];		/* the driver's log line, the check's or the exception's message */
};

/* Recorder -> `cuwhy run`: one message per segment, with its memfd attached (SCM_RIGHTS). */
#define CW_HELLO_MAGIC 0x79687763u
#define CW_WAKE_MAGIC	0x6b617763u	/* without a memfd: out of memory, see what holds the GPU's memory */
#define CW_HOLDERS_MAGIC 0x6f687763u	/* likewise: see what keeps its tensors alive (struct cw_holders) */
struct cw_hello {
	uint32_t magic;
	uint32_t pid;
	uint64_t start_mono_ns;		/* with pid: identifies this process image */
	uint32_t off, len;		/* where the segment belongs */
};

/* Recorder -> `cuwhy run`, without the socket: a file next to it that every process maps when it starts. */
#define CW_NOTICES_FILE	"n"
#define CW_NOTICES	511
struct cw_notices {
	uint32_t n;			/* may exceed CW_NOTICES: the rest is only counted */
	uint32_t reserved;
	struct cw_notice {
		uint32_t pid;		/* 0 = not written yet */
		uint32_t error;		/* errno: why this process is not recorded; 0 = the reason is not known */
	} list[CW_NOTICES];
};

_Static_assert(sizeof(struct cw_notices) == 4096, "one page");
_Static_assert(sizeof(struct cw_launch) == 80 + CW_PARAM_BYTES, "part of the file format");
_Static_assert(sizeof(struct cw_call) == 88, "part of the file format");
_Static_assert(sizeof(struct cw_allocation) == 48, "part of the file format");
_Static_assert(sizeof(struct cw_loop) == 32, "part of the file format");
_Static_assert(sizeof(struct cw_turn) == 32, "part of the file format");
_Static_assert(sizeof(struct cw_turned) == 32, "part of the file format");
_Static_assert(sizeof(struct cw_tensor) == 112, "part of the file format");
_Static_assert(sizeof(struct cw_failure_turns) == 160, "part of the file format");
_Static_assert(sizeof(struct cw_site) == 88, "part of the file format");
_Static_assert(sizeof(struct cw_timeline) == 64, "part of the file format");
_Static_assert(sizeof(struct cw_sample) == 32, "part of the file format");
_Static_assert(sizeof(struct cw_epochs) == 64 + 256 + 2 * 48 * CW_EPOCHS, "part of the file format");
_Static_assert(sizeof(struct cw_history) == 512, "part of the file format");
_Static_assert(sizeof(struct cw_events) == 64, "part of the file format");
_Static_assert(sizeof(struct cw_events_file) == 24, "part of the file format");
_Static_assert(sizeof(struct cw_event_log) == 64 + 256 + 16 * CW_LANES, "part of the file format");
_Static_assert(sizeof(struct cw_event_slot) * CW_LOG_PAGE == 4096, "part of the file format");
_Static_assert(sizeof(struct cw_ring) == 64, "part of the file format");
_Static_assert(sizeof(struct cw_function) == 40, "part of the file format");
_Static_assert(sizeof(struct cw_node) == 8, "part of the file format");
_Static_assert(sizeof(struct cw_freed) == 64, "part of the file format");
_Static_assert(sizeof(struct cw_range) == 16, "part of the file format");
_Static_assert(sizeof(struct cw_number) == 64 + 12 * CW_LOOP_TURNS, "part of the file format");
_Static_assert(sizeof(struct cw_copy) == 80, "part of the file format");
_Static_assert(sizeof(struct cw_copies) == 64, "part of the file format");
_Static_assert(sizeof(struct cw_hello) == 24, "part of the file format");
_Static_assert(sizeof(struct cw_printed_line) == 1024, "part of the file format");
_Static_assert(sizeof(struct cw_printed) == 64 + 18 * 1024, "part of the file format");
_Static_assert(sizeof(struct cw_holder) == 56 + 720, "part of the file format");
_Static_assert(sizeof(struct cw_holders) == 176 + CW_HOLDERS * 776 + CW_UNHELD * 24, "part of the file format");
_Static_assert(sizeof(struct cw_module) == 32, "part of the file format");
_Static_assert(sizeof(struct cw_guard) == 16 + 18 * 8 + 256, "part of the file format");

#endif
