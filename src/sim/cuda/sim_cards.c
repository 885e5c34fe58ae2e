/* SPDX-License-Identifier: Apache-2.0
 * The memory of the cards, as all processes of a run see it. Also part of the simulated NVML. */
#include "sim/cuda/sim_cards.h"
#include "sim/cuda/sim_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS 100000000u		/* whoever holds the lock for longer is dead or stopped */
#define ZOMBIES_NS  10000000u		/* how often to look for them when nothing depends on it */

static struct sim_cards alone;		/* for a process that shares with nobody */
static struct sim_cards *cards = &alone;
static size_t own_row;
static uint32_t own_pid;		/* getpid() would be a system call for each allocation */

#define SKIP6 " %*s %*s %*s %*s %*s %*s"

/* False: there is no such process. A zombie has given everything back. `start` stays 0 where /proc does not say. */
static bool stat_read(uint32_t pid, uint64_t *start)
{
	unsigned long long ticks = 0;
	char path[32], text[1024], state = 'R', *name_end;
	ssize_t n = 0;
	int fd;

	*start = 0;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n <= 0)
		return kill((pid_t)pid, 0) == 0 || errno != ESRCH;
	text[n] = '\0';
	name_end = strrchr(text, ')');		/* a name may contain anything */
	if (name_end && sscanf(name_end + 1, " %c" SKIP6 SKIP6 SKIP6 " %llu", &state, &ticks) == 2)
		*start = ticks;
	return state != 'Z' && state != 'X';
}

static uint64_t pid_namespace(void)
{
	static _Atomic uint64_t known;
	struct stat s;

	if (!atomic_load(&known) && stat("/proc/self/ns/pid", &s) == 0)
		atomic_store(&known, (uint64_t)s.st_ino);
	return atomic_load(&known);
}

/* A pid of another namespace says nothing here: such a process counts until it leaves. */
bool sim_cards_alive(const struct sim_cards *c, size_t row)
{
	uint32_t pid = atomic_load(&c->process[row].pid);
	uint64_t start, then = atomic_load(&c->process[row].start);

	if (!pid)
		return false;
	if (atomic_load(&c->process[row].pids) != pid_namespace())
		return true;
	return stat_read(pid, &start) && (!start || !then || start == then);
}

/* Needs the lock. */
static void row_clear(size_t row)
{
	for (int card = 0; card < CARDS_ALL; card++)
		atomic_store(&cards->used[card][row], 0);
	atomic_store(&cards->process[row].pid, 0);
}

/* Without a look at /proc: zombies, and others with the same pid, pass as alive. */
static bool exists(size_t row)
{
	uint32_t pid = atomic_load(&cards->process[row].pid);

	return atomic_load(&cards->process[row].pids) != pid_namespace() || kill((pid_t)pid, 0) == 0 || errno != ESRCH;
}

/* What the dead held is free. Needs the lock. */
static void bury(bool zombies)
{
	for (size_t row = 0; row < atomic_load(&cards->rows) && row < CARD_ROWS; row++)
		if (row != own_row && atomic_load(&cards->process[row].pid) &&
		    !(zombies ? sim_cards_alive(cards, row) : exists(row)))
			row_clear(row);
}

static uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* It orders those who take the last of the memory. A process may be killed while it has the lock: the next one takes it over,
 * and finds the rows as true as before. */
static void cards_lock(void)
{
	uint32_t free = 0;
	uint64_t until = 0;

	while (!atomic_compare_exchange_weak(&cards->lock, &free, own_pid)) {
		if (!until)
			until = clock_ns() + PATIENCE_NS;
		if (clock_ns() < until)
			free = 0;	/* else `free` is whoever has it */
		sched_yield();
	}
}

static void cards_unlock(void)
{
	uint32_t me = own_pid;

	atomic_compare_exchange_strong(&cards->lock, &me, 0);
}

size_t sim_cards_sum(const struct sim_cards *c, int card)
{
	size_t used = 0, rows = atomic_load_explicit(&c->rows, memory_order_relaxed);

	for (size_t row = 0; row < rows && row < CARD_ROWS; row++)
		used += atomic_load_explicit(&c->used[card][row], memory_order_relaxed);
	return used;
}

static bool fits(int card, size_t bytes, size_t limit)
{
	size_t used = sim_cards_sum(cards, card);

	return used <= limit && bytes <= limit - used;
}

