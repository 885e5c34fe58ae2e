/* SPDX-License-Identifier: Apache-2.0
 * What device memory contains, and how far that can be trusted.
 *
 * Small writes by the host are kept, so that masks, indices and seeds can be read back; large ones are dropped and their pages given
 * back, or the weights of a large model would have to fit into this machine. What counts is the size of the write and not of the
 * allocation, because PyTorch puts many tensors into one. Kernels compute nothing: what they would have written is not known, and a
 * read of it is reported to whoever registered with cuwhy_sim_on_unknown_read. */
#include "sim/cuda/sim_contents.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE	((size_t)4096)
#define BUDGET	((size_t)1 << 30)	/* of contents in one process: eight ranks fit into 16 GB, and small tensors never need it */
#define TIGHT	((size_t)4096)		/* the largest write that is kept when the budget is spent */
#define RANGES_MAX 1000000
#define NUMBER_BYTES ((size_t)8)	/* of a whole number, PyTorch's int64 */
#define TENSOR_ALIGN ((size_t)512)	/* of PyTorch's allocator: what begins there ends no earlier than the next of them */

enum { WORDS_MAX = 4096 };		/* parameters have at most 32 KiB */

/* What went into a value, as far as that is known. */
struct hint {
	unsigned int truth;		/* a True that was False before (sim_truth.c), if this is the current number */
	bool copied;			/* from the host: if it is as large as a number, it is one */
	bool stale;			/* only kernels wrote it since it was given anew, and the bytes are those of before */
	sim_addr like;			/* the number that a kernel computed it from; 0: none, or several */
};

struct range {
	sim_addr start;
	size_t bytes;
	enum sim_unknown state;
	struct hint hint;
};

/* Once somebody has read a True, the loop has ended: other values that it went into, and memory that only seemed to be given to a
 * kernel, must not end the next one. */
static _Atomic unsigned int truth_now = 1;

static pthread_mutex_t range_lock = PTHREAD_MUTEX_INITIALIZER;
static void *range_tree;		/* by address; they do not overlap */
static _Atomic size_t range_count;

static int range_compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start + x->bytes <= y->start)
		return -1;
	return x->start >= y->start + y->bytes;
}

/* Any range that has a byte of these. */
static struct range *range_find(sim_addr at, size_t bytes)
{
	struct range key = {.start = at, .bytes = bytes};
	struct range **found = tfind(&key, &range_tree, range_compare);

	return found ? *found : NULL;
}

static void range_add(sim_addr start, size_t bytes, enum sim_unknown state, struct hint hint)
{
	struct range *r = bytes && atomic_load(&range_count) < RANGES_MAX ? malloc(sizeof(*r)) : NULL;

	if (!r)
		return;			/* not known, then */
	*r = (struct range){start, bytes, state, hint};
	sim_keep(r);
	if (tsearch(r, &range_tree, range_compare))
		atomic_fetch_add(&range_count, 1);
	else
		free(r);
}

/* Nothing is known about these bytes; what a range has on either side of them stays. */
static void range_cut(sim_addr at, size_t bytes)
{
	struct range *r;

	while ((r = range_find(at, bytes))) {
		struct range old = *r;
		sim_addr end = at + bytes, old_end = old.start + old.bytes;

		tdelete(r, &range_tree, range_compare);
		free(r);
		atomic_fetch_sub(&range_count, 1);
		if (old.start < at)
			range_add(old.start, at - old.start, old.state, old.hint);
		if (old_end > end)
			range_add(end, old_end - end, old.state,
				  (struct hint){.truth = old.hint.truth, .copied = old.hint.copied});
	}
}

static bool hints(const struct hint *h)
{
	return h->truth == atomic_load(&truth_now) || h->like;
}

static void range_set(sim_addr at, size_t bytes, enum sim_unknown state, struct hint hint)
{
	pthread_mutex_lock(&range_lock);
	range_cut(at, bytes);
	if (state != SIM_NEVER_WRITTEN || hints(&hint))
		range_add(at, bytes, state, hint);
	pthread_mutex_unlock(&range_lock);
}

/* The worst of the range; bytes that no range has were never written. */
static enum sim_unknown range_state(sim_addr at, size_t bytes)
{
	enum sim_unknown worst = SIM_KNOWN;
	sim_addr end = at + bytes;

	pthread_mutex_lock(&range_lock);
	while (at < end && worst != SIM_NEVER_WRITTEN) {
		struct range *r = range_find(at, 1);

		if (!r)
			worst = SIM_NEVER_WRITTEN;
		else if (r->state > worst)
			worst = r->state;
		if (r)
			at = r->start + r->bytes;
	}
	pthread_mutex_unlock(&range_lock);
	return worst;
}

