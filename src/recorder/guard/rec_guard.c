/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: allocating, freeing, and what launches are asked (see rec_guard.h).
 */
#include "recorder/guard/rec_guard_own.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "recorder/rec_site.h"

#define PATIENCE	200u	/* waits for a lock, of a millisecond or more each: its holder may have lost its processor */
#define LEAST_SCARCE	((uint64_t)1 << 20)	/* when memory is scarce, smaller ones are no longer guarded */

struct guard guard;
HOT_DATA _Atomic bool guard_armed;	/* every launch asks */
static struct spin guard_lock;
LOCK_LISTED(guard, guard_lock);

static _Atomic uint32_t asked;
static _Atomic uint64_t unseen;		/* ticks */

bool guard_wait(struct spin *lock)
{
	uint32_t me = rec_self ? rec_self->tid : SPIN_STRANGER;
	struct timespec moment = {.tv_nsec = 50000};

	for (uint32_t i = 0; i < PATIENCE; i++) {
		if (spin_once(lock, me) || spin_wait(lock, me))
			return true;
		if (me != SPIN_STRANGER && atomic_load(&lock->holder) == me)
			return false;
		nanosleep(&moment, NULL);
	}
	return false;
}

/* Its holder may be reserving addresses, for which the driver may wait until it has loaded a module. */
bool guard_hold(void)
{
	for (uint32_t i = 0; i < PATIENCE / 10; i++)
		if (guard_wait(&guard_lock))
			return true;
		else if (rec_self && atomic_load(&guard_lock.holder) == rec_self->tid)
			return false;
	return false;
}

void guard_let_go(void)
{
	spin_done(&guard_lock);
}

static uint64_t number_of(const char *text)
{
	uint64_t v = 0;

	for (; *text >= '0' && *text <= '9'; text++)
		v = v * 10 + (uint64_t)(*text - '0');
	switch (*text) {
	case 'M':
		return v << 20;
	case 'G':
		return v << 30;
	case 'T':
		return v << 40;
	default:
		return v;
	}
}

static bool option_is(const char *word, size_t len, const char *name, const char **value)
{
	size_t n = strlen(name);

	*value = word + n;
	return len >= n && strncmp(word, name, n) == 0;
}

/* FILE:A-B, FILE:A or FILE */
static void only_parse(const char *text, size_t len)
{
	size_t end = len;

	guard.only_from = 0;
	guard.only_to = UINT32_MAX;
	for (size_t i = len; i > 0; i--)
		if (text[i - 1] == ':' && i < len) {
			const char *dash = memchr(text + i, '-', len - i);

			end = i - 1;
			guard.only_from = (uint32_t)number_of(text + i);
			guard.only_to = dash ? (uint32_t)number_of(dash + 1) : guard.only_from;
			break;
		}
	text_copy(guard.only, sizeof(guard.only), text, end);
}

/* `cuwhy run` has checked the words. */
static void guard_parse(const char *list, uint64_t *budget)
{
	guard.before = guard.values = false;
	guard.align = 16;
	guard.sample = 1;
	guard.only[0] = '\0';
	*budget = 0;
	while (*list) {
		size_t len = strcspn(list, ",");
		const char *value;

		if (option_is(list, len, "before", &value))
			guard.before = true;
		else if (option_is(list, len, "values", &value))
			guard.values = true;
		else if (option_is(list, len, "align=", &value))
			guard.align = number_of(value) == 256 ? 256 : 16;
		else if (option_is(list, len, "sample=1/", &value))
			guard.sample = number_of(value) ? (uint32_t)number_of(value) : 1;
		else if (option_is(list, len, "budget=", &value))
			*budget = number_of(value);
		else if (option_is(list, len, "only=", &value))
			only_parse(value, len - (size_t)(value - list));
		list += len + (list[len] == ',');
	}
}

