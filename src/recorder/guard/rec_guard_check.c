/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: the pattern behind allocations, and in memory that has not been written yet.
 *
 * The hardware notices an access beyond the last page. Between the end of an allocation and the end of its page there
 * are a few bytes when its size is no multiple of the alignment: they hold a pattern, which is compared when the
 * allocation is freed and at the end of the program. With `values` all of it holds the pattern at first. It is NaN in
 * every float type, so that what is computed from it is NaN, too; and no usual integer, so that where it is found
 * nobody has written since.
 */
#include <string.h>

#include "recorder/guard/rec_guard_own.h"

#define PIECE		((size_t)1 << 20)	/* read at a time in a search */
#define SLOT		256u
#define SLOTS		32u
#define SEARCH_MOST	((uint64_t)4 << 30)	/* bytes read by one search */
#define SEARCHES	16u
#define LOOK_MOST	((size_t)1 << 20)	/* of what was copied to the host */
#define TABLE_MOST	((uint64_t)64 << 10)	/* of what was copied to the GPU */
#define COPY_WORDS	16u	/* CUDA_MEMCPY2D; of CUDA_MEMCPY3D the part with the source */

static struct check_device {
	uint64_t stream;		/* our own: it waits for no other stream, and none waits for it */
	uint8_t *slots, *piece;		/* pinned */
	bool ready;
} devices[CW_MAX_DEVICES];

static struct {
	_Atomic uint32_t searches;
	uint64_t spent_ns;
	_Atomic bool searching, over;
} values;

bool guard_check_start(int device)
{
	CUresult (*create)(uint64_t *, unsigned) = door(ENTRY_cuStreamCreate);
	CUresult (*pin)(void **, size_t, unsigned) = door(ENTRY_cuMemHostAlloc);
	struct check_device *d = &devices[device];
	void *p = NULL;

	if (!create || !pin || create(&d->stream, 1) != 0 || pin(&p, SLOT * SLOTS + PIECE, 1) != 0)
		return false;
	d->slots = p;
	d->piece = d->slots + SLOT * SLOTS;
	d->ready = true;
	atomic_store(&values.searches, 0);
	atomic_store(&values.over, false);
	return true;
}

static bool is_pattern(uint64_t address, uint8_t byte)
{
	return byte == (address & 1 ? GUARD_PATTERN_ODD : GUARD_PATTERN_EVEN);
}

/* The fill is in the order of the stream that will use the memory. Memory that is ready at once has none: it is filled
 * in our own, and waited for. */
void guard_fill(struct guarded *g, uint64_t stream)
{
	CUresult (*fill)(uint64_t, uint16_t, size_t, uint64_t) = door(ENTRY_cuMemsetD16Async);
	CUresult (*sync)(uint64_t) = door(ENTRY_cuStreamSynchronize);
	bool own = stream == GUARD_AT_ONCE;
	bool all = guard.values && !g->own;
	uint64_t from = all ? g->addr : (g->addr + g->size) & ~(uint64_t)1, to = g->addr + g->size + g->slack;
	int capturing = 0;

	if ((!g->slack && !all) || !fill || !sync)
		return;
	if (own)
		stream = devices[g->device].stream;
	else if (drv.cuStreamIsCapturing && (drv.cuStreamIsCapturing((void *)stream, &capturing) != 0 || capturing))
		to = from;	/* it would become part of the graph */
	to &= ~(uint64_t)1;
	if (to <= from || fill(from, GUARD_PATTERN_ODD << 8 | GUARD_PATTERN_EVEN, (to - from) / 2, stream) != 0 ||
	    (own && sync(stream) != 0)) {
		g->slack = 0;
		return;
	}
	g->slack = to > g->addr + g->size ? (uint32_t)(to - g->addr - g->size) : 0;
	g->filled = all;
}

struct finding {
	const char *what, *text;
	uint64_t from, bytes;		/* behind the end, or of it */
	uint64_t value, others;
	bool given;			/* a kernel or a copy had a pointer to it */
	uint32_t noticed;		/* where it was freed, or where the result was read */
};

static void tell(const struct guarded *g, const struct finding *found)
{
	struct cw_failure f;
	bool entered = !rec_nesting;
	const uint64_t arg[] = {g->addr, g->size, found->from, found->bytes, found->noticed, g->ticks, g->torch,
				found->value, found->others, found->given};

	if (entered && !rec_enter())
		return;
	fail_init(&f, CW_SRC_GUARD, 0);
	f.stack = g->stack;
	f.forward_stack = g->forward;
	f.node_name = 0;
	f.device = g->device;
	f.n_args = sizeof(arg) / sizeof(arg[0]);
	memcpy(f.arg, arg, sizeof(arg));
	text_copy(f.what, sizeof(f.what), found->what, strlen(found->what));
	text_copy(f.text, sizeof(f.text), found->text, strlen(found->text));
	fail_note(&f);
	if (entered)
		rec_leave();
}

