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

/* Who is to blame, before the failure is announced: one rank, or one of each side. Needs the lock. */
static void set_blamed(struct nccl_shared *s, int side, int rank, uint32_t place, const char *text)
{
	struct nccl_blamed *b = &s->blamed[side];
	struct timespec now;

	if (atomic_load(&s->failed))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	s->blamed_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	b->rank = rank + 1;
	b->place = place;
	snprintf(b->call, sizeof(b->call), "%s", text);
}

static void set_blame(struct nccl_shared *s, enum sim_blame blame)
{
	if (!atomic_load(&s->failed))
		s->blame = blame;
}

void nccl_own_up(struct nccl_comm *comm)
{
	struct nccl_shared *s = comm->shared;

	if (!atomic_load(&s->failed) || !s->failure[0])
		return;
	for (int i = 0; i < NCCL_SIDES; i++)
		if (s->blamed[i].rank == comm->rank + 1 && !atomic_exchange(&s->blamed[i].told, 1))
			cuwhy_sim_mismatch(s->blamed[i].place, s->blamed_ns, s->blamed[i].call, s->failure, s->blame);
}

/* Of a rank that has come to this call, and not gone on so far that it is overwritten. */
static const char *blame_for(struct nccl_comm *comm, int side, int rank, uint64_t number,
			     char text[static NCCL_CALL_TEXT])
{
	const struct nccl_call *call = nccl_call_slot(comm, rank, number);

	call_text(text, call);
	set_blamed(comm->shared, side, rank, call->place, text);
	return text;
}

static const char not_known[] = "; which one is wrong is not known";

static int compare(struct nccl_comm *comm, uint64_t number)
{
	int usual = majority(comm, number), odd = -1, odds = 0;
	char its[NCCL_CALL_TEXT], theirs[NCCL_CALL_TEXT], others[32] = "the others call", more[48] = "";
	bool either;

	for (int i = 0; i < comm->ranks; i++)
		if (!same(nccl_call_slot(comm, i, number), nccl_call_slot(comm, usual, number))) {
			odd = odd < 0 ? i : odd;
			odds++;
		}
	if (odd < 0)
		return 0;
	either = odds * 2 >= comm->ranks;
	set_blame(comm->shared, either ? SIM_BLAME_EITHER : SIM_BLAME_ODD);
	blame_for(comm, 0, odd, number, its);
	if (either)
		blame_for(comm, 1, usual, number, theirs);
	call_text(theirs, nccl_call_slot(comm, usual, number));
	if (odds > 1 || either)
		snprintf(others, sizeof(others), "rank %d calls", label_of(comm, usual));
	if (odds > 1)
		snprintf(more, sizeof(more), ", and %d more differ from it", odds - 1);
	return nccl_fail(comm, NCCL_INVALID_USAGE,
			 "rank %d calls %s where %s %s (collective %llu of the communicator%s)%s%s", label_of(comm, odd),
			 its, others, theirs, (unsigned long long)number + 1, more, either ? not_known : "",
			 caveat(nccl_call_slot(comm, odd, number), nccl_call_slot(comm, usual, number)));
}

/* Of the ranks that have made more than `number` calls, the first that has not ended; -1: none. How many there are, ended or not. */
static int first_beyond(const struct nccl_comm *comm, uint64_t number, int *count)
{
	int first = -1;

	*count = 0;
	for (int i = 0; i < comm->ranks; i++)
		if (atomic_load(&comm->shared->rank[i].calls) > number) {
			*count += 1;
			if (first < 0 && !atomic_load(&comm->shared->rank[i].left))
				first = i;
		}
	return first;
}

/* Of those that have ended well: the fewest calls, and how many ranks made no more. */
static int ended_after(const struct nccl_comm *comm, uint64_t *number, int *count)
{
	int first = -1;

	*number = UINT64_MAX;
	*count = 0;
	for (int i = 0; i < comm->ranks; i++) {
		uint64_t calls = atomic_load(&comm->shared->rank[i].calls);

		if (!atomic_load(&comm->shared->rank[i].left) || calls > *number)
			continue;
		if (calls < *number) {
			first = i;
			*count = 0;
		}
		*number = calls;
		*count += 1;
	}
	return first;
}