/* The bytes are as the host, or a kernel that is computed, wrote them. */
static bool is_there(enum sim_unknown state)
{
	return state == SIM_KNOWN || state == SIM_MAY_BE_WRITTEN;
}

/* Needs the lock. */
static bool is_number(sim_addr at)
{
	const struct range *r = range_find(at, 1);

	return r && r->start == at && r->bytes == NUMBER_BYTES && r->hint.copied && is_there(r->state);
}

/* About what begins here. Numbers that have been overwritten since are left out. */
static struct hint range_hint(sim_addr at)
{
	struct hint hint = {0};
	const struct range *r;

	pthread_mutex_lock(&range_lock);
	r = range_find(at, 1);
	if (r) {
		hint.truth = r->hint.truth;
		hint.copied = r->hint.copied;
		if (r->start == at && is_number(r->hint.like))
			hint.like = r->hint.like;
	}
	pthread_mutex_unlock(&range_lock);
	return hint;
}

/* The first range that has a byte of these. Needs the lock. */
static struct range *range_first(sim_addr at, sim_addr end)
{
	struct range *first = NULL, *r;

	while (at < end && (r = range_find(at, end - at))) {
		first = r;
		end = r->start;
	}
	return first;
}

/* Piece by piece: what is known of one part of a tensor stays known, whatever the rest is. */
static void range_copy(sim_addr to, sim_addr from, size_t bytes, bool dropped)
{
	sim_addr at = from, end = from + bytes;
	const struct range *r;

	pthread_mutex_lock(&range_lock);
	range_cut(to, bytes);
	while ((r = range_first(at, end))) {
		struct range piece = *r;
		sim_addr start = piece.start > at ? piece.start : at, stop = piece.start + piece.bytes;

		at = stop < end ? stop : end;
		if (start != piece.start || !is_number(piece.hint.like))
			piece.hint.like = 0;
		if (dropped && piece.state == SIM_KNOWN)
			piece.state = SIM_NOT_KEPT;
		range_add(to + (start - from), at - start, piece.state, piece.hint);
	}
	pthread_mutex_unlock(&range_lock);
}

/* Has it bytes of before it was given anew, and none that are good? What the host wrote next to them is, and is read. */
static bool range_outdated(sim_addr at, size_t bytes)
{
	sim_addr end = at + bytes;
	bool outdated = false, good = false;
	const struct range *r;

	pthread_mutex_lock(&range_lock);
	while (!good && (r = range_first(at, end))) {
		outdated |= r->state == SIM_OUTDATED || r->hint.stale;
		good = is_there(r->state);
		at = r->start + r->bytes;
	}
	pthread_mutex_unlock(&range_lock);
	return outdated && !good;
}

static bool on_device(sim_addr at)
{
	int kind = sim_mem_kind_of(at);

	return kind == SIM_MEM_DEVICE || kind == SIM_MEM_VMM;
}

static _Thread_local struct staging {
	bool on;
	enum sim_unknown state;		/* of what was copied to the host */
} staging;

void sim_contents_copied(sim_addr to, sim_addr from, size_t bytes, bool dropped)
{
	enum sim_unknown state = staging.on ? staging.state : SIM_KNOWN;

	if (!on_device(to))
		return;
	if (on_device(from))
		range_copy(to, from, bytes, dropped);
	else
		range_set(to, bytes, dropped && state == SIM_KNOWN ? SIM_NOT_KEPT : state, (struct hint){.copied = true});
}

void sim_contents_filled(sim_addr to, size_t bytes, bool dropped, bool truth)
{
	if (on_device(to))
		range_set(to, bytes, dropped ? SIM_NOT_KEPT : SIM_KNOWN,
			  (struct hint){.truth = truth ? atomic_load(&truth_now) : 0});
}

void sim_contents_freed(sim_addr at, size_t bytes)
{
	if (atomic_load(&range_count))
		range_set(at, bytes, SIM_NEVER_WRITTEN, (struct hint){0});
}

/* A kernel got the address of something in this range: it may write to all of it. Which parameters it only reads is not known. What
 * was written in pieces is several ranges: those that do not begin where another tensor could are part of it. */
static void range_doubt(sim_addr at)
{
	struct range *r = range_find(at, 1);

	while (r) {
		if (r->state == SIM_KNOWN)
			r->state = SIM_MAY_BE_WRITTEN;
		at = r->start + r->bytes;
		r = at % TENSOR_ALIGN ? range_find(at, 1) : NULL;
	}
}