static void slack_look(const struct guarded *g, const uint8_t *bytes)
{
	uint64_t end = g->addr + g->size, first = g->slack, last = 0, value = 0;

	for (uint32_t i = 0; i < g->slack; i++)
		if (!is_pattern(end + i, bytes[i])) {
			first = first < i ? first : i;
			last = i;
		}
	shared_add(&guard.told->checked, 1);
	if (first == g->slack)
		return;
	memcpy(&value, bytes + first, g->slack - first < 8 ? g->slack - first : 8);
	shared_add(&guard.told->damaged, 1);
	tell(g, &(struct finding){.what = CW_GUARD_SLACK,
				  .text = "the pattern behind an allocation is gone",
				  .from = first,
				  .bytes = last - first + 1,
				  .value = value,
				  .noticed = g->free_stack});
}

bool guard_check(const struct guarded *list, uint32_t n)
{
	CUresult (*copy)(void *, uint64_t, size_t, uint64_t) = door(ENTRY_cuMemcpyDtoHAsync_v2);
	CUresult (*sync)(uint64_t) = door(ENTRY_cuStreamSynchronize);
	const struct check_device *d = n ? &devices[list[0].device] : NULL;
	bool got[SLOTS] = {false}, any = false;

	if (!n || !d->ready || !copy || !sync)
		return true;
	for (uint32_t i = 0; i < n && i < SLOTS; i++)
		if (list[i].slack && list[i].slack <= SLOT) {
			got[i] = copy(d->slots + i * SLOT, list[i].addr + list[i].size, list[i].slack, d->stream) == 0;
			any |= got[i];
		}
	if (any && sync(d->stream) != 0)
		return false;
	for (uint32_t i = 0; i < n && i < SLOTS; i++)
		if (got[i])
			slack_look(&list[i], d->slots + i * SLOT);
	return true;
}

static bool has_slack(const struct guarded *g)
{
	return g->slack != 0;
}

/* All work must have ended. The driver may have stopped working by then: it says so. Or work waits for the program, which will not do
 * it any more, and the program must end nevertheless. */
static CUresult everything_ends(void)
{
	CUresult (*sync)(void) = door(ENTRY_cuCtxSynchronize);

	return sync ? sync() : CU_NO_DRIVER;
}

/* Those that were never freed. */
void guard_at_exit(void)
{
	static _Atomic bool done;
	struct guarded list[SLOTS];
	uint32_t cursor = 1, n;
	void *context = NULL;

	if (guard_on())
		hand_stop();
	if (!guard_on() || failed_before() || atomic_load(&rec.captures) || atomic_exchange(&done, true))
		return;
	if (!drv.cuCtxGetCurrent || drv.cuCtxGetCurrent(&context) != 0 || !context) {
		atomic_store(&done, false);
		return;
	}
	if (!hand_waits(everything_ends))
		return;
	guard_flush(false);
	do {
		n = guard_list(list, SLOTS, &cursor, has_slack);
		for (uint32_t i = 0; i < n; i++) {	/* they may be on several devices */
			struct visit v = device_enter(list[i].device);

			guard_check(&list[i], 1);
			device_leave(v);
		}
	} while (n == SLOTS);
}

static bool is_suspect(const uint8_t *bytes, size_t n)
{
	uint32_t word;
	uint16_t half;

	for (size_t i = 0; i + 4 <= n; i += 4) {
		memcpy(&word, bytes + i, 4);
		if ((word & 0x7fffffff) > 0x7f800000)
			return true;
	}
	if (n < 2 || n >= 4)
		return false;
	memcpy(&half, bytes, 2);
	return (half & 0x7fff) > 0x7c00;
}

/* The first run of the pattern in an allocation. False: none, or it could not be read. */
static bool unwritten_in(const struct guarded *g, uint64_t *from, uint64_t *to)
{
	CUresult (*copy)(void *, uint64_t, size_t, uint64_t) = door(ENTRY_cuMemcpyDtoHAsync_v2);
	CUresult (*sync)(uint64_t) = door(ENTRY_cuStreamSynchronize);
	const struct check_device *d = &devices[g->device];
	uint64_t least = g->size < 4 ? g->size : 4, start = 0;
	bool in = false;

	for (uint64_t at_byte = 0; at_byte < g->size; at_byte += PIECE) {
		size_t n = g->size - at_byte < PIECE ? (size_t)(g->size - at_byte) : PIECE;

		if (copy(d->piece, g->addr + at_byte, n, d->stream) != 0 || sync(d->stream) != 0)
			return false;
		for (size_t i = 0; i < n; i++) {
			uint64_t here = at_byte + i;

			if (is_pattern(g->addr + here, d->piece[i])) {
				if (!in && here % least == 0) {
					start = here;
					in = true;
				}
			} else {
				if (in && here - start >= least) {
					*from = start;
					*to = here;
					return true;
				}
				in = false;
			}
		}
	}
	*from = start;
	*to = g->size;
	return in && g->size - start >= least;
}

