/* SPDX-License-Identifier: Apache-2.0
 * The order of calls: what each rank calls as its Nth, and who differs.
 */
#include "sim/nccl/nccl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define NCCL_TYPE(number, name, bytes, c) [number] = {#name, bytes},
static const struct {
	const char *name;
	size_t bytes;
} types[] = {
#include "sim/nccl/types.def"
};
#undef NCCL_TYPE

size_t nccl_type_bytes(int type)
{
	return type >= 0 && (size_t)type < sizeof(types) / sizeof(types[0]) ? types[type].bytes : 0;
}

/* 4,096 */
static void number_text(char *out, size_t room, uint64_t value)
{
	char digits[32];
	int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);
	size_t at = 0;

	for (int i = 0; i < n && at + 2 < room; i++) {
		if (i && (n - i) % 3 == 0)
			out[at++] = ',';
		out[at++] = digits[i];
	}
	out[at] = '\0';
}

/* all_reduce of 4,096 float32 (max) from rank 2 */
static void call_text(char out[static NCCL_CALL_TEXT], const struct nccl_call *c)
{
	static const char *const ops[OP_COUNT] = {[OP_ALL_REDUCE] = "all_reduce",
						  [OP_BROADCAST] = "broadcast",
						  [OP_REDUCE] = "reduce",
						  [OP_ALL_GATHER] = "all_gather",
						  [OP_REDUCE_SCATTER] = "reduce_scatter",
						  [OP_ALL_TO_ALL] = "all_to_all",
						  [OP_GATHER] = "gather",
						  [OP_SCATTER] = "scatter"};
	static const char *const redops[RED_BUILT_IN] = {
		[RED_PROD] = " (product)", [RED_MAX] = " (max)", [RED_MIN] = " (min)", [RED_AVG] = " (average)"};
	const char *redop = c->redop >= 0 && c->redop < RED_BUILT_IN ? redops[c->redop] : NULL;
	char count[32], root[32] = "";

	number_text(count, sizeof(count), c->count);
	if (c->root >= 0)
		snprintf(root, sizeof(root),
			 c->op == OP_BROADCAST || c->op == OP_SCATTER ? " from rank %d" : " to rank %d", (int)c->root);
	snprintf(out, NCCL_CALL_TEXT, "%s of %s %s%s%s", ops[c->op], count, types[c->type].name, redop ? redop : "",
		 root);
}

static bool same(const struct nccl_call *a, const struct nccl_call *b)
{
	/* two operations of the program's own, such as sums with a factor, may have different numbers */
	bool redop = a->redop == b->redop || (a->redop >= RED_BUILT_IN && b->redop >= RED_BUILT_IN);

	return a->op == b->op && a->type == b->type && a->root == b->root && a->count == b->count && redop;
}

/* The rank whose call most ranks make, the first of them if several are as frequent. */
static int majority(const struct nccl_comm *comm, uint64_t number)
{
	int best = 0, most = 0;

	for (int i = 0; i < comm->ranks; i++) {
		int votes = 0;

		for (int k = 0; k < comm->ranks; k++)
			votes += same(nccl_call_slot(comm, i, number), nccl_call_slot(comm, k, number));
		if (votes > most) {
			most = votes;
			best = i;
		}
	}
	return best;
}

/* The numbers of torchrun, if they tell the ranks apart: threads of one process share one. */
static int label_of(const struct nccl_comm *comm, int rank)
{
	const struct nccl_rank *r = comm->shared->rank;

	for (int i = 0; i < comm->ranks; i++)
		for (int k = 0; k < i; k++)
			if (r[i].label == r[k].label)
				return rank;
	return r[rank].label;
}

/* PyTorch sends objects as bytes, and computes on the GPU how many there are: such a count is unknown here, and no fault of the program. */
static const char *caveat(const struct nccl_call *a, const struct nccl_call *b)
{
	bool bytes = a->type == b->type && nccl_type_bytes(a->type) == 1 && a->op == b->op && a->count != b->count;

	return bytes ? "; a size that the program computed on the GPU is unknown on a simulated one" : "";
}

/* Who is to blame, before the failure is announced. Needs the lock. */
static void set_odd(struct nccl_shared *s, int rank, const struct nccl_call *call, const char *text)
{
	struct timespec now;

	if (atomic_load(&s->failed))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	s->odd.rank = rank + 1;
	s->odd.place = call->place;
	s->odd.mono_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	snprintf(s->odd.call, sizeof(s->odd.call), "%s", text);
}

void nccl_own_up(struct nccl_comm *comm)
{
	struct nccl_shared *s = comm->shared;

	if (atomic_load(&s->failed) && s->odd.rank == comm->rank + 1 && s->failure[0] && !atomic_exchange(&s->odd.told, 1))
		cuwhy_sim_mismatch(s->odd.place, s->odd.mono_ns, s->odd.call, s->failure);
}

