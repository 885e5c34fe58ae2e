/* SPDX-License-Identifier: Apache-2.0
 * The recorder's tables under the thread sanitizer: many threads launch, allocate, fail, capture and die
 * at once. The files are compiled into this program; the driver behind them is the few lines below.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "recorder/rec.h"
#include "recorder/guard/rec_guard.h"
#include "recorder/rec_python.h"

#define THREADS 12
#define WAVES	4
#define ROUNDS	20000

static CUresult mem_info(size_t *free_bytes, size_t *total)
{
	*free_bytes = 1 << 20;
	*total = 2 << 20;
	return 0;
}

static CUresult kernel_name(const char **name, void *f)
{
	*name = (uintptr_t)f & 16 ? "even" : "odd";
	return 0;
}

static CUresult param_info(void *f, size_t i, size_t *off, size_t *size)
{
	(void)f;
	*off = i * 8;
	*size = 8;
	return i < 3 ? 0 : 1;
}

static CUresult is_capturing(void *stream, int *status)
{
	*status = stream != NULL;
	return 0;
}

struct helpers drv = {
	.cuKernelGetName = kernel_name, .cuKernelGetParamInfo = param_info, .cuStreamIsCapturing = is_capturing};

_Atomic(void *) door_real[ENTRY_COUNT];

void *door_find(enum entry e)
{
	return e == ENTRY_cuMemGetInfo_v2 ? (void *)mem_info : NULL;
}

/* guard mode is off */
_Atomic bool guard_armed;

void guard_start(void)
{
}

struct guard guard;

bool guard_pending(void)
{
	return false;
}

bool guard_points_to_freed(const struct guard_launch *l, const void *bytes, size_t n)
{
	(void)l;
	(void)bytes;
	(void)n;
	return false;
}

void guard_wait_for_freed(void) {}

bool guard_give(const void *words, size_t n, enum guard_given how)
{
	(void)words;
	(void)n;
	(void)how;
	return false;
}

void guard_unseen(void)
{
}

bool guard_capture(const struct guard_launch *l, const void *words, size_t n)
{
	(void)l;
	(void)words;
	(void)n;
	return false;
}

bool guard_flush(bool give_back)
{
	(void)give_back;
	return false;
}

bool guard_make_room(void)
{
	return false;
}

/* no Python */
uint32_t handlers_now(struct cw_handler *out, uint32_t max)
{
	(void)out;
	(void)max;
	return 0;
}

int current_device(void)
{
	return 0;
}

bool context_ever(void)
{
	return false;
}

bool context_is_only(void)
{
	return false;
}

bool doors_open(void)
{
	return true;
}

bool doors_complete(void)
{
	return true;
}

const char *doors_library(void)
{
	return "libcuda.so.1";
}

bool torch_backward(struct rec_thread *t, uint32_t *forward_stack, uint32_t *node_name)
{
	(void)t, (void)forward_stack, (void)node_name;
	return false;
}

void torch_start(void) { }
void exit_start(void) { }
void exit_at_once_after_fault(void) { }
void python_start(void) { }
void python_hook(void) { }
void python_hook_early(void) { }
bool turn_table_start(void) { return true; }
uint32_t turn_keep(struct rec_thread *t) { (void)t; return 0; }
uint32_t module_here(struct rec_thread *t, uint64_t ticks) { (void)t, (void)ticks; return 0; }
void turn_drop(uint32_t turn) { (void)turn; }
uint32_t turn_serial(uint32_t turn) { (void)turn; return 0; }
uint64_t torch_stream(int device) { (void)device; return 0; }
enum branch branch_here(void) { return (enum branch)0; }
uint32_t turns_now(const struct rec_thread *t, struct cw_loop_turn *out, uint32_t max)
{
	(void)t, (void)out, (void)max;
	return 0;
}

/* Sometimes a new stack, so that interning is exercised, too. */
uint32_t stack_here(void)
{
	static _Atomic uint32_t n;
	uint32_t i = atomic_fetch_add(&n, 1) / 64 % 3000;
	uint64_t hash = (i + 1) * 0x9e3779b97f4a7c15ull | 1;
	struct cw_frame f = {.line = i};
	uint32_t off = stack_lookup(hash);

	return off ? off : stack_intern(hash, &f, 1, 0);
}