void guard_start(void)
{
	const char *list = rec_getenv("CUWHY_GUARD");
	uint64_t budget;

	atomic_store(&guard_armed, false);
	if (!list)
		return;
	totals_start();
	atomic_store(&asked, 0);
	atomic_store(&unseen, 0);
	guard_parse(list, &budget);
	space_start(budget);
	pages_start();
	free_start();
	unread_start();
	hand_reset();
	guard.told = chunk_new(CW_CHUNK_GUARD, sizeof(*guard.told), 0);
	if (!guard.told)
		return;
	guard.told->flags = (guard.before ? CW_GUARD_BEFORE : 0) | (guard.values ? CW_GUARD_VALUES : 0) |
			    (guard_torch_guarded() ? CW_GUARD_TORCH : 0);	/* a forked child has its parent's */
	guard.told->align = guard.align;
	guard.told->sample = guard.sample;
	text_copy(guard.told->only, sizeof(guard.told->only), guard.only, strlen(guard.only));
	atomic_store(&guard_armed, true);
}

void guard_refuse(const char *why)
{
	static const char before[] = "cuwhy: --guard: ", after[] = "\n";

	if (write(STDERR_FILENO, before, sizeof(before) - 1) < 0 || write(STDERR_FILENO, why, strlen(why)) < 0 ||
	    write(STDERR_FILENO, after, sizeof(after) - 1) < 0)
		_exit(2);
	_exit(2);
}

void guard_refuse_sharing(void)
{
	guard_refuse("the program shares GPU memory with another process (cuIpcGetMemHandle), which guarded memory cannot do; "
		     "run it without --guard, or guard other lines: --guard=only=FILE:A-B");
}

static void skipped(enum cw_guard_skip why)
{
	shared_add(&guard.told->skipped[why], 1);
}

static bool path_ends(const struct cw_string *path, const char *end)
{
	size_t n = strlen(end);

	return path && path->len >= n && strcmp(path->text + path->len - n, end) == 0 &&
	       (path->len == n || path->text[path->len - n - 1] == '/');
}

/* Is one of these lines among those that `only` names? */
static bool only_has(uint32_t stack)
{
	const struct cw_stack *s = at(stack);

	for (uint32_t i = 0; s && i < s->n; i++)
		if (s->frame[i].line >= guard.only_from && s->frame[i].line <= guard.only_to &&
		    path_ends(at(s->frame[i].file), guard.only))
			return true;
	return false;
}

/* NCCL shares its buffers with other processes, which guarded memory cannot do. */
static bool library_shares(void)
{
	const struct cw_string *path = at(library_asking(rec_self));
	const char *slash = path ? strrchr(path->text, '/') : NULL;

	return slash && (strncmp(slash, "/libnccl", 8) == 0 || strncmp(slash, "/libnvshmem", 11) == 0);
}

/* PyTorch's allocator cuts tensors that are not guarded out of its segments; NVIDIA's libraries have workspaces. */
static bool library_own(void)
{
	uint32_t library = library_asking(rec_self);
	const struct cw_string *path = at(library);

	return library_is_torch(library) ? !guard_torch_through() : path && stock_library(path->text);
}

static uint64_t room_for(uint64_t size)
{
	return (size + guard.align - 1) & ~(uint64_t)(guard.align - 1);
}

static uint64_t pages_for(uint64_t size)
{
	return (room_for(size) + GUARD_UNIT - 1) & ~(GUARD_UNIT - 1);
}

static bool is_wanted(const struct guard_request *q, int device, uint32_t stack, uint32_t forward)
{
	struct guarded r = {.size = q->size, .len = pages_for(q->size), .torch = q->torch, .device = (int16_t)device};
	const struct guard_device *d = device_known(device);
	enum cw_guard_skip why;

	if (guard.only[0] && !only_has(stack) && !only_has(forward))
		why = CW_GUARD_SKIP_ONLY;
	else if (guard.sample > 1 && atomic_fetch_add(&asked, 1) % guard.sample)
		why = CW_GUARD_SKIP_SAMPLE;
	else if (q->size < d->least || !totals_allow(&r, d->total))
		why = CW_GUARD_SKIP_MEMORY;
	else if (!q->torch && library_shares())
		why = CW_GUARD_SKIP_SHARED;
	else
		return true;
	skipped(why);
	return false;
}

static void record_fill(struct guarded *r, const struct guard_request *q, uint64_t room)
{
	r->size = q->size;
	r->addr = guard.before ? r->map : r->map + r->len - room;
	r->ticks = rec_ticks();
	r->torch = q->torch;
	r->pool = q->pool;
	r->memory_pool = q->memory_pool;
	r->n_streams = q->stream == GUARD_AT_ONCE ? 0 : 1;
	r->stream[0] = q->stream;
	/* behind: up to the aligned end, or with `before` a little of what is left of the page */
	r->slack = (uint32_t)(guard.before ? (r->len - q->size < 256 ? r->len - q->size : 256) : room - q->size);
}

