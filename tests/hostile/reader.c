/* SPDX-License-Identifier: Apache-2.0
 * Reads the objects of a program that changes them, again and again, as `cuwhy memory --pid` does; or the same with words of its
 * memory replaced: by other addresses, by lengths, by an object's own address.
 *
 *	reader PID RUNS SEED|- MILLISECONDS < blocks
 *
 * Prints the paths that it found. A run that takes much longer than it may, or a process that needs more than a gigabyte, is an error.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/pool.h"
#include "base/proc.h"
#include "cuwhy/format.h"
#include "find/memory/holders.h"
#include "read/live/pyheap.h"
#include "read/live/pyproc.h"
#include "read/live/target.h"

#define BLOCKS_MAX	4096
#define RSS_MAX_KIB	(1u << 20)
#define SLACK_NS	3000000000u	/* a busy machine, and a reader that is checked at each step */
#define ONE_IN		400u		/* words that are replaced */

struct liar {
	struct remote real;
	uint64_t dice, seen[64];
	uint32_t turn;
	bool lies;
};

static uint64_t roll(struct liar *l)
{
	l->dice ^= l->dice << 13;
	l->dice ^= l->dice >> 7;
	l->dice ^= l->dice << 17;
	return l->dice;
}

static uint64_t lie(struct liar *l, uint64_t at, uint64_t word)
{
	switch (roll(l) % 8) {
	case 0: return l->seen[roll(l) % 64];	/* another object: a cycle, perhaps */
	case 1: return at;			/* itself */
	case 2: return roll(l);
	case 3: return roll(l) % 100000;
	case 4: return UINT64_MAX - roll(l) % 64;
	case 5: return INT64_MAX - roll(l) % 64;
	case 6: return word + 8;
	default: return word ^ 1ull << roll(l) % 64;
	}
}

static bool fetch(void *arg, uint64_t page, void *to)
{
	struct liar *l = arg;
	uint64_t *word = to;

	remote_forget(&l->real);
	if (!remote_read(&l->real, page, to, REMOTE_PAGE))
		return false;
	for (size_t i = 0; l->lies && i < REMOTE_PAGE / 8; i++) {
		if (word[i] > 1ull << 20 && word[i] < 1ull << 47 && word[i] % 8 == 0)
			l->seen[l->turn++ % 64] = word[i];
		if (roll(l) % ONE_IN == 0)
			word[i] = lie(l, page + i * 8, word[i]);
	}
	return true;
}

static size_t read_blocks(struct cw_allocation *to, const struct cw_allocation **list)
{
	size_t n = 0;

	while (n < BLOCKS_MAX && scanf("%" SCNx64 " %" SCNu64, &to[n].addr, &to[n].size) == 2) {
		list[n] = &to[n];
		n++;
	}
	return n;
}

static int fail(const char *what, double number)
{
	fprintf(stderr, "reader: %s: %g\n", what, number);
	return 1;
}

static int run(struct liar *l, struct holders_ask *ask, uint64_t may_ns)
{
	uint64_t start = proc_mono_ns();
	struct holders found = {0};
	struct pool pool = {0};
	struct rusage used;
	struct target t;
	struct remote r;
	struct pyproc p;
	struct pyheap heap;

	ask->for_ns = may_ns;
	ask->until_ns = start + may_ns;
	ask->running = !l->lies;	/* lies are not proven anyway */
	if (target_open(&t, ask->pid) != 0)
		return fail("the process is gone", ask->pid);
	pyproc_open(&p, &t, &l->real);
	remote_init(&r, fetch, l);
	r.pid = ask->pid;
	p.r = l->lies ? &r : &l->real;
	pyheap_open(&heap, &p, ask->until_ns);
	if (!p.found)
		return fail(p.why, 0);
	holders_search(&found, ask, &heap, &pool);
	for (size_t i = 0; i < found.n; i++)
		printf("%s\n", found.list[i].path);
	printf("- %" PRIu64 " objects %" PRIu64 " us stopped %" PRIu64 " changed %u%s\n", found.objects,
	       (proc_mono_ns() - start) / 1000, found.stop_ns / 1000, found.changed, found.whole ? "" : " not whole");
	pyheap_close(&heap);
	remote_release(&r);
	target_close(&t);
	pool_release(&pool);
	getrusage(RUSAGE_SELF, &used);
	if (proc_mono_ns() - start > may_ns + SLACK_NS)
		return fail("seconds", (double)(proc_mono_ns() - start) / 1e9);
	return (uint64_t)used.ru_maxrss > RSS_MAX_KIB ? fail("KiB", (double)used.ru_maxrss) : 0;
}

int main(int argc, char **argv)
{
	static struct cw_allocation block[BLOCKS_MAX];
	static const struct cw_allocation *list[BLOCKS_MAX];
	struct holders_ask ask = {.torch_path = "", .block = list};
	struct liar l = {.dice = 88172645463325252ull};
	struct target t;
	int rc = 0;

	if (argc != 5)
		return fail("PID RUNS SEED|- MILLISECONDS", argc);
	ask.pid = (pid_t)strtol(argv[1], NULL, 10);
	l.lies = argv[3][0] != '-';
	l.dice ^= strtoull(argv[3], NULL, 10) * 0x9e3779b97f4a7c15ull;
	ask.n_blocks = read_blocks(block, list);
	if (target_open(&t, ask.pid) || remote_open(&l.real, ask.pid, t.map[0].start))
		return fail("cannot be read", ask.pid);
	target_close(&t);
	for (int i = 0; i < strtol(argv[2], NULL, 10) && !rc; i++)
		rc = run(&l, &ask, strtoull(argv[4], NULL, 10) * 1000000);
	remote_release(&l.real);
	return rc;
}
