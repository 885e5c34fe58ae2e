/* SPDX-License-Identifier: Apache-2.0
 * Where ranks meet: memory without a file name (memfd), which the others open through /proc of the process that made the unique id.
 * The kernel frees it with the last process, however that ends.
 */
#include "sim/nccl/nccl.h"
#include "sim/cuda/sim_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* What a unique id says. */
struct place {
	char magic[16];
	char token[32];
	int32_t pid, fd;
};
_Static_assert(sizeof(struct place) <= NCCL_ID_BYTES, "must fit into ncclUniqueId");

static const char magic[16] = "cuwhy-nccl-1";
enum { PAGE_BYTES = 4096, LOOK_NS = 20 * 1000 * 1000, NAP_NS = 20 * 1000 };

static size_t page_up(size_t bytes)
{
	return (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Each part begins where the one before it ends. Nothing is taken before it is written to. */
struct layout {
	size_t calls, published, values, pairs, messages, end;
};

static struct layout layout_for(size_t ranks)
{
	struct layout l;

	l.calls = page_up(sizeof(struct nccl_shared));
	l.published = l.calls + page_up(ranks * NCCL_CALLS * sizeof(struct nccl_call));
	l.values = l.published + page_up(ranks * NCCL_ROUNDS * sizeof(uint64_t));
	l.pairs = l.values + ranks * NCCL_ROUNDS * NCCL_VALUES_MAX;
	l.messages = l.pairs + page_up(ranks * ranks * sizeof(struct nccl_pair));
	l.end = l.messages + ranks * ranks * NCCL_MESSAGES * NCCL_MESSAGE_MAX;
	return l;
}

static char *part(const struct nccl_comm *comm, size_t offset)
{
	return (char *)comm->shared + offset;
}

struct nccl_call *nccl_call_slot(const struct nccl_comm *comm, int rank, uint64_t number)
{
	struct nccl_call *calls = (struct nccl_call *)(void *)part(comm, layout_for((size_t)comm->ranks).calls);

	return &calls[(size_t)rank * NCCL_CALLS + number % NCCL_CALLS];
}

_Atomic uint64_t *nccl_round_published(const struct nccl_comm *comm, int rank, uint64_t round)
{
	_Atomic uint64_t *published = (_Atomic uint64_t *)(void *)part(comm, layout_for((size_t)comm->ranks).published);

	return &published[(size_t)rank * NCCL_ROUNDS + round % NCCL_ROUNDS];
}

char *nccl_round_values(const struct nccl_comm *comm, int rank, uint64_t round)
{
	size_t slot = (size_t)rank * NCCL_ROUNDS + round % NCCL_ROUNDS;

	return part(comm, layout_for((size_t)comm->ranks).values + slot * NCCL_VALUES_MAX);
}

struct nccl_pair *nccl_pair(const struct nccl_comm *comm, int from, int to)
{
	struct nccl_pair *pairs = (struct nccl_pair *)(void *)part(comm, layout_for((size_t)comm->ranks).pairs);

	return &pairs[from * comm->ranks + to];
}

char *nccl_message(const struct nccl_comm *comm, int from, int to, uint64_t number)
{
	size_t slot = (size_t)(from * comm->ranks + to) * NCCL_MESSAGES + number % NCCL_MESSAGES;

	return part(comm, layout_for((size_t)comm->ranks).messages + slot * NCCL_MESSAGE_MAX);
}

/* Also true of a process that its parent has not waited for yet. */
static bool is_dead(int pid);

/* Held for a few memory accesses. Not a mutex of libpthread's: the robust ones need a newer C library than cuwhy does, and a rank
 * that is killed while it holds the lock must not stop the others. */
void nccl_lock(struct nccl_shared *s)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	int32_t owner = 0;

	for (unsigned int tries = 1; !atomic_compare_exchange_strong(&s->lock, &owner, getpid()); tries++) {
		if (tries % 1024 == 0 && is_dead(owner) && atomic_compare_exchange_strong(&s->lock, &owner, getpid()))
			return;
		nanosleep(&nap, NULL);
		owner = 0;
	}
}

void nccl_unlock(struct nccl_shared *s)
{
	atomic_store(&s->lock, 0);
}

void nccl_notify(struct nccl_shared *s)
{
	atomic_fetch_add(&s->changes, 1);
	syscall(SYS_futex, &s->changes, FUTEX_WAKE, NCCL_RANKS_MAX * NCCL_ROUNDS, NULL, NULL, 0);
}

/* Threads of streams wait here when the process ends: its exit must not wait for them. */
static _Atomic bool leaving;

static pthread_mutex_t comms_lock = PTHREAD_MUTEX_INITIALIZER;
static struct nccl_comm *comms;

static void leave(int status, void *unused)
{
	(void)unused;
	atomic_store(&leaving, true);
	pthread_mutex_lock(&comms_lock);
	for (struct nccl_comm *c = comms; c && status == 0; c = c->next)
		atomic_store(&c->shared->rank[c->rank].left, 1);
	pthread_mutex_unlock(&comms_lock);
}

static void list_add(struct nccl_comm *comm)
{
	pthread_mutex_lock(&comms_lock);
	comm->next = comms;
	comms = comm;
	pthread_mutex_unlock(&comms_lock);
}

static void list_remove(struct nccl_comm *comm)
{
	pthread_mutex_lock(&comms_lock);
	for (struct nccl_comm **at = &comms; *at; at = &(*at)->next)
		if (*at == comm) {
			*at = comm->next;
			break;
		}
	pthread_mutex_unlock(&comms_lock);
}

static void at_exit_once(void)
{
	static _Atomic bool done;

	if (!atomic_exchange(&done, true))
		on_exit(leave, NULL);
}

static bool is_dead(int pid)
{
	char path[32], text[512], *state;
	int fd;
	ssize_t n;

	if (kill(pid, 0) && errno == ESRCH)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	state = strrchr(text, ')');
	return state && strlen(state) > 2 && (state[2] == 'Z' || state[2] == 'X');
}

static int rank_is_gone(struct nccl_comm *comm, int rank)
{
	return nccl_fail(comm, NCCL_REMOTE_ERROR, "the process of rank %d (%d) has ended while other ranks wait for it",
			 rank, comm->shared->rank[rank].pid);
}

/* A rank whose process is gone never arrives. Real ranks would wait until PyTorch's watchdog ends them; here it is said at once, unless the
 * rank has ended well: then the others may come to the same end, and who is right depends on how many do. */
static int look_for_the_dead(struct nccl_comm *comm)
{
	struct nccl_shared *s = comm->shared;
	int ended = -1;

	for (int i = 0; i < comm->ranks; i++) {
		if (!atomic_load(&s->rank[i].joined) || !is_dead(s->rank[i].pid))
			continue;
		if (!atomic_load(&s->rank[i].left))
			return rank_is_gone(comm, i);
		ended = i;
	}
	return ended < 0 ? 0 : nccl_has_more_calls(comm) ? nccl_check_ended(comm) : rank_is_gone(comm, ended);
}

int nccl_wait(struct nccl_comm *comm, bool (*ready)(struct nccl_comm *comm, const void *what), const void *what)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	struct nccl_shared *s = comm->shared;

	for (unsigned int looks = 0;; looks++) {
		uint32_t seen = atomic_load(&s->changes);
		int code = atomic_load(&s->failed);

		if (ready(comm, what))
			return 0;
		if (code || atomic_load(&comm->aborted) || atomic_load(&leaving))
			return code ? code : NCCL_INVALID_USAGE;
		if (looks % 8 == 7 && (code = look_for_the_dead(comm)) != 0)
			return code;
		syscall(SYS_futex, &s->changes, FUTEX_WAIT, seen, &look, NULL, 0);
	}
}

