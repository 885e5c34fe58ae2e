/* SPDX-License-Identifier: Apache-2.0
 * Reads the recording of one process, trusting nothing in it: every offset, count and text is checked before it is used.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "case/source.h"
#include "formats/demangle.h"
#include "read/recording/recording.h"
#include "read/recording/seal.h"
#include "read/recording/torch_version.h"
#include "read/recording/trace.h"
#include "read/recording/trace_check.h"
#include "read/recording/trace_memory.h"

struct chunk {			/* checked: lies inside the data, aligned, overlaps no other */
	uint32_t kind;
	size_t off, len;
};

struct list {			/* pointers into the data, built on first use */
	const void **item;
	size_t n, cap;
	bool built;
};

struct trace {
	uint8_t *data;
	struct source_book *sources;
	size_t len;
	struct cw_header header;
	struct chunk chunk[CW_MAX_CHUNKS];
	size_t n_chunks;
	struct cw_failure *failure;	/* copies, with terminated texts */
	struct list failures, launches, calls, allocations, blocks, freed;
	char **names;			/* demangled function names by index */
	size_t n_names;
	struct run_memory *run_memory;	/* of trace_memory.c */
	struct trace_damage damage;
};

#define END_TEXT(array) ((array)[sizeof(array) - 1] = '\0')

static void list_add(struct list *l, const void *item)
{
	l->item = xgrow(l->item, l->n, &l->cap, sizeof(*l->item));
	l->item[l->n++] = item;
}

static int order_of(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static void list_sort(struct list *l, int (*by)(const void *, const void *))
{
	xsort(l->item, l->n, sizeof(*l->item), by);
}

uint64_t trace_card(const struct trace *t, int device)
{
	uint64_t total = device >= 0 && device < CW_MAX_DEVICES ? t->header.device[device].total_bytes : 0;

	return total ? total : CARD_MAX;
}

bool trace_possible(struct trace *t, bool possible)
{
	t->damage.impossible += !possible && !t->damage.intact;
	return possible;
}

bool memory_is_on_card(uint32_t kind)
{
	return kind == CW_MEM_TORCH || kind == CW_MEM_DEVICE || kind == CW_MEM_ASYNC || kind == CW_MEM_VMM;
}

static bool range_is_possible(struct trace *t, uint64_t addr, uint64_t size, uint32_t kind, int device)
{
	return trace_possible(t,
			      size <= UINT64_MAX - addr && (!memory_is_on_card(kind) || size <= trace_card(t, device)));
}

/* Drops every item that `same` says equals the one before it. */
static void squeeze(struct list *l, bool (*same)(const void *a, const void *b))
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++)
		if (n == 0 || !same(l->item[n - 1], l->item[i]))
			l->item[n++] = l->item[i];
	l->n = n;
}

static int by_failure(const void *a, const void *b)
{
	const struct cw_failure *x = *(const struct cw_failure *const *)a;
	const struct cw_failure *y = *(const struct cw_failure *const *)b;

	return order_of(x->seq, y->seq);
}

static bool same_failure(const void *a, const void *b)
{
	return ((const struct cw_failure *)a)->seq == ((const struct cw_failure *)b)->seq;
}

static const struct chunk *first_chunk(const struct trace *t, uint32_t kind)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind)
			return &t->chunk[i];
	return NULL;
}

/* Other allocators than PyTorch's own may reserve nothing. */
static void check_failure(struct trace *t, struct cw_failure *f)
{
	uint64_t card = trace_card(t, f->device);

	if (f->memory_known && !trace_possible(t, f->total_bytes <= CARD_MAX && f->free_bytes <= f->total_bytes))
		f->memory_known = 0;
	if (!trace_possible(t, f->torch_reserved <= card && f->torch_allocated <= card))
		f->torch_allocated = f->torch_reserved = 0;
	if (!trace_possible(t, f->live_device_bytes <= CARD_MAX))
		f->live_device_bytes = 0;
}

static void trace_read_failures(struct trace *t)
{
	const struct chunk *c = first_chunk(t, CW_CHUNK_FAILURES);
	size_t i, n = c ? c->len / sizeof(struct cw_failure) : 0;

	if (n > CW_MAX_FAILURES)
		n = CW_MAX_FAILURES;
	t->failure = xcalloc(n, sizeof(*t->failure));
	if (n)
		memcpy(t->failure, t->data + c->off, n * sizeof(*t->failure));
	for (i = 0; i < n; i++) {
		if (t->failure[i].seq == 0)
			continue;
		END_TEXT(t->failure[i].visible_devices);
		END_TEXT(t->failure[i].what);
		END_TEXT(t->failure[i].file);
		END_TEXT(t->failure[i].text);
		if (t->failure[i].n_args > CW_MAX_ARGS)
			t->failure[i].n_args = CW_MAX_ARGS;
		check_failure(t, &t->failure[i]);
		list_add(&t->failures, &t->failure[i]);
	}
	list_sort(&t->failures, by_failure);
	squeeze(&t->failures, same_failure);
}