static void one_round(uint64_t id, uint64_t i)
{
	uint64_t value[3] = {id, i, id ^ i}, arg[CW_MAX_ARGS] = {id, i};
	void *params[3] = {&value[0], &value[1], &value[2]};
	struct torch_block_note block = {
		.addr = 0x7f0000000000ull, .size = 512, .allocated = 512, .reserved = 1 << 20, .device = (int)(i % 2)};
	struct cw_allocation taken;

	if (!rec_enter())
		return;
	note_launch(&(struct launch_note){ .api = API_cuLaunchKernel, .function = 0x1000 + (i % 700) * 16,
					  .grid = {1, 1, 1},
					  .block = {32, 1, 1},
					  .params = params,
					  .stream = i % 97 == 0,
					  .result = i % 1001 == 0});
	note_call(&(struct call_note){.api = API_cuMemcpyAsync, .arg = arg, .n_args = 2, .result = i % 503 == 0});
	driver_alloc_add(0x100000000ull + (id * ROUNDS + i) * 512, 512, CW_MEM_DEVICE, 0, 0);
	if (i % 3)
		driver_alloc_take(0x100000000ull + (id * ROUNDS + i) * 512, &taken);
	block.addr += (id * ROUNDS + i) * 512;
	block.allocated += i * 512;
	torch_block_made(&block);
	block.size = -512;
	if (i % 2)
		torch_block_freed(&block);
	if (i % 211 == 0)
		capture_begin(id + 1, stack_here());
	if (i % 211 == 100) {
		capture_end(id + 1, id + 100);
		capture_graph_gone(id + 100);
	}
	if (i % 5000 == 1)
		atomic_fetch_add(&rec.module_generation, 1);
	rec_leave();
}

static void *work(void *arg)
{
	for (uint64_t i = 0; i < ROUNDS; i++)
		one_round((uintptr_t)arg, i);
	return NULL;
}

/* Keeps what the recorder passes on, as `cuwhy run` would. */
static void *keeper(void *arg)
{
	int s = *(int *)arg;

	for (;;) {
		char byte[64];
		int c = accept(s, NULL, NULL);

		if (c < 0)
			return NULL;
		if (recv(c, byte, sizeof(byte), 0) < 0) { /* nothing to do about it */
		}
		close(c);
	}
}

/* The recorder reads its environment when it is loaded: start again with it set. */
static int start_again(char **argv, const char *socket_path, int s)
{
	char fd[16];

	snprintf(fd, sizeof(fd), "%d", s);
	setenv("CUWHY_SOCK", socket_path, 1);
	setenv("TSAN_RINGS_FD", fd, 1);
	setenv("CUWHY_MEMORY_TRACE", "1", 1);
	execv("/proc/self/exe", argv);
	return 2;
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/cuwhy-tsan-XXXXXX";
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	const char *given = getenv("TSAN_RINGS_FD");
	int s = given ? (int)strtol(given, NULL, 10) : socket(AF_UNIX, SOCK_SEQPACKET, 0);
	pthread_t k, t[THREADS];

	(void)argc;
	if (!given) {
		if (!mkdtemp(dir))
			return 2;
		snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/s", dir);
		if (bind(s, (struct sockaddr *)&addr, sizeof(addr)) || listen(s, 64))
			return 2;
		return start_again(argv, addr.sun_path, s);
	}
	pthread_create(&k, NULL, keeper, &s);
	for (uintptr_t wave = 0; wave < WAVES; wave++) {
		for (uintptr_t i = 0; i < THREADS; i++)
			pthread_create(&t[i], NULL, work, (void *)(wave * THREADS + i));
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
	}
	unlink(getenv("CUWHY_SOCK"));
	snprintf(dir, sizeof(dir), "%.*s", (int)sizeof(dir) - 1, getenv("CUWHY_SOCK"));
	rmdir(dir);
	if (rec_asleep() || rec.h->n_allocs == 0 || rec.h->n_failures == 0 || rec.h->n_blocks_freed == 0) {
		puts("nothing was recorded");
		return 1;
	}
	printf("rings: %d threads, %lu allocations, %lu failures, %lu threads without a ring\n", THREADS * WAVES,
	       (unsigned long)rec.h->n_allocs, (unsigned long)rec.h->n_failures,
	       (unsigned long)rec.h->lost_threads);
	return 0;
}