int nccl_fail(struct nccl_comm *comm, int code, const char *format, ...)
{
	struct nccl_shared *s = comm->shared;
	char text[NCCL_TEXT], line[NCCL_TEXT + 32];
	int32_t fine = 0;
	va_list args;
	int n;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!atomic_compare_exchange_strong(&s->failed, &fine, code))
		return fine;
	snprintf(s->failure, sizeof(s->failure), "%s", text);
	nccl_notify(s);
	n = snprintf(line, sizeof(line), "cuwhy: NCCL: %s\n", text);
	if (n > 0 && write(STDERR_FILENO, line, strnlen(line, sizeof(line))) < 0)
		return code;
	return code;
}

static int random_token(char token[static 32])
{
	unsigned char bytes[15];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return NCCL_SYSTEM_ERROR;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int init_shared(int fd, const char *token)
{
	struct nccl_shared *s;

	if (sim_file_resize(fd, (off_t)page_up(sizeof(*s))))
		return NCCL_SYSTEM_ERROR;
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (s == MAP_FAILED)
		return NCCL_SYSTEM_ERROR;
	memcpy(s->token, token, sizeof(s->token));
	munmap(s, sizeof(*s));
	return 0;
}

/* The file stays open until this process has joined, or ends. */
int nccl_id_make(struct nccl_id *id)
{
	struct place place = {.pid = getpid()};
	int code = random_token(place.token);

	memcpy(place.magic, magic, sizeof(magic));
	place.fd = (int)syscall(SYS_memfd_create, "cuwhy-nccl", 1 /* close on exec */);
	if (code == 0 && place.fd < 0)
		code = NCCL_SYSTEM_ERROR;
	if (code == 0)
		code = init_shared(place.fd, place.token);
	if (code)
		return nccl_error(code, "cannot create shared memory for the ranks: %s", strerror(errno));
	memset(id, 0, sizeof(*id));
	memcpy(id, &place, sizeof(place));
	return 0;
}

static int open_place(const struct place *place, int *fd)
{
	char path[64];

	if (memcmp(place->magic, magic, sizeof(magic)) != 0)
		return nccl_error(NCCL_INVALID_ARGUMENT,
				  "the unique id was not made by ncclGetUniqueId of the simulated GPU");
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->fd);
	*fd = open(path, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return nccl_error(NCCL_SYSTEM_ERROR,
			"cannot reach process %d, which made the unique id: %s (ranks on several machines are not simulated)",
				  place->pid, strerror(errno));
	return 0;
}

static int map_shared(struct nccl_comm *comm, int fd, const char *token)
{
	comm->shared_bytes = layout_for((size_t)comm->ranks).end;
	if (sim_file_resize(fd, (off_t)comm->shared_bytes))
		return nccl_error(NCCL_SYSTEM_ERROR, "cannot enlarge the ranks' shared memory: %s", strerror(errno));
	comm->shared = mmap(NULL, comm->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (comm->shared == MAP_FAILED) {
		comm->shared = NULL;
		return nccl_error(NCCL_SYSTEM_ERROR, "cannot map the ranks' shared memory: %s", strerror(errno));
	}
	if (memcmp(comm->shared->token, token, sizeof(comm->shared->token)) != 0)
		return nccl_error(NCCL_INVALID_ARGUMENT, "the unique id is no longer valid");
	return 0;
}

/* RANK is what torchrun gives each process: the number that people know a rank by. */
static int32_t rank_label(int rank)
{
	const char *text = getenv("RANK");
	char *end;
	long value = text ? strtol(text, &end, 10) : rank;

	return text && (end == text || *end) ? rank : (int32_t)value;
}

static int sit_down(struct nccl_comm *comm)
{
	struct nccl_shared *s = comm->shared;
	struct nccl_rank *me = &s->rank[comm->rank];
	struct sim_uuid uuid = {{0}};
	int32_t ranks = 0;

	if (!atomic_compare_exchange_strong(&s->ranks, &ranks, comm->ranks) && ranks != comm->ranks)
		return nccl_fail(comm, NCCL_INVALID_USAGE, "rank %d joins a communicator of %d ranks as if it had %d",
				 comm->rank, (int)ranks, comm->ranks);
	if (cuDeviceGetUuid(&uuid, comm->device))
		return NCCL_UNHANDLED_CUDA_ERROR;
	nccl_lock(s);
	if (atomic_load(&me->joined)) {
		nccl_unlock(s);
		return nccl_fail(comm, NCCL_INVALID_USAGE, "rank %d joins a communicator twice", comm->rank);
	}
	me->pid = getpid();
	list_add(comm);
	me->label = rank_label(comm->rank);
	memcpy(me->gpu, uuid.bytes, sizeof(me->gpu));
	atomic_store(&me->joined, 1);
	nccl_unlock(s);
	nccl_notify(s);
	return 0;
}

int nccl_join(struct nccl_comm *comm, const struct nccl_id *id)
{
	struct place place;
	int fd = -1, code;

	memcpy(&place, id, sizeof(place));
	at_exit_once();
	code = open_place(&place, &fd);
	comm->id_file = place.pid == getpid() ? place.fd : -1;
	if (code == 0)
		code = map_shared(comm, fd, place.token);
	if (code == 0)
		code = sit_down(comm);
	if (fd >= 0)
		close(fd);
	return code;
}

void nccl_leave(struct nccl_comm *comm)
{
	list_remove(comm);
	if (comm->shared)
		munmap(comm->shared, comm->shared_bytes);
	comm->shared = NULL;
}

static bool all_joined(struct nccl_comm *comm, const void *what)
{
	(void)what;
	for (int i = 0; i < comm->ranks; i++)
		if (!atomic_load(&comm->shared->rank[i].joined))
			return false;
	return true;
}

/* NCCL refuses two ranks on one GPU. */
static int check_gpus(struct nccl_comm *comm)
{
	const struct nccl_rank *rank = comm->shared->rank;

	for (int i = 0; i < comm->ranks; i++)
		for (int k = 0; k < i; k++)
			if (!memcmp(rank[i].gpu, rank[k].gpu, sizeof(rank[i].gpu)))
				return nccl_fail(comm, NCCL_INVALID_USAGE,
						 "duplicate GPU: rank %d and rank %d both use the same device", k, i);
	return 0;
}

/* Threads of one process share the file: one of them closes it. */
static void close_id(struct nccl_comm *comm)
{
	if (comm->id_file >= 0 && !atomic_exchange(&comm->shared->met, 1))
		close(comm->id_file);
	comm->id_file = -1;
}

int nccl_wait_for_all(struct nccl_comm *comm)
{
	int code = nccl_wait(comm, all_joined, NULL);

	if (code == 0)
		close_id(comm);
	return code ? code : check_gpus(comm);
}