static int compare(struct nccl_comm *comm, uint64_t number)
{
	int usual = majority(comm, number), odd = -1, odds = 0;
	char its[NCCL_CALL_TEXT], theirs[NCCL_CALL_TEXT], others[32] = "the others call", more[48] = "";

	for (int i = 0; i < comm->ranks; i++)
		if (!same(nccl_call_slot(comm, i, number), nccl_call_slot(comm, usual, number))) {
			odd = odd < 0 ? i : odd;
			odds++;
		}
	if (odd < 0)
		return 0;
	call_text(its, nccl_call_slot(comm, odd, number));
	call_text(theirs, nccl_call_slot(comm, usual, number));
	set_odd(comm->shared, odd, nccl_call_slot(comm, odd, number), its);
	if (comm->ranks == 2 || odds > 1)
		snprintf(others, sizeof(others), "rank %d calls", label_of(comm, usual));
	if (odds > 1)
		snprintf(more, sizeof(more), ", and %d more differ from it", odds - 1);
	return nccl_fail(comm, NCCL_INVALID_USAGE,
			 "rank %d calls %s where %s %s (collective %llu of the communicator%s)%s", label_of(comm, odd),
			 its, others, theirs, (unsigned long long)number + 1, more,
			 caveat(nccl_call_slot(comm, odd, number), nccl_call_slot(comm, usual, number)));
}

static uint64_t slowest(const struct nccl_comm *comm)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < comm->ranks; i++) {
		uint64_t calls = atomic_load(&comm->shared->rank[i].calls);

		least = calls < least ? calls : least;
	}
	return least;
}

static bool has_room(struct nccl_comm *comm, const void *what)
{
	(void)what;
	return atomic_load(&comm->shared->rank[comm->rank].calls) < slowest(comm) + NCCL_CALLS;
}

static int failed_before(struct nccl_comm *comm, int code)
{
	nccl_own_up(comm);
	return nccl_error(code, "%s", comm->shared->failure);
}

int nccl_enter(struct nccl_comm *comm, const struct nccl_call *call)
{
	struct nccl_shared *s = comm->shared;
	int code = atomic_load(&s->failed);
	uint32_t place;
	uint64_t mine;

	if (code)
		return failed_before(comm, code);
	/* a rank this far ahead waits, as it would for room in the GPU's queue */
	code = nccl_wait(comm, has_room, NULL);
	if (code)
		return code;
	place = cuwhy_sim_place();
	nccl_lock(s);
	mine = atomic_load(&s->rank[comm->rank].calls);
	*nccl_call_slot(comm, comm->rank, mine) = *call;
	nccl_call_slot(comm, comm->rank, mine)->place = place;
	atomic_store(&s->rank[comm->rank].calls, mine + 1);
	while (code == 0 && s->checked < slowest(comm))
		code = compare(comm, s->checked++);
	nccl_unlock(s);
	nccl_notify(s);
	return code ? failed_before(comm, code) : 0;
}

int nccl_enter_message(struct nccl_comm *comm, int from, int to, bool sends, const struct nccl_call *call)
{
	struct nccl_shared *s = comm->shared;
	struct nccl_pair *p = nccl_pair(comm, from, to);
	struct nccl_call sent = *call, wanted = *call;
	struct nccl_entry *mine, *other;
	int code = atomic_load(&s->failed);
	uint32_t place = cuwhy_sim_place();
	char text[NCCL_CALL_TEXT];
	uint64_t number;

	if (code)
		return failed_before(comm, code);
	nccl_lock(s);
	number = sends ? p->sends++ : p->receives++;
	mine = &(sends ? p->sent : p->wanted)[number % NCCL_MESSAGES];
	other = &(sends ? p->wanted : p->sent)[number % NCCL_MESSAGES];
	*mine = (struct nccl_entry){.number = number + 1, .call = *call};
	mine->call.place = place;
	/* the other side may not have come this far, or be so far ahead that its entry is overwritten */
	if (other->number == number + 1)
		*(sends ? &wanted : &sent) = other->call;
	(sends ? &sent : &wanted)->place = place;
	nccl_unlock(s);
	if (sent.count * nccl_type_bytes(sent.type) == wanted.count * nccl_type_bytes(wanted.type))
		return 0;
	/* either of them may be wrong: the one that receives is shown, and the sentence names both */
	snprintf(text, sizeof(text), "recv of %llu %s from rank %d", (unsigned long long)wanted.count,
		 types[wanted.type].name, label_of(comm, from));
	set_odd(s, to, &wanted, text);
	code = nccl_fail(comm, NCCL_INVALID_USAGE,
			 "rank %d sends %llu %s to rank %d, which receives %llu %s (message %llu between them)",
			 label_of(comm, from), (unsigned long long)sent.count, types[sent.type].name, label_of(comm, to),
			 (unsigned long long)wanted.count, types[wanted.type].name, (unsigned long long)number + 1);
	return failed_before(comm, code);
}
