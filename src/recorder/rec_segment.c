/* SPDX-License-Identifier: Apache-2.0
 * The memory of the recording: segments, chunks, the heap, and the tables that find things again.
 *
 * A segment is a memfd, reserved in full (fallocate) before it is mapped, because touching a page for which there is no memory
 * would be a SIGBUS in the user's program. Its size is sealed, so that no process can take that memory away again. It is handed
 * to `cuwhy run` at once and closed here: no file descriptor stays open that the program could close or reuse.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "rec.h"
#include "rec_segment.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u	/* Linux 6.3 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23	/* Linux 5.14 */
#endif
#define HEAP_STEP	(1u << 20)
#define LAYOUT_STEP	(64u << 10)
#define INTERRUPTED_MAX	100
#define LARGE_PAGE	((size_t)2 << 20)
#define WAKE_NS		1000000000u
#define PAGE		4096u
#define PAGES_AHEAD	8u

struct spin intern_lock, fail_lock, graph_lock;
LOCK_LISTED(intern, intern_lock);
LOCK_LISTED(fail, fail_lock);
LOCK_LISTED(graph, graph_lock);

HOT_DATA static struct {
	_Atomic uint64_t reserved_to;	/* end of the mapped part */
	struct heap { uint32_t at, end; } heap, layouts;
	char *side, *side_end;
	struct slot *stacks, *strings;	/* hash tables */
	_Atomic uint64_t promised_bytes;	/* left for chunks that may be needed later */
	_Atomic uint32_t promised_chunks;
	_Atomic uint64_t woke_ns;	/* when we last told `cuwhy run` that memory ran out; 0 = never */
} segments;

/* A program with a profiling timer interrupts whatever takes long. All signals are blocked while a segment is made, but a
 * debugger or a freezer interrupts all the same. */
#define AGAIN(call)                                                                     \
	__extension__({                                                                 \
		long result_;                                                           \
		int tries_ = 0;                                                         \
\
		do                                                                      \
			result_ = (call);                                               \
		while (result_ < 0 && errno == EINTR && ++tries_ < INTERRUPTED_MAX);    \
		result_;                                                                \
	})

/* Its queue was full for as long as we waited. Once is enough: not every new thread waits again. */
static atomic_bool unanswered;

/* Connects to a socket of our own user; -1 if there is none. */
static int dial_name(const struct sockaddr_un *to, socklen_t len, int flags)
{
	const struct timeval patience = {.tv_usec = 100000};	/* a stopped `cuwhy run` must not stop us */
	struct ucred who;
	socklen_t size = sizeof(who);
	int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags | (unanswered ? SOCK_NONBLOCK : 0), 0);
	bool connected;

	if (s < 0)
		return -1;
	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	connected = AGAIN(connect(s, (const struct sockaddr *)to, len)) == 0;
	if (!connected && errno == EAGAIN)
		unanswered = true;
	/* Once `cuwhy run` is gone, another user may listen under its name: a process that gets our memory can write to it. */
	if (connected && getsockopt(s, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid())
		return s;
	close(s);
	return -1;
}

/* A socket to `cuwhy run`, -1 if there is none. */
static int dial(int flags)
{
	const char *path = rec_getenv("CUWHY_SOCK");
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = path ? strlen(path) : sizeof(to.sun_path);
	int s;

	if (n >= sizeof(to.sun_path))
		return -1;
	memcpy(to.sun_path, path, n + 1);
	s = dial_name(&to, sizeof(to), flags);
	if (s >= 0)
		return s;
	/* The file may be gone while `cuwhy run` is not: it also listens on an abstract name, a NUL and then the path. */
	to.sun_path[0] = '\0';
	memcpy(to.sun_path + 1, path, n);
	return dial_name(&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n), flags);
}