static uint64_t record_make(uint32_t i, struct guarded *r, const struct guard_request *q)
{
	CUresult code = pages_map(r);

	if (!code && !q->pool)
		guard_fill(r, q->stream);
	else
		r->slack = 0;
	if (!guard_hold())
		return 0;
	if (code) {
		range_drop(i);
	} else {
		r->state = GUARD_LIVE;
		*record(i) = *r;
	}
	guard_let_go();
	if (!code) {
		shared_add(&guard.told->made, 1);
		totals_in(r);
	} else if (code == CU_OUT_OF_MEMORY) {
		device_known(r->device)->least = LEAST_SCARCE;	/* the largest first: they waste the least */
	}
	return code ? 0 : r->addr;
}

/* A thread of backward may allocate before it has called CUDA at all; the runtime would do the same for it. */
static int device_of(const struct guard_request *q)
{
	CUresult (*set)(void *) = door(ENTRY_cuCtxSetCurrent);
	struct guard_device *d = q->torch ? device_known(q->device) : NULL;
	int device = current_device();

	if (device >= 0 || !d || !set || set(d->context) != 0)
		return device;
	rec_self->device = DEVICE_ASK;
	return current_device();
}

uint64_t guard_alloc(const struct guard_request *q)
{
	int device = device_of(q);
	struct guard_device *d = device >= 0 && device < CW_MAX_DEVICES && !failed_before() ? device_ready(device) : NULL;
	uint64_t room = room_for(q->size), made;
	uint32_t stack, forward = 0, name, i, peers = pages_peers();
	struct guarded r;

	if (!d || !q->size || q->size > d->total) {
		skipped(CW_GUARD_SKIP_OTHER);
		return 0;
	}
	free_step(device);
	stack = stack_here();
	if (rec_self->node_depth)
		torch_backward(rec_self, &forward, &name);
	if (!is_wanted(q, device, stack, forward))
		return 0;
	if (!guard_hold()) {
		skipped(CW_GUARD_SKIP_OTHER);
		return 0;
	}
	if (q->stream != GUARD_AT_ONCE)
		free_reused(device, q->stream);
	i = pages_take(device, pages_for(q->size));
	if (i)
		r = *record(i);
	guard_let_go();
	if (!i) {
		skipped(CW_GUARD_SKIP_OTHER);
		return 0;
	}
	r.stack = stack;
	r.forward = forward;
	r.own = !q->torch && library_own();
	record_fill(&r, q, room);
	made = record_make(i, &r, q);
	if (!made)
		skipped(CW_GUARD_SKIP_MEMORY);
	else if (peers != pages_peers())	/* guard_peer() may not have seen it */
		pages_access(&r);
	return made;
}

static void stream_add(struct guarded *r, uint64_t stream)
{
	for (uint32_t i = 0; i < r->n_streams && i < GUARD_STREAMS; i++)
		if (r->stream[i] == stream)
			return;
	if (r->n_streams < GUARD_STREAMS)
		r->stream[r->n_streams] = stream;
	if (r->n_streams <= GUARD_STREAMS)
		r->n_streams++;
}

void guard_used_by(uint64_t addr, uint64_t stream)
{
	uint32_t i;

	if (!guard_hold())
		return;
	i = record_at(addr);
	if (i && record(i)->state == GUARD_LIVE)
		stream_add(record(i), stream);
	guard_let_go();
}

static void count_out(const struct guarded *r)
{
	shared_add(&guard.told->freed, 1);
	totals_out(r);
}

/* What PyTorch gave a library to work in, it may take back while graphs have it: it clears its workspaces before each graph of
 * torch.compile's, and other graphs that were captured with them are run again. Without us that memory stays mapped. A tensor of the
 * program's that it frees is another matter: who runs the graph again uses freed memory. */
static bool is_kept(const struct guarded *r)
{
	return r->pool || (r->own && r->captured_last && capture_between(r->captured_first, r->captured_last));
}