bool nccl_has_more_calls(const struct nccl_comm *comm)
{
	uint64_t number;
	int n;

	return ended_after(comm, &number, &n) >= 0 && first_beyond(comm, number, &n) >= 0;
}

int nccl_check_ended(struct nccl_comm *comm)
{
	struct nccl_shared *s = comm->shared;
	int ended, beyond, n_ended, n_beyond, code = 0;
	char call[NCCL_CALL_TEXT];
	uint64_t number;

	nccl_lock(s);
	ended = ended_after(comm, &number, &n_ended);
	beyond = ended < 0 ? -1 : first_beyond(comm, number, &n_beyond);
	if (beyond >= 0 && n_beyond * 2 > comm->ranks) {
		set_blame(s, SIM_BLAME_WAITS);
		blame_for(comm, 0, beyond, number, call);
		code = nccl_fail(comm, NCCL_REMOTE_ERROR,
				 "rank %d ended without %s, which the others call as collective %llu of the communicator",
				 label_of(comm, ended), call, (unsigned long long)number + 1);
	} else if (beyond >= 0 && n_ended * 2 > comm->ranks) {
		set_blame(s, SIM_BLAME_ODD);
		blame_for(comm, 0, beyond, number, call);
		code = nccl_fail(comm, NCCL_REMOTE_ERROR,
				 "rank %d calls %s as collective %llu of the communicator, and the others ended without it",
				 label_of(comm, beyond), call, (unsigned long long)number + 1);
	} else if (beyond >= 0 && n_ended + n_beyond == comm->ranks) {
		set_blame(s, SIM_BLAME_EITHER);
		blame_for(comm, 0, beyond, number, call);
		code = nccl_fail(comm, NCCL_REMOTE_ERROR,
			"rank %d calls %s as collective %llu of the communicator, and rank %d ended without it%s",
			label_of(comm, beyond), call, (unsigned long long)number + 1, label_of(comm, ended), not_known);
	}
	nccl_unlock(s);
	nccl_own_up(comm);
	return code;
}

static bool all_came(struct nccl_comm *comm, const void *what)
{
	const uint64_t *mine = what;

	for (int i = 0; i < comm->ranks; i++)
		if (atomic_load(&comm->shared->rank[i].calls) < *mine)
			return false;
	return true;
}

int nccl_wait_for_calls(struct nccl_comm *comm)
{
	uint64_t mine = atomic_load(&comm->shared->rank[comm->rank].calls);
	int code = nccl_wait(comm, all_came, &mine);

	return code && comm->shared->failure[0] ? nccl_error(code, "%s", comm->shared->failure) : code;
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
	char gives[NCCL_CALL_TEXT], gets[NCCL_CALL_TEXT];
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
	snprintf(gives, sizeof(gives), "send of %llu %s to rank %d", (unsigned long long)sent.count,
		 types[sent.type].name, label_of(comm, to));
	snprintf(gets, sizeof(gets), "recv of %llu %s from rank %d", (unsigned long long)wanted.count,
		 types[wanted.type].name, label_of(comm, from));
	nccl_lock(s);
	set_blame(s, SIM_BLAME_EITHER);
	set_blamed(s, 0, to, wanted.place, gets);
	set_blamed(s, 1, from, sent.place, gives);
	nccl_unlock(s);
	code = nccl_fail(comm, NCCL_INVALID_USAGE,
			 "rank %d sends %llu %s to rank %d, which receives %llu %s (message %llu between them)%s",
			 label_of(comm, from), (unsigned long long)sent.count, types[sent.type].name,
			 label_of(comm, to), (unsigned long long)wanted.count, types[wanted.type].name,
			 (unsigned long long)number + 1, not_known);
	return failed_before(comm, code);
}
