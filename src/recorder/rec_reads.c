/* SPDX-License-Identifier: Apache-2.0
 * On the simulated GPU: which lines read values that only a real GPU can compute, and which call another collective than the other ranks.
 *
 * The simulated driver calls us on the thread that reads, inside the program's own call. A program that prints its loss in every
 * step has one entry: a stack and a count.
 */
#include <errno.h>
#include <string.h>

#include "rec_python.h"

static struct spin reads_lock;
LOCK_LISTED(reads, reads_lock);

static struct cw_read *read_find(uint32_t stack, uint32_t why)
{
	uint32_t n = shared_get(&rec.h->n_reads);

	for (uint32_t i = 0; i < n; i++)
		if (rec.h->read[i].stack == stack && rec.h->read[i].why == why)
			return &rec.h->read[i];
	return NULL;
}

/* Called with the lock held; another thread may have been faster. */
static struct cw_read *read_add(uint32_t stack, uint32_t why)
{
	struct cw_read *r = read_find(stack, why);
	uint32_t n = rec.h->n_reads;

	if (r || n == CW_READS)
		return r;
	r = &rec.h->read[n];
	r->stack = stack;
	r->why = why;
	shared_set(&rec.h->n_reads, n + 1);
	return r;
}

static struct cw_read *read_entry(uint32_t stack, uint32_t why)
{
	struct cw_read *r = read_find(stack, why);

	if (r || shared_get(&rec.h->n_reads) == CW_READS || !spin_try(&reads_lock))
		return r;
	r = read_add(stack, why);
	spin_done(&reads_lock);
	return r;
}

/* A backward that runs on autograd's own threads has no Python code: there, the line of the forward op is the one to know. */
static uint32_t reading_stack(struct rec_thread *t)
{
	uint32_t stack = stack_here(), forward = 0, name;

	if (!stack && t->node_depth && torch_backward(t, &forward, &name))
		stack = forward;
	return stack;
}

enum answer { ANSWER_USUAL, ANSWER_OTHER, ANSWER_FALSE, ANSWER_TRUE };	/* the simulated driver's enum sim_answer */

/* A check that raises (`if loss.isnan(): raise`, `assert mask.all()`) is answered so that it does not: what programs check
 * is what they expect to hold. */
static enum answer passing(size_t bytes, int why)
{
	enum branch b = bytes == 1 && why == CW_READ_KERNELS ? branch_here() : BRANCH_ANY;

	return b == BRANCH_ANY ? ANSWER_USUAL : b == BRANCH_TRUE_RAISES ? ANSWER_FALSE : ANSWER_TRUE;
}

/* `while not done.item()` would never end if every answer were the same. */
static bool tired(const struct cw_read *r, size_t bytes)
{
	return bytes == 1 && r->why == CW_READ_KERNELS && shared_get(&r->count) >= CW_READ_PATIENCE;
}

/* How a truth value is to be answered. */
static int unknown_read(uint64_t from, size_t bytes, int why)
{
	int saved = errno;
	struct cw_read *r, *turned = NULL;
	enum answer answer;
	uint32_t stack;

	(void)from;
	if (!rec_self || rec_nesting != 1)
		return ANSWER_USUAL;	/* not one of the program's own calls */
	stack = reading_stack(rec_self);
	answer = stack ? passing(bytes, why) : ANSWER_USUAL;
	r = read_entry(stack, (uint32_t)why);
	if (r && answer == ANSWER_USUAL && tired(r, bytes))
		turned = read_entry(stack, CW_READ_TURNED);
	if (turned)
		shared_add(&turned->count, 1);
	else if (r)
		shared_add(&r->count, 1);
	else
		shared_add(&rec.h->lost_reads, 1);
	errno = saved;
	return turned ? ANSWER_OTHER : answer;
}

/* Also asked by NCCL's stand-in, whose calls are not wrapped. */
static uint32_t place_here(void)
{
	int saved = errno;
	uint32_t place = 0;

	if (rec_self && rec_nesting == 1) {
		place = stack_here();
	} else if (rec_enter()) {
		place = stack_here();
		rec_leave();
	}
	errno = saved;
	return place;
}

/* This rank called something else than the others, or may have, perhaps some calls ago, and learns of it now. */
static void mismatch(uint32_t place, uint64_t mono_ns, const char *call, const char *sentence, int blame)
{
	struct cw_failure f;
	int saved = errno;

	if (rec_enter()) {
		fail_init(&f, CW_SRC_RANKS, 0);
		f.stack = place;
		f.forward_stack = f.node_name = 0;
		f.mono_ns = mono_ns;
		f.n_args = 1;
		f.arg[0] = (uint64_t)blame;
		text_copy(f.what, sizeof(f.what), call, strlen(call));
		text_copy(f.text, sizeof(f.text), sentence, strlen(sentence));
		fail_note(&f);
		rec_leave();
	}
	errno = saved;
}

_Atomic(sim_given_anew) reads_given_anew;

void reads_start(void)
{
	void (*on_unknown_read)(int (*)(uint64_t, size_t, int)) = NULL;
	void (*on_place)(uint32_t(*)(void)) = NULL;
	void (*on_mismatch)(void (*)(uint32_t, uint64_t, const char *, const char *, int)) = NULL;
	sim_given_anew given_anew = NULL;
	struct elf_object o;

	if (!rec.h->sim || !elf_find_object("libcuda.so", &o))
		return;
	*(void **)&on_unknown_read = elf_symbol(&o, "cuwhy_sim_on_unknown_read");
	*(void **)&given_anew = elf_symbol(&o, "cuwhy_sim_given_anew");
	*(void **)&on_place = elf_symbol(&o, "cuwhy_sim_on_place");
	if (on_unknown_read)
		on_unknown_read(unknown_read);
	*(void **)&on_mismatch = elf_symbol(&o, "cuwhy_sim_on_mismatch");
	if (on_place)
		on_place(place_here);
	if (on_mismatch)
		on_mismatch(mismatch);
	atomic_store(&reads_given_anew, given_anew);
}