/* Adds the complete records of a ring. A slot belongs to one index at a time: the newest below head
 * that falls on it. Any other number means that its writer was interrupted. */
static void add_ring(struct trace *t, const struct chunk *c, size_t record, struct list *out)
{
	const struct cw_ring *r = (const struct cw_ring *)(t->data + c->off);
	const uint8_t *slots = t->data + c->off + sizeof(*r);
	uint64_t mask, i, index, seq;

	if (c->len < sizeof(*r) || r->slot_size < record || r->slot_size % 8)
		return;
	if (r->n_slots == 0 || (r->n_slots & (r->n_slots - 1)))
		return;
	mask = r->n_slots - 1;
	for (i = 0; i < r->n_slots && (i + 1) * r->slot_size <= c->len - sizeof(*r); i++) {
		if (r->head <= i)
			break;
		index = i + ((r->head - 1 - i) & ~mask);
		memcpy(&seq, slots + i * r->slot_size, sizeof(seq));
		if (seq == index + 1)
			list_add(out, slots + i * r->slot_size);
	}
}

static void add_rings(struct trace *t, uint32_t kind, size_t record, struct list *out)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind)
			add_ring(t, &t->chunk[i], record, out);
}

static int by_launch(const void *a, const void *b)
{
	const struct cw_launch *x = *(const struct cw_launch *const *)a;
	const struct cw_launch *y = *(const struct cw_launch *const *)b;
	int c = order_of(x->ticks, y->ticks);

	c = c ? c : order_of(x->tid, y->tid);
	c = c ? c : order_of(x->seq, y->seq);
	return c ? c : order_of((uintptr_t)x, (uintptr_t)y);
}

static int by_call(const void *a, const void *b)
{
	const struct cw_call *x = *(const struct cw_call *const *)a;
	const struct cw_call *y = *(const struct cw_call *const *)b;
	int c = order_of(x->ticks, y->ticks);

	c = c ? c : order_of(x->tid, y->tid);
	c = c ? c : order_of(x->seq, y->seq);
	return c ? c : order_of((uintptr_t)x, (uintptr_t)y);
}

/* A captured launch is in its thread's ring and, for longer, among the graphs. */
static bool same_launch(const void *a, const void *b)
{
	const struct cw_launch *x = a, *y = b;

	return x->ticks == y->ticks && x->tid == y->tid && x->func == y->func &&
	       x->stream == y->stream && (x->flags & y->flags & CW_LAUNCH_CAPTURED);
}

size_t trace_launches(struct trace *t, const struct cw_launch *const **list)
{
	if (!t->launches.built) {
		add_rings(t, CW_CHUNK_LAUNCHES, sizeof(struct cw_launch), &t->launches);
		add_rings(t, CW_CHUNK_GRAPHS, sizeof(struct cw_launch), &t->launches);
		list_sort(&t->launches, by_launch);
		squeeze(&t->launches, same_launch);
		t->launches.built = true;
	}
	*list = (const struct cw_launch *const *)t->launches.item;
	return t->launches.n;
}

size_t trace_calls(struct trace *t, const struct cw_call *const **list)
{
	if (!t->calls.built) {
		add_rings(t, CW_CHUNK_CALLS, sizeof(struct cw_call), &t->calls);
		list_sort(&t->calls, by_call);
		t->calls.built = true;
	}
	*list = (const struct cw_call *const *)t->calls.item;
	return t->calls.n;
}

static int block_by_address(const void *a, const void *b)
{
	const struct cw_allocation *x = *(const struct cw_allocation *const *)a;
	const struct cw_allocation *y = *(const struct cw_allocation *const *)b;
	int c = order_of(x->addr, y->addr);

	return c ? c : order_of(y->ticks, x->ticks);	/* the newest first: it is kept */
}

static bool same_address(const void *a, const void *b)
{
	return ((const struct cw_allocation *)a)->addr == ((const struct cw_allocation *)b)->addr;
}