/* The addresses among a kernel's parameters, wherever they are. */
struct words {
	size_t count;
	sim_addr at[WORDS_MAX];
};

static void words_add(struct words *w, const unsigned char *bytes, size_t size)
{
	for (size_t at = 0; at + sizeof(sim_addr) <= size && w->count < WORDS_MAX; at += sizeof(sim_addr)) {
		sim_addr word;

		memcpy(&word, bytes + at, sizeof(word));
		if (word >> 32 && word >> 48 == 0)	/* no other addresses are given to programs */
			w->at[w->count++] = word;
	}
}

static void words_add_extra(struct words *w, void **extra)
{
	const void *buffer = NULL;
	size_t size = 0;

	for (; (uintptr_t)extra[0]; extra += 2) {
		if ((uintptr_t)extra[0] == 1)
			buffer = extra[1];
		else
			size = *(size_t *)extra[1];
	}
	if (buffer)
		words_add(w, buffer, size);
}

/* Of all that the kernel may read. What is computed from two numbers is like neither. Gaps between parameters may contain addresses of
 * earlier ones, so whatever else is known there counts for nothing. Needs the lock. */
static struct hint words_hint(const struct words *w)
{
	struct hint hint = {0};
	bool several = false;

	for (size_t i = 0; i < w->count; i++) {
		const struct range *r = range_find(w->at[i], 1);
		sim_addr number = 0;

		if (!r || r->state == SIM_OUTDATED)
			continue;
		if (r->hint.truth == atomic_load(&truth_now))
			hint.truth = r->hint.truth;
		if (is_number(w->at[i]))
			number = w->at[i];
		else if (r->start == w->at[i])
			number = r->hint.like;
		several |= number && hint.like && number != hint.like;
		hint.like = number ? number : hint.like;
	}
	if (several)
		hint.like = 0;
	return hint;
}

/* What a kernel makes of a True or of a number is unknown, but that it went into the result is not: it is passed on to the memory
 * that the kernel was given and that only kernels wrote. */
static void hint_pass_on(const struct words *w, const struct hint *hint)
{
	for (size_t i = 0; i < w->count; i++) {
		struct range *r;

		if (w->at[i] % TENSOR_ALIGN || !on_device(w->at[i]))
			continue;
		pthread_mutex_lock(&range_lock);
		r = range_find(w->at[i], 1);
		if (r && r->state == SIM_NEVER_WRITTEN) {
			r->hint.truth = hint->truth ? hint->truth : r->hint.truth;
			r->hint.like = hint->like;
		} else if (!r || r->state == SIM_OUTDATED) {
			struct hint passed = *hint;

			passed.stale = r != NULL;
			range_cut(w->at[i], TENSOR_ALIGN);
			range_add(w->at[i], TENSOR_ALIGN, SIM_NEVER_WRITTEN, passed);
		}
		pthread_mutex_unlock(&range_lock);
	}
}

void sim_contents_launched(const struct sim_func *f, void **params, void **extra)
{
	struct words w;
	struct hint hint;

	if (!atomic_load_explicit(&range_count, memory_order_relaxed))
		return;
	w.count = 0;
	for (unsigned int i = 0; params && i < f->param_count; i++) {
		size_t size = 0;

		if (sim_real_param(f, i, &size) != SIZE_MAX)
			words_add(&w, params[i], size);
	}
	if (!params && extra)
		words_add_extra(&w, extra);
	pthread_mutex_lock(&range_lock);
	hint = words_hint(&w);
	for (size_t i = 0; i < w.count; i++)
		range_doubt(w.at[i]);
	pthread_mutex_unlock(&range_lock);
	if (hints(&hint))
		hint_pass_on(&w, &hint);
}

static bool is_computable(const struct sim_piece *p)
{
	if (!p->to_bytes)
		return true;
	if (!on_device(p->to) || !sim_mem_covers(p->to, p->to_bytes))
		return false;
	for (int i = 0; i < 2; i++)
		if (p->from[i] && (!on_device(p->from[i]) || !sim_mem_covers(p->from[i], p->from_bytes) ||
				   !is_there(range_state(p->from[i], p->from_bytes))))
			return false;
	return true;
}

static void set_computed(const struct sim_piece *p)
{
	enum sim_unknown state = range_state(p->from[0], p->from_bytes);
	struct hint hint = range_hint(p->from[0]);

	if (p->from[1] && state == SIM_KNOWN)
		state = range_state(p->from[1], p->from_bytes);
	hint.copied = hint.copied && (!p->from[1] || range_hint(p->from[1]).copied);
	hint.like = 0;
	range_set(p->to, p->to_bytes, state, hint);
}