/* PyTorch's allocator frees in the order of the stream that it allocated for, and of those that it was told of; cudaFreeAsync in the
 * order of the stream that it is given, and of no other. Graphs run in any stream. */
static void streams_of_free(struct guarded *r, uint64_t stream)
{
	if (stream == GUARD_AT_ONCE || r->captured_last)
		r->n_streams = GUARD_STREAMS + 1;
	else if (!r->torch && r->n_streams <= GUARD_STREAMS)
		r->n_streams = 0;
	stream_add(r, stream);
}

static void captured_by(struct guarded *r, uint32_t capture)
{
	if (!r->captured_first)
		r->captured_first = capture;
	if (capture > r->captured_last)
		r->captured_last = capture;
}

bool guard_free(uint64_t addr, uint64_t stream)
{
	uint32_t i, stack = rec_self && rec_nesting ? stack_here() : 0;
	uint32_t capture = stream == GUARD_AT_ONCE ? 0 : capture_of(stream);
	struct guarded r;
	bool first = false;

	if (!guard_hold())
		return false;
	i = addr ? record_at(addr) : 0;
	if (!i || record(i)->addr != addr || record(i)->state != GUARD_LIVE) {
		guard_let_go();
		return false;
	}
	record(i)->free_stack = stack;
	if (capture && !record(i)->torch) {	/* the free is part of the graph, and comes behind what uses it there */
		record(i)->own = true;
		captured_by(record(i), capture);
	}
	streams_of_free(record(i), stream);
	r = *record(i);
	if (is_kept(&r))
		record(i)->state = GUARD_KEPT;
	else
		first = free_add(i);
	guard_let_go();
	if (first)
		hand_nudge();
	count_out(&r);
	if (stream == GUARD_AT_ONCE)	/* as cuMemFree does */
		guard_flush(false);
	else
		free_step(r.device);
	return true;
}

static bool is_used_by(const struct guarded *r, uint64_t stream)
{
	for (uint32_t i = 0; i < r->n_streams && i < GUARD_STREAMS; i++)
		if (r->stream[i] == stream)
			return true;
	return false;
}

/* Its work goes on, but no event can be recorded behind it any more: not for what is freed later, either. */
void guard_stream_gone(uint64_t stream)
{
	free_close();
	if (!guard_hold())
		return;
	for (uint32_t i = 1; i < records_end(); i++)
		if (record(i)->state >= GUARD_LIVE && is_used_by(record(i), stream))
			record(i)->n_streams = GUARD_STREAMS + 1;
	guard_let_go();
}

/* Its memory goes without being freed, and what we have there, too: the context, a stream. */
void guard_device_gone(int device)
{
	if (device < 0 || device >= CW_MAX_DEVICES || !device_known(device) || !guard_hold())
		return;
	for (uint32_t i = 1; i < records_end(); i++) {
		struct guarded *r = record(i);

		if (r->device != device || (r->state != GUARD_LIVE && r->state != GUARD_KEPT))
			continue;
		if (r->state == GUARD_LIVE)
			count_out(r);
		r->n_streams = GUARD_STREAMS + 1;
		r->pool = r->captured_last = 0;
		free_add(i);
	}
	guard_let_go();
	guard_flush(true);
	device_forget(device);
}

static void kept_gone(uint32_t i)
{
	if (record(i)->state != GUARD_KEPT || is_kept(record(i)))
		return;
	record(i)->n_streams = GUARD_STREAMS + 1;
	free_add(i);
}

/* A graph that has gone may still run, in any stream, and what it returned is freed in the order of the stream of its capture. PyTorch
 * gives such memory back to the driver alone, which waits. */
void guard_pool_gone(uint32_t pool)
{
	if (!guard_hold())
		return;
	for (uint32_t i = 1; i < records_end(); i++)
		if (record(i)->pool == pool) {
			record(i)->pool = 0;
			record(i)->n_streams = GUARD_STREAMS + 1;
			kept_gone(i);
		}
	guard_let_go();
}

void guard_graph_gone(void)
{
	if (!guard_hold())
		return;
	for (uint32_t i = 1; i < records_end(); i++)
		kept_gone(i);
	guard_let_go();
}