static void add_allocations(struct trace *t, const struct chunk *c, struct list *out)
{
	const struct cw_allocation *a = (const struct cw_allocation *)(t->data + c->off);
	size_t i, n = c->len / sizeof(*a);

	for (i = 0; i < n; i++)
		if (a[i].addr && a[i].size && range_is_possible(t, a[i].addr, a[i].size, a[i].kind, a[i].device))
			list_add(out, &a[i]);
}

/* Live blocks do not overlap, unless some that were freed since were missed. */
static void drop_overlapping(struct trace *t, struct list *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		const struct cw_allocation *a = l->item[i], *next = i + 1 < l->n ? l->item[i + 1] : NULL;

		if (trace_possible(t, !next || next->addr - a->addr >= a->size))
			l->item[n++] = a;
	}
	l->n = n;
}

static void read_live(struct trace *t, uint32_t kind, struct list *out)
{
	size_t i;

	if (out->built)
		return;
	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind)
			add_allocations(t, &t->chunk[i], out);
	list_sort(out, block_by_address);
	squeeze(out, same_address);
	if (kind == CW_CHUNK_BLOCKS && !t->header.lost_blocks && !t->header.blocks_inexact_since_ns)
		drop_overlapping(t, out);
	out->built = true;
}

size_t trace_allocations(struct trace *t, const struct cw_allocation *const **list)
{
	read_live(t, CW_CHUNK_ALLOCATIONS, &t->allocations);
	*list = (const struct cw_allocation *const *)t->allocations.item;
	return t->allocations.n;
}

size_t trace_blocks(struct trace *t, const struct cw_allocation *const **list)
{
	read_live(t, CW_CHUNK_BLOCKS, &t->blocks);
	*list = (const struct cw_allocation *const *)t->blocks.item;
	return t->blocks.n;
}

static int freed_by_time(const void *a, const void *b)
{
	const struct cw_freed *x = *(const struct cw_freed *const *)a;
	const struct cw_freed *y = *(const struct cw_freed *const *)b;
	int c = order_of(x->ticks, y->ticks);

	return c ? c : order_of(x->seq, y->seq);
}

static void drop_empty(struct trace *t, struct list *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		const struct cw_freed *f = l->item[i];

		if (f->addr && f->size && range_is_possible(t, f->addr, f->size, f->kind, f->device))
			l->item[n++] = f;
	}
	l->n = n;
}

size_t trace_freed(struct trace *t, const struct cw_freed *const **list)
{
	if (!t->freed.built) {
		add_rings(t, CW_CHUNK_FREED, offsetof(struct cw_freed, turn), &t->freed);
		list_sort(&t->freed, freed_by_time);
		drop_empty(t, &t->freed);
		t->freed.built = true;
	}
	*list = (const struct cw_freed *const *)t->freed.item;
	return t->freed.n;
}

const void *trace_chunk(const struct trace *t, enum cw_chunk_kind kind, size_t *len)
{
	const struct chunk *c = first_chunk(t, kind);

	*len = c ? c->len : 0;
	return c ? t->data + c->off : NULL;
}

const void *trace_chunk_at(const struct trace *t, enum cw_chunk_kind kind, uint64_t off, size_t *len)
{
	for (size_t i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind && t->chunk[i].off == off) {
			*len = t->chunk[i].len;
			return t->data + off;
		}
	*len = 0;
	return NULL;
}

const void *trace_nth_chunk(const struct trace *t, enum cw_chunk_kind kind, size_t i, size_t *len)
{
	for (size_t k = 0; k < t->n_chunks; k++)
		if (t->chunk[k].kind == kind && i-- == 0) {
			*len = t->chunk[k].len;
			return t->data + t->chunk[k].off;
		}
	*len = 0;
	return NULL;
}

const struct cw_ring *trace_ring(const struct trace *t, enum cw_chunk_kind kind, uint32_t slot_size, size_t i)
{
	for (size_t k = 0; k < t->n_chunks; k++) {
		const struct cw_ring *r = (const struct cw_ring *)(t->data + t->chunk[k].off);

		if (t->chunk[k].kind != kind || t->chunk[k].len < sizeof(*r) || r->slot_size != slot_size || !r->n_slots ||
		    (r->n_slots & (r->n_slots - 1)) || r->n_slots > (t->chunk[k].len - sizeof(*r)) / slot_size)
			continue;
		if (i-- == 0)
			return r;
	}
	return NULL;
}