bool sim_cards_take(int card, size_t bytes, size_t limit)
{
	bool ok;

	cards_lock();
	ok = fits(card, bytes, limit);
	if (!ok) {
		bury(true);
		ok = fits(card, bytes, limit);
	}
	if (ok) {
		size_t used;

		atomic_fetch_add(&cards->used[card][own_row], bytes);
		used = sim_cards_sum(cards, card);
		if (used > atomic_load(&cards->peak[card]))
			atomic_store(&cards->peak[card], used);
	}
	cards_unlock();
	return ok;
}

void sim_cards_give(int card, size_t bytes)
{
	atomic_fetch_sub(&cards->used[card][own_row], bytes);
}

size_t sim_cards_used(int card)
{
	static uint64_t looked;
	bool zombies;

	if (atomic_load(&cards->rows) > 1) {
		zombies = clock_ns() - looked > ZOMBIES_NS;
		if (zombies)
			looked = clock_ns();
		cards_lock();
		bury(zombies);
		cards_unlock();
	}
	return sim_cards_sum(cards, card);
}

size_t sim_cards_own(int card)
{
	return (size_t)atomic_load(&cards->used[card][own_row]);
}

size_t sim_cards_peak(int card)
{
	return (size_t)atomic_load(&cards->peak[card]);
}

/* Its folder may be gone, and another user may have made it anew: such a file is not ours. All of its pages must exist, or a full
 * disk would end the program at the first access. */
static bool file_is_ours(int fd, bool make)
{
	struct stat s;

	if (fstat(fd, &s) || !S_ISREG(s.st_mode) || s.st_uid != geteuid() || s.st_mode & 077)
		return false;
	if (s.st_size == 0 && make)
		return sim_file_may_have(sizeof(struct sim_cards)) &&
		       posix_fallocate(fd, 0, sizeof(struct sim_cards)) == 0;
	return s.st_size == sizeof(struct sim_cards);
}

static struct sim_cards *file_map(bool make)
{
	const char *path = getenv("CUWHY_SIM_CARDS");
	void *map = MAP_FAILED;
	int fd = -1;

	if (path && path[0] == '/')
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (make ? O_CREAT : 0), 0600);
	if (fd < 0)
		return NULL;
	if (file_is_ours(fd, make))
		map = mmap(NULL, sizeof(struct sim_cards), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

struct sim_cards *sim_cards_map(void)
{
	struct sim_cards *c = file_map(false);

	if (c && !atomic_load(&c->spec)) {
		munmap(c, sizeof(*c));
		c = NULL;
	}
	return c;
}

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 1469598103934665603ull;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
	return hash | 1;
}

/* A process that replaced its program by exec still has the row of the old one. Needs the lock. */
static bool row_claim(void)
{
	size_t row, found = CARD_ROWS;
	uint64_t start;

	own_row = CARD_ROWS;
	bury(true);
	for (row = CARD_ROWS; row--;) {
		uint32_t pid = atomic_load(&cards->process[row].pid);

		if (pid == own_pid && atomic_load(&cards->process[row].pids) == pid_namespace())
			row_clear(row);
		if (!atomic_load(&cards->process[row].pid))
			found = row;
	}
	if (found == CARD_ROWS)
		return false;
	stat_read(own_pid, &start);
	atomic_store(&cards->process[found].start, start);
	atomic_store(&cards->process[found].pids, pid_namespace());
	atomic_store(&cards->process[found].pid, own_pid);
	own_row = found;
	if (found >= atomic_load(&cards->rows))
		atomic_store(&cards->rows, (uint32_t)found + 1);
	return true;
}

static bool join(const char *spec)
{
	uint64_t before = 0;
	bool ok;

	if (!atomic_compare_exchange_strong(&cards->spec, &before, hash_of(spec)) && before != hash_of(spec))
		return false;		/* it has other GPUs */
	cards_lock();
	ok = row_claim();
	cards_unlock();
	return ok;
}

void sim_cards_join(const char *spec, int n, size_t total, size_t taken)
{
	struct sim_cards *shared = file_map(true);

	own_pid = (uint32_t)getpid();
	if (shared) {
		cards = shared;
		madvise(shared, sizeof(*shared), MADV_DONTFORK);
		if (!join(spec)) {
			munmap(shared, sizeof(*shared));
			cards = &alone;
		}
	}
	if (cards == &alone)
		join(spec);
	atomic_store(&cards->total, total);
	atomic_store(&cards->taken, taken);
	atomic_store(&cards->cards, (uint32_t)n);
}