bool sim_contents_compute(const struct sim_piece *piece, size_t pieces)
{
	for (size_t i = 0; i < pieces; i++)
		if (!is_computable(&piece[i]))
			return false;
	for (size_t i = 0; i < pieces; i++)
		if (piece[i].to_bytes)
			set_computed(&piece[i]);
	return true;
}

static _Atomic(sim_unknown_fn) unknown_fn;

SIM_EXPORT void cuwhy_sim_on_unknown_read(sim_unknown_fn fn);
SIM_EXPORT void cuwhy_sim_may_write(sim_addr address);
SIM_EXPORT void cuwhy_sim_staging(bool on);
SIM_EXPORT void cuwhy_sim_given_anew(sim_addr at, size_t bytes);

/* The function is called by the thread that reads, before it reads; NULL: nobody wants to know. */
void cuwhy_sim_on_unknown_read(sim_unknown_fn fn)
{
	atomic_store(&unknown_fn, fn);
}

/* For libraries whose kernels have no parameters here: one of them may write to what is at this address. */
void cuwhy_sim_may_write(sim_addr address)
{
	pthread_mutex_lock(&range_lock);
	range_doubt(address);
	pthread_mutex_unlock(&range_lock);
}

/* For libraries that move contents through the host: until it is switched off, what this thread copies to the host is read by nobody,
 * and what it copies back is no better known than that was. */
void cuwhy_sim_staging(bool on)
{
	staging = (struct staging){.on = on};
}

/* An allocator above us (PyTorch's) took this memory back, or has given it to somebody else: what the host wrote before is not theirs. The bytes stay,
 * because copies that are under way may still read them. */
void cuwhy_sim_given_anew(sim_addr at, size_t bytes)
{
	bool written;

	if (!bytes || !atomic_load(&range_count))
		return;
	pthread_mutex_lock(&range_lock);
	written = range_find(at, bytes);
	pthread_mutex_unlock(&range_lock);
	if (written)
		range_set(at, bytes, SIM_OUTDATED, (struct hint){0});
}

static enum sim_invent to_invent(enum sim_unknown state, sim_addr from, size_t bytes, sim_addr *like)
{
	bool unwritten = state == SIM_OUTDATED || state == SIM_NEVER_WRITTEN;
	struct hint hint = unwritten ? range_hint(from) : (struct hint){0};

	*like = hint.like;
	if (bytes == 1 && hint.truth == atomic_load(&truth_now)) {
		atomic_fetch_add(&truth_now, 1);
		return SIM_INVENT_TRUE;
	}
	if (bytes == NUMBER_BYTES && hint.like)
		return SIM_INVENT_NUMBER;
	if (sim.config.values == SIM_VALUES_ZEROS)	/* unwritten memory contains these already */
		unwritten = unwritten && range_outdated(from, bytes);
	return unwritten ? SIM_INVENT_VALUES : SIM_INVENT_NOT;
}

static void answer(struct sim_op *copy, size_t bytes, int how)
{
	static const enum sim_invent invents[] = {
		[SIM_ANSWER_OTHER] = SIM_INVENT_OTHER, [SIM_ANSWER_FALSE] = SIM_INVENT_FALSE, [SIM_ANSWER_TRUE] = SIM_INVENT_TRUE};

	if (bytes == 1 && how > SIM_ANSWER_USUAL && how <= SIM_ANSWER_TRUE)
		copy->u.copy.invent = invents[how];
}

void sim_contents_read(sim_addr from, size_t bytes, struct sim_op *copy)
{
	sim_unknown_fn fn = atomic_load(&unknown_fn);
	enum sim_unknown state;

	copy->u.copy.invent = SIM_INVENT_NOT;
	if (!bytes || !on_device(from) || !sim.real_code)
		return;
	state = range_state(from, bytes);
	copy->u.copy.invent = to_invent(state, from, bytes, &copy->u.copy.like);
	if (state == SIM_OUTDATED)
		state = SIM_NEVER_WRITTEN;
	if (staging.on)
		staging.state = state;
	else if (state != SIM_KNOWN && fn)
		answer(copy, bytes, fn(from, bytes, (int)state));
}

static _Atomic size_t kept_since;	/* bytes written since the memory in use was measured */
static _Atomic bool spent;

/* Bytes of this machine's memory that device memory uses. */
static void budget_measure(void)
{
	size_t resident = 0;

	for (int i = 0; i < sim.device_count; i++)
		resident += sim_heap_resident(&sim.devices[i]);
	atomic_store(&spent, resident > BUDGET);
	atomic_store(&kept_since, 0);
}