const void *trace_in_chunk(const struct trace *t, enum cw_chunk_kind kind, uint32_t off, size_t len)
{
	for (size_t i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind && off >= t->chunk[i].off && t->chunk[i].len >= len &&
		    off - t->chunk[i].off <= t->chunk[i].len - len)
			return t->data + off;
	return NULL;
}

size_t trace_ranges(const struct trace *t, const struct cw_range **list)
{
	const struct chunk *c = first_chunk(t, CW_CHUNK_RANGES);
	size_t i, n = c ? c->len / sizeof(**list) : 0;

	*list = c ? (const struct cw_range *)(t->data + c->off) : NULL;
	for (i = 0; i < n; i++)
		if ((*list)[i].end <= (*list)[i].start)	/* the rest of the chunk is empty */
			return i;
	return n;
}

/* Everything up to the process id has to be there; the rest can be unknown. */
#define HEADER_LEAST offsetof(struct cw_header, start_realtime_ns)

static void tidy(struct cw_header *h)
{
	size_t i;

	END_TEXT(h->visible_devices_at_init);
	END_TEXT(h->visible_devices_now);
	END_TEXT(h->alloc_conf);
	END_TEXT(h->exe);
	END_TEXT(h->cmdline);
	END_TEXT(h->cwd);
	END_TEXT(h->torch_path);
	END_TEXT(h->libcuda_path);
	END_TEXT(h->dump_path);
	END_TEXT(h->pipe_path);
	END_TEXT(h->memory_trace_path);
	if (h->n_reads > CW_READS)
		h->n_reads = CW_READS;
	if (h->hang.n > CW_HANG_THREADS)
		h->hang.n = CW_HANG_THREADS;
	for (i = 0; i < CW_MAX_DEVICES; i++)
		END_TEXT(h->device[i].name);
	if (h->device_count != CW_UNKNOWN && h->device_count > CW_MAX_DEVICES)
		h->device_count = CW_MAX_DEVICES;
	if (h->n_chunks > CW_MAX_CHUNKS)
		h->n_chunks = CW_MAX_CHUNKS;
}

static int trace_read_header(struct trace *t, struct err *e)
{
	struct cw_header *h = &t->header;
	uint16_t major;
	uint32_t size;
	size_t i;

	if (t->len < sizeof(h->magic) || memcmp(t->data, CW_MAGIC, sizeof(h->magic)) != 0)
		return err_set(e, -EINVAL, "not a cuwhy recording");
	if (t->len < HEADER_LEAST)
		return err_set(e, -EINVAL, "the recording is cut short: only %zu bytes", t->len);
	memcpy(&major, t->data + offsetof(struct cw_header, major), sizeof(major));
	if (major != CW_MAJOR) {
		err_set(e, -EPROTO, "the recording has format %u, this cuwhy reads format %u",
			major, CW_MAJOR);
		return err_hint(e, "read it with the version of cuwhy that recorded it");
	}
	memcpy(&size, t->data + offsetof(struct cw_header, header_size), sizeof(size));
	if (size < HEADER_LEAST)
		return err_set(e, -EINVAL, "the recording's header is damaged");
	if (size > sizeof(*h))
		size = sizeof(*h);
	memset(h, 0, sizeof(*h));
	h->rank = h->local_rank = h->world_size = CW_UNKNOWN;
	h->init_result = h->device_count = CW_UNKNOWN;
	for (i = 0; i < CW_MAX_DEVICES; i++)
		memset(h->device[i].attr, 0xff, sizeof(h->device[i].attr));
	memcpy(h, t->data, size < t->len ? size : t->len);
	tidy(h);
	return 0;
}

static void check_header(struct trace *t)
{
	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		struct cw_memory_now *m = &t->header.memory[d];
		uint64_t card;

		if (!trace_possible(t, t->header.device[d].total_bytes <= CARD_MAX))
			t->header.device[d].total_bytes = 0;
		/* each figure alone: a process that was killed between two stores may have a total above its peak */
		card = trace_card(t, d);
		if (!trace_possible(t, m->allocated <= card && m->reserved <= card && m->peak_allocated <= card &&
					       m->peak_reserved <= card && m->driver <= CARD_MAX &&
					       m->driver_peak <= CARD_MAX))
			*m = (struct cw_memory_now){.n_oom = m->n_oom};
	}
}

/* A program that asks about itself: what `cuwhy run` would write at its end. */
static void name_torch_of_parent(struct cw_header *h)
{
	if (!h->torch_version[0] && h->pid == (uint32_t)getppid() &&
	    memchr(h->torch_path, '\0', sizeof(h->torch_path)))
		torch_value(h->torch_path, TORCH_VERSION_KEY, h->torch_version, sizeof(h->torch_version));
}

