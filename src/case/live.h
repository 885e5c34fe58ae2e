/* SPDX-License-Identifier: Apache-2.0
 * A process that was observed while it runs: its threads, where they are, and what they wait for.
 */
#ifndef CUWHY_CASE_LIVE_H
#define CUWHY_CASE_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "case/line.h"

/* What a thread waits for. The words are in the JSON and in rules. */
#define LIVE_WAITS(X)                                                      \
	X(NOTHING, "nothing", "nothing: it runs")                          \
	X(LOOP, "loop", "nothing: it runs in a loop that changes nothing") \
	X(NATIVE, "native", "nothing: it runs in native code")             \
	X(GIL, "gil", "the GIL")                                           \
	X(LOCK, "lock", "a lock")                                          \
	X(QUEUE, "queue", "an item of a queue")                            \
	X(QUEUE_ROOM, "queue-room", "room in a queue")                     \
	X(QUEUE_DONE, "queue-done", "the items of a queue to be processed") \
	X(CONDITION, "condition", "a condition or an event")               \
	X(THREAD, "thread", "another thread to end")                       \
	X(TASKS, "tasks", "tasks of its own event loop")                   \
	X(PROCESS, "process", "another process to end")                    \
	X(WORKER, "worker", "a worker process")                            \
	X(PIPE, "pipe", "a pipe")                                          \
	X(SOCKET, "socket", "a peer, on a socket")                         \
	X(ACCEPT, "accept", "a connection")                                \
	X(STORE, "store", "other ranks, at the store")                     \
	X(COLLECTIVE, "collective", "other ranks, in a collective")        \
	X(CUDA, "cuda", "the GPU")                                         \
	X(SLEEP, "sleep", "time to pass")                                  \
	X(SIGNAL, "signal", "a signal")                                    \
	X(FILE_LOCK, "file-lock", "the lock of a file")                    \
	X(FILE, "file", "a file")                                          \
	X(DEVICE, "device", "a device")                                    \
	X(TERMINAL, "terminal", "input from a terminal")                   \
	X(STOPPED, "stopped", "a signal to continue: it is stopped")       \
	X(EVENT, "event", "events on several files or sockets")            \
	X(UNKNOWN, "unknown", "something in the kernel")

enum live_waits {
#define X(id, word, text) LIVE_##id,
	LIVE_WAITS(X)
#undef X
	LIVE_WAITS_COUNT
};
const char *live_waits_word(enum live_waits w);
const char *live_waits_text(enum live_waits w);

struct native_frame {
	const char *library;	/* "libcuda.so.1" */
	const char *function;	/* NULL = not known */
	uint64_t offset;
	bool unwound;		/* by its unwind tables; false: an address on the stack that looks like a call */
};

struct live_thread {
	uint32_t tid;
	const char *name;
	bool main, python, gil;	/* gil: it holds the GIL */
	bool moved;		/* between the looks */
	bool busy;		/* it had a processor, or was ready for one */
	const char *changes;	/* a loop in which no variable changes: what does; NULL = nothing that can be seen */
	bool public;		/* any process may end the wait: it is for the other end of a named pipe */
	bool shared;		/* the lock that it waits for is in memory that processes share */
	char state;
	double cpu;		/* share of the time between the samples on a processor */
	enum live_waits waits;
	const char *what;	/* more about it: "descriptor 7, a pipe"; NULL = no more */
	const char *call;	/* the system call; NULL = none */
	uint32_t holder;	/* the thread that has what it waits for; 0 = not known */
	bool holder_sure;	/* CPython itself says so */
	bool timed;		/* it waits with a time limit, and goes on then */
	bool in_circle;		/* it is one of those that wait for each other's locks */
	bool alone;		/* the other end of the pipe or socket that it waits on is in this process, if anywhere */
	uint32_t peer;		/* the process that it waits for; 0 = not known */
	const char *peer_text;	/* what is known about it: "it has ended", "python worker.py, which runs" */
	struct line line;	/* of the user's own code; `file` NULL = not known */
	struct line *stack;	/* innermost first */
	size_t n_stack;
	struct native_frame *native;
	size_t n_native;
};

struct live_gpu {
	uint32_t index;
	const char *name;
	uint64_t bytes;		/* that this process holds; UINT64_MAX = not known */
	int utilization;	/* of the whole GPU, in percent; -1 = not known */
};

struct live {
	uint32_t pid;
	const char *command, *user_cwd;
	double seconds;		/* between the first and the last sample */
	unsigned looks;
	double cpu;		/* all threads, processors in use */
	uint64_t longest_stop_ns;
	unsigned stops;
	const char *python;	/* "3.11.7"; NULL = no Python was found */
	const char *no_python, *no_native;	/* why not; NULL = there is */
	struct live_thread *thread;	/* main thread first */
	size_t n;
	const struct live_thread *stuck;	/* the thread that matters; NULL = it is not hung */
	const struct live_thread *works;	/* not hung: the one that works */
	const struct live_thread *outside;	/* hung: another thread, which waits for something outside the process; NULL = none */
	const char *wakes;	/* hung: what goes on by itself, and may end the wait; NULL = nothing that is known */
	uint32_t peer_works;	/* not hung: the main thread waits for this process, which works; 0 = it does not */
	bool deadlock, deadlock_sure;
	bool deadlock_timed;	/* something goes on by itself that may end it: `wakes` says what */
	struct live_gpu *gpu;
	size_t n_gpus;
	bool recorded;		/* a recorder of cuwhy is inside */
	uint64_t launches;	/* so far, if so */
	const char *last_kernel, *last_line;
};

#endif