bool sim_contents_drops(sim_addr to, size_t bytes)
{
	size_t limit = sim.config.contents;

	if (atomic_load(&spent) && limit > TIGHT)
		limit = TIGHT;
	if (!sim.real_code || bytes <= TIGHT)
		return false;
	if (bytes > limit)
		return on_device(to);
	if (atomic_fetch_add(&kept_since, bytes) > BUDGET / 4)
		budget_measure();
	return false;
}

static bool page_present(sim_addr page)
{
	unsigned char present = 0;

	return !mincore((void *)(uintptr_t)page, PAGE, &present) && present & 1;
}

static void edge_clear(sim_addr at, size_t bytes)
{
	if (bytes && page_present(at & ~(sim_addr)(PAGE - 1)))
		memset((void *)(uintptr_t)at, 0, bytes);
}

/* Memory that several addresses share is a file: its pages are removed from that. */
void sim_contents_clear(sim_addr at, size_t bytes)
{
	sim_addr first = (at + PAGE - 1) & ~(sim_addr)(PAGE - 1), end = at + bytes, last = end & ~(sim_addr)(PAGE - 1);

	if (first >= last) {
		memset((void *)(uintptr_t)at, 0, bytes);
		return;
	}
	edge_clear(at, first - at);
	edge_clear(last, end - last);
	if (madvise((void *)(uintptr_t)first, last - first, MADV_REMOVE))
		madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED);
}

/* Reading a page that nobody wrote would make one of it, where memory is a file. */
void sim_contents_get(void *to, sim_addr from, size_t bytes)
{
	unsigned char present[512];
	char *out = to;

	while (bytes) {
		sim_addr page = from & ~(sim_addr)(PAGE - 1);
		size_t skip = (size_t)(from - page), most = sizeof(present) * PAGE - skip,
		       n = bytes < most ? bytes : most;

		if (mincore((void *)(uintptr_t)page, skip + n, present))
			memset(present, 1, sizeof(present));
		for (size_t done = 0; done < n;) {
			size_t in = (skip + done) % PAGE, part = n - done < PAGE - in ? n - done : PAGE - in;

			if (present[(skip + done) / PAGE] & 1)
				memcpy(out + done, (void *)(uintptr_t)(from + done), part);
			else
				memset(out + done, 0, part);
			done += part;
		}
		out += n;
		from += n;
		bytes -= n;
	}
}

static uint64_t random_next(void)
{
	static _Atomic uint64_t state = 88172645463325252ull;
	uint64_t x = atomic_load(&state);

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	atomic_store(&state, x);
	return x;
}

/* Eight bytes may as well be something else: only what could be a size is taken for a number. */
static uint64_t number_at(sim_addr at)
{
	uint64_t value;

	memcpy(&value, (const void *)(uintptr_t)at, sizeof(value));
	return value <= INT32_MAX ? value : 0;
}

/* The type is not known, only the size: one byte is a truth value, eight are a number of elements, and everything else float. */
static void values_invent(void *to, size_t bytes)
{
	bool random = sim.config.values == SIM_VALUES_RANDOM;
	uint64_t whole = random ? random_next() & 1 : 1;

	if (sim.config.values == SIM_VALUES_ZEROS) {
		memset(to, 0, bytes);
	} else if (bytes == 1 || bytes == 8) {
		memcpy(to, &whole, bytes);
	} else if (bytes == 2) {
		memcpy(to, &(uint16_t){whole ? 0x3f80 : 0}, bytes);
	} else {
		for (size_t at = 0; at < bytes; at += sizeof(float)) {
			float value = random ? (float)(random_next() >> 40) / 16777216.0f : 1.0f;

			memcpy((char *)to + at, &value, bytes - at < sizeof(value) ? bytes - at : sizeof(value));
		}
	}
}

void sim_contents_invent(void *to, size_t bytes, const struct sim_op *copy)
{
	switch (copy->u.copy.invent) {
	case SIM_INVENT_NOT: break;
	case SIM_INVENT_VALUES: values_invent(to, bytes); break;
	case SIM_INVENT_FALSE: memset(to, 0, bytes); break;
	case SIM_INVENT_TRUE: memset(to, 1, bytes); break;
	case SIM_INVENT_OTHER: memset(to, sim.config.values != SIM_VALUES_ONES, bytes); break;
	case SIM_INVENT_NUMBER: memcpy(to, &(uint64_t){number_at(copy->u.copy.like)}, bytes); break;
	}
}