static bool overlaps(const struct trace *t, size_t off, size_t len)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		if (off < t->chunk[i].off + t->chunk[i].len && t->chunk[i].off < off + len)
			return true;
	return false;
}

static void trace_read_chunks(struct trace *t)
{
	const struct cw_chunk *c;
	size_t len;
	uint32_t i;

	for (i = 0; i < t->header.n_chunks; i++) {
		c = &t->header.chunk[i];
		if (c->kind == 0)
			continue;
		if (c->off >= t->len || c->len > t->len - c->off)
			t->damage.failures_cut |= c->kind == CW_CHUNK_FAILURES && t->header.n_failures;
		if (c->off >= t->len)
			continue;
		/* A recording never puts a chunk into the header. Eight: what its records need. */
		if (!trace_possible(t, c->off % 8 == 0 && c->off >= HEADER_LEAST))
			continue;
		len = c->len < t->len - c->off ? c->len : t->len - c->off;
		if (len == 0 || !trace_possible(t, !overlaps(t, c->off, len)))
			continue;
		t->chunk[t->n_chunks++] = (struct chunk){c->kind, c->off, len};
	}
}

#define FILE_MAX ((size_t)1 << 30)	/* recordings are bounded at 64 MiB by default */

#define SOURCES_MAX ((size_t)4 << 20)
#define LAYOUT_MAX 4096			/* parameters of one kernel; CUDA allows 32 KiB of them */

/* `len` bytes at `off`, aligned to `align`; NULL when they are not all there. */
static const void *slice(const struct trace *t, size_t off, size_t len, size_t align)
{
	if (off == 0 || off % align || off > t->len || len > t->len - off)
		return NULL;
	return t->data + off;
}

struct trace *trace_from_bytes(void *bytes, size_t len, struct err *e)
{
	struct trace *t = xcalloc(1, sizeof(*t));

	t->data = bytes;	/* ownership moves here */
	t->len = len;
	t->sources = xcalloc(1, sizeof(*t->sources));
	t->sources->cwd = t->header.cwd;
	if (trace_read_header(t, e) != 0) {
		trace_free(t);
		return NULL;
	}
	t->damage.whole = t->header.used;
	t->damage.missing = t->header.used > len ? t->header.used - len : 0;
	t->damage.changed = seal_is_broken(bytes, len);
	t->damage.intact = seal_holds(bytes, len);
	check_header(t);
	name_torch_of_parent(&t->header);
	trace_read_chunks(t);
	trace_read_failures(t);
	return t;
}

const struct trace_damage *trace_damage(const struct trace *t)
{
	return &t->damage;
}

bool trace_is_damaged(const struct trace *t)
{
	return t->damage.missing || t->damage.changed || t->damage.impossible;
}

/* calloc makes holes free. */
static void *read_file(int fd, size_t len)
{
	uint8_t *data = xcalloc(1, len);

	fs_read_data(fd, data, len);
	return data;
}

static void read_sources(struct trace *t, const char *path)
{
	size_t len = strlen(path) - (str_ends(path, PART_SUFFIX) ? strlen(PART_SUFFIX) : 0);
	char *beside = xasprintf("%.*s" SOURCES_SUFFIX, (int)len, path);
	json_t *o = json_read(beside, SOURCES_MAX, NULL);

	t->sources->foreign = true;
	t->sources->kept = json_incref(json_object_get(o, "files"));
	json_decref(o);
	free(beside);
}

struct trace *trace_open(const char *path, struct err *e)
{
	struct err inner = {0};
	struct trace *t;
	uint64_t len = 0;
	int fd = fs_open_foreign(path, FILE_MAX, &len);

	if (fd == -EFBIG || fd == -EINVAL || fd == -EISDIR)
		err_set(e, fd, "'%s': not a cuwhy recording: %s", path,
			fd == -EFBIG ? "larger than 1 GiB" : fs_reason(fd));
	else if (fd < 0)
		err_set(e, fd, "cannot open '%s': %s", path, fs_reason(fd));
	if (fd < 0)
		return NULL;
	t = trace_from_bytes(read_file(fd, (size_t)len), (size_t)len, &inner);
	close(fd);
	if (t)
		read_sources(t, path);
	if (!t) {
		err_set(e, inner.code, "'%s': %s", path, inner.msg);
		err_hint(e, "%s", inner.hint);
	}
	return t;
}