/* It works in the stream that it was allocated for. */
void guard_workspace(uint64_t addr)
{
	struct guarded r;
	uint32_t capture, i;

	if (!guard_find(addr, &r) || r.addr != addr)
		return;
	capture = r.n_streams ? capture_of(r.stream[0]) : 0;
	if ((r.own && !capture) || !guard_hold())
		return;
	i = record_at(addr);
	if (i && record(i)->state == GUARD_LIVE) {
		record(i)->own = true;
		if (capture)
			captured_by(record(i), capture);
	}
	guard_let_go();
}

/* What is held at the moment of the last failure counts. */
void guard_out_of_memory(void)
{
	int device = current_device();

	if (device >= 0 && device < CW_MAX_DEVICES)
		shared_set(&guard.told->extra, guard_extra(device));
}

bool guard_find(uint64_t address, struct guarded *out)
{
	bool found = false;
	uint32_t i;

	if (!guard_hold())
		return false;
	i = record_at(address);
	if (i && record(i)->state == GUARD_LIVE && address >= record(i)->addr &&
	    address - record(i)->addr < record(i)->size) {
		*out = *record(i);
		found = true;
	}
	guard_let_go();
	return found;
}

uint32_t guard_list(struct guarded *out, uint32_t max, uint32_t *cursor, bool (*wanted)(const struct guarded *g))
{
	uint32_t n = 0;

	if (!guard_hold())
		return 0;
	for (; *cursor < records_end() && n < max; (*cursor)++)
		if (*cursor && record(*cursor)->state == GUARD_LIVE && wanted(record(*cursor)))
			out[n++] = *record(*cursor);
	guard_let_go();
	return n;
}

static bool any_one(const struct guarded *r)
{
	(void)r;
	return true;
}

void guard_peer(void)
{
	struct guarded list[64];
	uint32_t cursor = 1, n;

	pages_peer();
	do {
		n = guard_list(list, 64, &cursor, any_one);
		for (uint32_t i = 0; i < n; i++)
			pages_access(&list[i]);
	} while (n == 64);
}

/* All of them are looked at, even if one has been found: those that are not read are learned together. */
bool guard_points_to_freed(const struct guard_launch *l, const void *bytes, size_t n)
{
	bool found = false;
	uint64_t word;
	uint32_t i;

	if (!guard_hold())
		return false;
	for (size_t at_byte = 0; at_byte + 8 <= n; at_byte += 8) {
		memcpy(&word, (const char *)bytes + at_byte, 8);
		i = record_at(word);
		if (i && record(i)->state == GUARD_FREED && !unread_known(l, (uint32_t)at_byte)) {
			unread_learn(l, (uint32_t)at_byte, false);
			found = true;
		} else if (!i && address_is_dead(word)) {
			unread_learn(l, (uint32_t)at_byte, true);
		}
	}
	guard_let_go();
	return found;
}

void guard_wait_for_freed(void)
{
	bool unmapped = guard_flush(false);

	if (!guard_hold())
		return;
	unread_launching(unmapped);
	guard_let_go();
}

/* A pointer to any of its pages counts: a view may begin before the bytes that a kernel uses. */
bool guard_give(const void *words, size_t n, enum guard_given how)
{
	uint64_t word;
	uint32_t i;

	if (!guard_hold()) {
		guard_unseen();
		return false;
	}
	for (size_t at_byte = 0; at_byte + 8 <= n; at_byte += 8) {
		memcpy(&word, (const char *)words + at_byte, 8);
		i = record_at(word);
		if (i && record(i)->state == GUARD_LIVE && record(i)->given < how)
			record(i)->given = (uint8_t)how;
	}
	guard_let_go();
	return false;
}

bool guard_capture(const struct guard_launch *l, const void *words, size_t n)
{
	uint64_t word;
	uint32_t i;

	if (!guard_hold())
		return false;
	for (size_t at_byte = 0; at_byte + 8 <= n; at_byte += 8) {
		memcpy(&word, (const char *)words + at_byte, 8);
		i = record_at(word);
		if (i && record(i)->state == GUARD_LIVE)
			captured_by(record(i), l->capture);
	}
	guard_let_go();
	return false;
}

void guard_unseen(void)
{
	atomic_store_explicit(&unseen, rec_ticks(), memory_order_relaxed);
}

uint64_t guard_unseen_last(void)
{
	return atomic_load_explicit(&unseen, memory_order_relaxed);
}