/* A result can only come from memory that a kernel or a copy was pointed to. What is in no parameter and in no table cannot be reached,
 * unless there were launches that could not be looked at. */
static bool can_be_source(const struct guarded *g)
{
	return g->filled && (g->given != GIVEN_NOT || g->ticks <= guard_unseen_last());
}

static void search(uint32_t noticed)
{
	CUresult (*sync)(void) = door(ENTRY_cuCtxSynchronize);
	struct guarded list[16], first = {0};
	struct finding found = {.what = CW_GUARD_UNINITIALIZED, .noticed = noticed,
				.text = "a live allocation still holds the pattern of fresh memory"};
	uint64_t read = 0, from, to;
	uint32_t cursor = 1, n;

	if (!sync || sync() != 0)	/* what is about to be written would look unwritten */
		return;
	do {
		n = guard_list(list, 16, &cursor, can_be_source);
		for (uint32_t i = 0; i < n && read < SEARCH_MOST; i++) {
			read += list[i].size;
			if ((list[i].torch && torch_block_workspace(list[i].addr)) || !unwritten_in(&list[i], &from, &to))
				continue;
			if (found.others++ == 0 || (!found.given && list[i].given == GIVEN)) {
				first = list[i];
				found.from = from;
				found.bytes = to - from;
				found.given = list[i].given == GIVEN;
			}
		}
	} while (n == 16 && read < SEARCH_MOST);
	shared_add(&guard.told->searches, 1);
	if (!found.others)
		return;
	found.others--;
	atomic_store(&values.over, true);	/* once is enough */
	tell(&first, &found);
}

static void look(uint64_t host, uint64_t bytes, uint32_t stack)
{
	uint8_t part[4096];
	uint64_t began;
	bool suspect = false;

	for (uint64_t i = 0; i < bytes && i < LOOK_MOST && !suspect; i += sizeof(part)) {
		size_t n = bytes - i < sizeof(part) ? (size_t)(bytes - i) : sizeof(part);

		if (!rec_read_memory(part, (const void *)(uintptr_t)(host + i), n))
			return;
		suspect = is_suspect(part, n);
	}
	if (!suspect || atomic_load(&values.over) || atomic_load(&rec.captures) ||
	    atomic_load(&values.searches) >= SEARCHES || atomic_exchange(&values.searching, true))
		return;
	began = rec_mono_ns();
	if (values.spent_ns < 200000000u + (began - rec.h->clock0.mono_ns) / 20) {
		atomic_fetch_add(&values.searches, 1);
		search(stack);
		values.spent_ns += rec_mono_ns() - began;
	}
	atomic_store(&values.searching, false);
}

/* Tables of pointers come to the GPU as any other data. */
static void look_for_pointers(uint64_t host, uint64_t bytes)
{
	uint8_t part[4096];

	for (uint64_t i = 0; i < bytes && i < TABLE_MOST; i += sizeof(part)) {
		size_t n = bytes - i < sizeof(part) ? (size_t)(bytes - i) : sizeof(part);

		if (!rec_read_memory(part, (const void *)(uintptr_t)(host + i), n))
			return;
		guard_give(part, n, GIVEN_IN_TABLE);
	}
}

/* One with at most two arguments has a structure that describes it, and perhaps a stream. */
void guard_copy(enum api api, const uint64_t *arg, uint32_t n)
{
	uint64_t described[COPY_WORDS];

	if (n > 2)
		guard_give(arg + 1, 2 * sizeof(*arg), GIVEN);
	else if (rec_read_memory(described, (const void *)(uintptr_t)arg[0], sizeof(described)))
		guard_give(described, sizeof(described), GIVEN);
	if (api == API_cuMemcpyHtoD_v2 || api == API_cuMemcpyHtoDAsync_v2 || api == API_cuMemcpy ||
	    api == API_cuMemcpyAsync)
		look_for_pointers(arg[1], arg[2]);
}

void guard_copied(uint64_t to, uint64_t from, uint64_t bytes, bool done)
{
	struct rec_thread *t = rec_self;
	struct guarded g;

	if (!bytes || atomic_load(&values.over) || !guard_find(from, &g) || guard_find(to, &g))
		return;
	if (done) {
		look(to, bytes, stack_here());
	} else if (t && t->n_copies < REC_COPIES) {
		t->copies[t->n_copies++] = (struct unread_copy){to, bytes, stack_here()};
	}
}

void guard_waited(void)
{
	struct rec_thread *t = rec_self;
	uint32_t n = t ? t->n_copies : 0;

	if (n)
		t->n_copies = 0;
	for (uint32_t i = 0; i < n; i++)
		look(t->copies[i].to, t->copies[i].bytes, t->copies[i].stack);
}