void trace_free(struct trace *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->n_names; i++)
		free(t->names[i]);
	free(t->names);
	free(t->failures.item);
	free(t->launches.item);
	free(t->calls.item);
	free(t->allocations.item);
	free(t->blocks.item);
	free(t->freed.item);
	run_memory_free(t->run_memory);
	free(t->failure);
	free(t->data);
	source_book_release(t->sources);
	free(t->sources);
	free(t);
}

struct source_book *trace_sources(const struct trace *t)
{
	return t->sources;
}

struct run_memory **trace_run_memory(struct trace *t)
{
	return &t->run_memory;
}

const struct cw_header *trace_header(const struct trace *t)
{
	return &t->header;
}

const char *trace_string(const struct trace *t, uint32_t off)
{
	const struct cw_string *s = slice(t, off, sizeof(*s), 4);
	const char *text;

	if (!s || s->len >= t->len)
		return "";
	text = slice(t, off + sizeof(*s), (size_t)s->len + 1, 1);
	/* The NUL may be missing when the writer was killed halfway. */
	return text && text[s->len] == '\0' ? text : "";
}

const char *trace_failure_text(const struct trace *t, const struct cw_failure *f)
{
	const char *whole = f->whole_text ? trace_string(t, f->whole_text) : "";

	return whole[0] ? whole : f->text;
}

const struct cw_stack *trace_stack(const struct trace *t, uint32_t off)
{
	const struct cw_stack *s = slice(t, off, sizeof(*s), 4);

	if (!s || s->n == 0 || s->n > CW_MAX_FRAMES)
		return NULL;
	return slice(t, off, sizeof(*s) + s->n * sizeof(s->frame[0]), 4);
}

const struct cw_function *trace_function(const struct trace *t, uint32_t index)
{
	const struct cw_function *f;
	size_t i, n, first = 0;

	for (i = 0; index && i < t->n_chunks; i++) {
		if (t->chunk[i].kind != CW_CHUNK_FUNCTIONS)
			continue;
		n = t->chunk[i].len / sizeof(*f);
		if (index - first < n) {
			f = (const struct cw_function *)(t->data + t->chunk[i].off);
			f += index - first;
			return f->handle || f->name ? f : NULL;
		}
		first += n;
	}
	return NULL;
}

const struct cw_layout *trace_layout(const struct trace *t, const struct cw_function *f)
{
	const struct cw_layout *l = f ? slice(t, f->layout, sizeof(*l), 4) : NULL;

	if (!l || l->n > LAYOUT_MAX)
		return NULL;
	return slice(t, f->layout, sizeof(*l) + l->n * sizeof(l->param[0]), 4);
}

const char *trace_function_name(struct trace *t, uint32_t index)
{
	const struct cw_function *f = trace_function(t, index);
	const char *mangled = f ? trace_string(t, f->name) : "";
	size_t old = t->n_names;

	if (!*mangled)
		return "";
	if (index >= t->n_names) {
		t->n_names = (size_t)index + 64;
		t->names = xrealloc(t->names, t->n_names, sizeof(*t->names));
		memset(t->names + old, 0, (t->n_names - old) * sizeof(*t->names));
	}
	if (!t->names[index]) {
		t->names[index] = demangle(mangled);
		if (!t->names[index])
			t->names[index] = xstrdup(mangled);
	}
	return t->names[index];
}

size_t trace_failures(const struct trace *t, const struct cw_failure *const **list)
{
	*list = (const struct cw_failure *const *)t->failures.item;
	return t->failures.n;
}

static long double ns_per_tick(const struct trace *t)
{
	const struct cw_clock *a = &t->header.clock0, *b = &t->header.clock1;

	if (b->ticks > a->ticks && b->mono_ns > a->mono_ns)
		return (long double)(b->mono_ns - a->mono_ns) / (b->ticks - a->ticks);
	return 1.0L;
}

uint64_t trace_ns(const struct trace *t, uint64_t ticks)
{
	uint64_t start = t->header.clock0.ticks;
	long double ns = ticks <= start ? 0 : (ticks - start) * ns_per_tick(t);

	return ns < 9.2e18L ? (uint64_t)ns : UINT64_MAX;
}

uint64_t trace_ticks(const struct trace *t, uint64_t ns)
{
	long double ticks = t->header.clock0.ticks + ns / ns_per_tick(t);

	return ticks < 9.2e18L ? (uint64_t)ticks : UINT64_MAX;
}