/* One message without a memfd. `allow` is told, before, who will get it; or NULL. */
static bool send_word(uint32_t magic, void (*allow)(pid_t reader))
{
	struct cw_hello word = {.magic = magic, .pid = rec.pid, .start_mono_ns = rec_start_ns};
	struct signals signals = signals_block();	/* as in segment_at */
	int saved = errno, s = sandbox_is_new() ? -1 : dial(SOCK_NONBLOCK);
	struct ucred who;
	socklen_t size = sizeof(who);
	bool sent = false;

	if (s >= 0) {
		if (allow && getsockopt(s, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
			allow(who.pid);
		sent = send(s, &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(word);
		close(s);
	}
	signals_unblock(&signals);
	errno = saved;
	return sent;
}

void probe_wake(void)
{
	uint64_t now = rec_mono_ns(), last = atomic_load_explicit(&segments.woke_ns, memory_order_relaxed);

	/* a program that keeps retrying causes one query a second, and the last one is recent enough */
	if ((!last || now - last >= WAKE_NS) && atomic_compare_exchange_strong(&segments.woke_ns, &last, now))
		send_word(CW_WAKE_MAGIC, NULL);
}

bool holders_wake(void (*allow)(pid_t reader))
{
	return send_word(CW_HOLDERS_MAGIC, allow);
}

static bool hand_over(int fd, uint32_t off, uint32_t len)
{
	struct cw_hello hello = {
		.magic = CW_HELLO_MAGIC, .pid = rec.pid, .off = off, .len = len, .start_mono_ns = rec_start_ns};
	union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec iov = {.iov_base = &hello, .iov_len = sizeof(hello)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	bool sent = false;
	int s;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	s = dial(0);
	if (s < 0)
		return false;
	sent = AGAIN(sendmsg(s, &msg, MSG_NOSIGNAL)) == (ssize_t)sizeof(hello);
	close(s);
	return sent;
}

/* Some systems only allow memfds that can never be executed; older kernels do not know the flag. */
static int new_memfd(void)
{
	int fd = memfd_create("cuwhy", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create("cuwhy", MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

/* Maps a new segment at `where` (inside our reserved range). */
static bool segment_make(char *where, uint32_t off, uint32_t len)
{
	int fd = new_memfd();
	bool ok = false;

	if (fd < 0)
		return false;
	/* ftruncate alone would leave holes. The program's own RLIMIT_FSIZE may forbid either, and SIGXFSZ would kill it,
	 * so check first. Not populated: most of the tables stay empty, and clearing them costs a short process more than all
	 * the rest of its recording (8 MiB: 5 ms). */
	if (rec_fsize_allows(len) && AGAIN(ftruncate(fd, len)) == 0 && AGAIN(fallocate(fd, 0, 0, len)) == 0 &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
		ok = mmap(where, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
	if (ok && !hand_over(fd, off, len)) {
		/* nothing receives it: make the range reserved but empty again */
		mmap(where, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		ok = false;
	}
	close(fd);
	return ok;
}

/* A signal handler that jumped out in the middle would leave a descriptor open in the program. */
static bool segment_at(char *where, uint32_t off, uint32_t len)
{
	struct signals signals;
	bool ok;

	signals = signals_block();
	ok = !sandbox_is_new() && segment_make(where, off, len);
	signals_unblock(&signals);
	return ok;
}

bool segments_start(uint64_t cap, uint32_t first)
{
	char *base = mmap(NULL, cap, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return false;
	rec.base = base;
	if (!segment_at(base, 0, first)) {
		munmap(base, cap);
		rec.base = NULL;
		return false;
	}
	memset(&segments, 0, sizeof(segments));
	atomic_store(&segments.reserved_to, first);
	rec.h = (struct cw_header *)base;
	rec.h->cap = cap;
	rec.h->used = (sizeof(struct cw_header) + 4095) & ~4095ull;
	return true;
}

/* Bytes for a chunk: from the rest of the first segment, else from a new segment behind it, up to `limit`. */
static uint32_t segment_take(uint32_t len, uint64_t limit)
{
	uint64_t first = atomic_load(&segments.reserved_to), used = shared_get(&rec.h->used), off;

	do {
		off = used < first && used + len > first ? first : used;
		if (off + len > limit)
			return 0;
	} while (!__atomic_compare_exchange_n(&rec.h->used, &used, off + len, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	if (off < first)
		return (uint32_t)off;
	return segment_at(rec.base + off, (uint32_t)off, len) ? (uint32_t)off : 0;
}

static uint32_t whole_pages(uint32_t len)
{
	return (len + 4095) & ~4095u;
}

/* `chunks` and `bytes` are left free. */
static void *chunk_make(enum cw_chunk_kind kind, uint32_t len, uint32_t tid, uint32_t chunks, uint64_t bytes)
{
	uint32_t off, i;

	len = whole_pages(len);
	off = shared_get(&rec.h->n_chunks) < CW_MAX_CHUNKS - chunks ? segment_take(len, rec.h->cap - bytes) : 0;
	if (!off)
		return NULL;
	i = shared_add(&rec.h->n_chunks, 1);
	if (i >= CW_MAX_CHUNKS)
		return NULL;
	rec.h->chunk[i].off = off;
	rec.h->chunk[i].len = len;
	rec.h->chunk[i].tid = tid;
	shared_set(&rec.h->chunk[i].kind, kind);
	return at(off);
}

void *chunk_new(enum cw_chunk_kind kind, uint32_t len, uint32_t tid)
{
	return chunk_make(kind, len, tid, atomic_load(&segments.promised_chunks), atomic_load(&segments.promised_bytes));
}

void chunk_promise(uint32_t len)
{
	atomic_fetch_add(&segments.promised_chunks, 1);
	atomic_fetch_add(&segments.promised_bytes, whole_pages(len));
}

void *chunk_promised(enum cw_chunk_kind kind, uint32_t len)
{
	void *chunk = chunk_make(kind, len, 0, 0, 0);

	atomic_fetch_sub(&segments.promised_chunks, 1);
	atomic_fetch_sub(&segments.promised_bytes, whole_pages(len));
	return chunk;
}

void chunk_rename(const void *chunk, enum cw_chunk_kind kind)
{
	uint32_t n = shared_get(&rec.h->n_chunks);

	/* a chunk without a kind is still being filled in by another thread */
	for (uint32_t i = 0; i < n && i < CW_MAX_CHUNKS; i++)
		if (shared_get(&rec.h->chunk[i].kind) && rec.h->chunk[i].off == off_of(chunk))
			shared_set(&rec.h->chunk[i].kind, kind);
}

struct cw_ring *ring_new_with(enum cw_chunk_kind kind, uint32_t slot_size, uint32_t n_slots, uint32_t more)
{
	struct cw_ring *r = chunk_new(kind, sizeof(*r) + slot_size * n_slots + more, rec_self ? rec_self->tid : 0);

	if (r) {
		r->slot_size = slot_size;
		r->n_slots = n_slots;
		r->tid = rec_self ? rec_self->tid : 0;
	}
	return r;
}

struct cw_ring *ring_new(enum cw_chunk_kind kind, uint32_t slot_size, uint32_t n_slots)
{
	return ring_new_with(kind, slot_size, n_slots, 0);
}

void chunk_warm(const void *p, size_t len)
{
	static atomic_bool cannot;	/* an old kernel */
	int saved = errno;

	if (!atomic_load_explicit(&cannot, memory_order_relaxed) && !sandbox_is_new() &&
	    madvise((void *)p, len, MADV_POPULATE_WRITE) < 0 && errno == EINVAL)
		atomic_store(&cannot, true);
	errno = saved;
}

void chunk_warm_ahead(const void *chunk, size_t off, size_t len)
{
	size_t page = off / PAGE, from = (page * PAGES_AHEAD + 2 - PAGES_AHEAD) * PAGE;	/* behind page 1: page 2, and so on */
	size_t most = PAGES_AHEAD * PAGE;

	if (page && from < len)
		chunk_warm((const char *)chunk + from, len - from < most ? len - from : most);
}

static uint32_t heap_take(struct heap *h, uint32_t len, uint32_t step)
{
	uint32_t off;
	char *more;

	len = (len + 7) & ~7u;
	if (h->at + len > h->end) {
		step = len > step ? len : step;
		more = chunk_new(CW_CHUNK_HEAP, step, 0);
		if (!more)
			return 0;
		h->at = off_of(more);
		h->end = h->at + step;
	}
	off = h->at;
	h->at += len;
	return off;
}

uint32_t heap_alloc(uint32_t len)
{
	return heap_take(&segments.heap, len, HEAP_STEP);
}

/* Every launch reads one, so they are kept side by side. */
uint32_t heap_alloc_layout(uint32_t len)
{
	return heap_take(&segments.layouts, len, LAYOUT_STEP);
}

void *large_new(size_t len)
{
	size_t whole = (len + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1), before;
	char *p = mmap(NULL, whole + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	before = -(uintptr_t)p & (LARGE_PAGE - 1);
	if (before)
		munmap(p, before);
	p += before;
	munmap(p + whole, LARGE_PAGE - before);
	madvise(p, LARGE_PAGE, MADV_HUGEPAGE);
	return p;
}

void large_free(void *p, size_t len)
{
	munmap(p, (len + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1));
}

/* A forked child starts over and does not need it; sharing would split the huge page into small ones. */
static void side_start(void)
{
	segments.side = large_new(LARGE_PAGE);
	segments.side_end = segments.side ? segments.side + LARGE_PAGE : NULL;
	if (segments.side)
		madvise(segments.side, LARGE_PAGE, MADV_DONTFORK);
}

void *side_new(uint32_t len)
{
	void *p = segments.side;

	if ((size_t)(segments.side_end - segments.side) < len)
		return NULL;
	segments.side += len;
	return p;
}

bool tables_start(void)
{
	side_start();
	segments.stacks = side_new(STACK_SLOTS * sizeof(struct slot));
	segments.strings = chunk_new(CW_CHUNK_STRING_INDEX, STRING_SLOTS * sizeof(struct slot), 0);
	return segments.stacks && segments.strings;
}

bool table_put(struct slot *table, uint32_t slots, uint64_t key, uint32_t value)
{
	for (uint32_t i = (uint32_t)(key >> 20) & (slots - 1), n = 0; n < TABLE_PROBES; n++, i = (i + 1) & (slots - 1)) {
		uint64_t k = atomic_load_explicit(&table[i].key, memory_order_relaxed);

		if (k && k != key)
			continue;
		shared_set(&table[i].value, value);
		atomic_store_explicit(&table[i].key, key, memory_order_release);
		return true;
	}
	return false;
}

static uint64_t hash_bytes(const char *p, size_t len)
{
	uint64_t h = 0x9e3779b97f4a7c15ull ^ len;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)p[i]) * 0x100000001b3ull;
	h ^= h >> 29;
	return h | 1;
}

uint32_t intern_string(const char *text, size_t len)
{
	uint64_t key = hash_bytes(text, len);
	uint32_t off = table_get(segments.strings, STRING_SLOTS, key);
	struct cw_string *s;

	if (off)
		return off;
	if (!spin_try(&intern_lock))
		goto lost;
	off = table_get(segments.strings, STRING_SLOTS, key);
	if (!off) {
		off = heap_alloc(sizeof(*s) + (uint32_t)len + 1);
		if (off) {
			s = at(off);
			memcpy(s->text, text, len);
			s->len = (uint32_t)len;
			table_put(segments.strings, STRING_SLOTS, key, off);
		}
	}
	spin_done(&intern_lock);
	if (off)
		return off;
lost:
	shared_add(&rec.h->lost_strings, 1);
	return 0;
}

HOT uint32_t stack_lookup(uint64_t hash)
{
	return table_get(segments.stacks, STACK_SLOTS, hash);
}

uint32_t stack_intern(uint64_t hash, const struct cw_frame *frames, uint32_t n, uint32_t flags)
{
	struct cw_stack *s;
	uint32_t off = 0;

	if (spin_try(&intern_lock)) {
		off = table_get(segments.stacks, STACK_SLOTS, hash);
		if (!off && (off = heap_alloc(sizeof(*s) + n * sizeof(*frames)))) {
			s = at(off);
			memcpy(s->frame, frames, n * sizeof(*frames));
			s->flags = flags;
			s->n = n;
			if (!table_put(segments.stacks, STACK_SLOTS, hash, off))
				off = 0;
		}
		spin_done(&intern_lock);
	}
	if (!off)
		shared_add(&rec.h->lost_stacks, 1);
	return off;
}
