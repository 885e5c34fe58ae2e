/* SPDX-License-Identifier: Apache-2.0
 * Identifies a code object with one number, by its contents (file, name, first line, line table), not by its address.
 *
 * Addresses of code objects, strings and tables are reused, so an address says nothing unless we know that nothing was
 * destroyed since. CPython tells us: since 3.12 a watcher is called for every code object that is destroyed, and
 * before that they all pass through the type's destructor. So numbers can be cached by address, each until its code
 * object is destroyed, and a thread need not look at code objects at all while none is.
 */
#include <string.h>

#include "rec_python.h"

#define KEPT		4096u		/* numbers kept by address */
#define STRING_MAX	4096u		/* bytes of a name that are compared */
#define EVENT_CREATE	0		/* PyCodeEvent */

HOT_DATA struct code_watch code_watch;		/* survives fork, like the hook */

/* A pair is read and written without a lock: `check` detects a torn one. */
static struct { _Atomic uint64_t id, check, loops; } kept[KEPT];

static inline uint64_t code_key(const void *code)
{
	return (uintptr_t)code * 0x9e3779b97f4a7c15ull | 1;
}

static inline uint32_t place_of(uint64_t key)
{
	return (uint32_t)(key >> 40) & (KEPT - 1);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

static uint64_t mix_bytes(uint64_t h, const char *p, size_t n)
{
	uint64_t v;

	h = mix(h, n);
	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&v, p, 8);
		h = mix(h, v);
	}
	v = 0;
	memcpy(&v, p, n);
	return mix(h, v);
}

static uint64_t mix_string(uint64_t h, const char *s)
{
	uint32_t state, kind;
	int64_t len;

	if (!s || *(const void *const *)(s + PY_TYPE) != py.f.unicode_type)
		return mix(h, 1);
	memcpy(&len, s + PY_STRING_LENGTH, sizeof(len));
	memcpy(&state, s + PY_STRING_STATE, sizeof(state));
	kind = (state >> 2) & 7;
	if (!(state & 32) || len < 0)
		return mix(h, 2);
	len = len * kind < STRING_MAX ? len * kind : STRING_MAX;
	return mix_bytes(mix(h, state), s + (state & 64 ? py.l.ascii_data : py.l.compact_data), (size_t)len);
}

/* The parts of a code object that map an instruction to a line. */
struct parts {
	const char *file, *name, *table;
	int64_t size, hash;		/* of the table: its length, and its hash if Python has computed it */
	int32_t first;
};

static void parts_of(const char *code, struct parts *p)
{
	memcpy(&p->file, code + py.l.filename, sizeof(p->file));
	memcpy(&p->name, code + py.l.name, sizeof(p->name));
	memcpy(&p->table, code + py.l.line_table, sizeof(p->table));
	memcpy(&p->first, code + py.l.first_line, sizeof(p->first));
	p->size = p->hash = 0;
	if (p->table) {
		memcpy(&p->size, p->table + PY_BYTES_SIZE, sizeof(p->size));
		memcpy(&p->hash, p->table + PY_BYTES_HASH, sizeof(p->hash));
	}
}

static uint64_t id_of_contents(const char *code)
{
	struct parts p;
	uint64_t h;

	parts_of(code, &p);
	h = mix_string(mix_string((uint32_t)p.first, p.file), p.name);
	if (p.table && p.size >= 0 && p.size <= (64 << 20))
		h = mix_bytes(h, p.table + PY_BYTES_DATA, (size_t)p.size);
	return mix(h, code_units(code)) | 1;
}

/* The best we can do cheaply: addresses, and what is stored beside them. */
static uint64_t id_of_addresses(const char *code)
{
	struct parts p;

	parts_of(code, &p);
	return mix(mix(mix(mix(mix(mix((uintptr_t)code, (uintptr_t)p.file), (uintptr_t)p.name), (uintptr_t)p.table),
			   (uint32_t)p.first), (uint64_t)p.size), (uint64_t)p.hash) | 1;
}

uint64_t code_id_and_loops(const char *code, bool watched, uint32_t *loops)
{
	uint64_t key = code_key(code), id, with;
	uint32_t i = place_of(key);

	if (!watched) {
		id = id_of_addresses(code);
		*loops = loops_of_code(code, id);
		return id;
	}
	id = atomic_load_explicit(&kept[i].id, memory_order_relaxed);
	with = atomic_load_explicit(&kept[i].loops, memory_order_relaxed);
	if (likely(id && (atomic_load_explicit(&kept[i].check, memory_order_relaxed) ^ id ^ with << 24) == key)) {
		*loops = (uint32_t)with;
		return id;
	}
	id = id_of_contents(code);
	*loops = loops_of_code(code, id);
	if (*loops == LOOPS_LATER)
		return id;
	atomic_store_explicit(&kept[i].check, id ^ key ^ (uint64_t)*loops << 24, memory_order_relaxed);
	atomic_store_explicit(&kept[i].loops, *loops, memory_order_relaxed);
	atomic_store_explicit(&kept[i].id, id, memory_order_relaxed);
	return id;
}

uint64_t code_id(const char *code, bool watched)
{
	uint32_t loops;

	return code_id_and_loops(code, watched, &loops);
}

/* A thread that runs other code at this address has taken the GIL since, and sees what is written here. */
static void code_goes(const void *code)
{
	uint64_t key = code_key(code);
	uint32_t i = place_of(key);

	if ((kept[i].check ^ kept[i].id ^ kept[i].loops << 24) == key)
		kept[i].id = 0;
	atomic_fetch_add_explicit(&code_watch.gone, 1, memory_order_release);
}

static int on_event(int event, void *code)
{
	if (event != EVENT_CREATE)
		code_goes(code);
	return 0;
}

static void (*real_dealloc)(void *code);

static void on_dealloc(void *code)
{
	code_goes(code);
	real_dealloc(code);
}

/* Static types are never freed or moved, and CPython reads the destructor from the type at each use. */
static bool stand_in_front(void)
{
	char *type = (char *)(uintptr_t)py.f.code_type;
	void (**dealloc)(void *) = (void (**)(void *))(void *)(type + PY_TYPE_DEALLOC);
	struct elf_object python, other;

	if (strcmp(*(const char *const *)(type + PY_TYPE_NAME), "code") != 0 ||
	    !elf_object_at(type, &python) || !elf_object_at((const void *)(uintptr_t)*dealloc, &other) ||
	    python.base != other.base)
		return false;
	real_dealloc = *dealloc;
	__atomic_store_n(dealloc, on_dealloc, __ATOMIC_RELEASE);
	return true;
}

void code_watch_start(void)
{
	bool on;

	if (code_watch.on || !py.on)
		return;
	if (py.l.minor >= 12) {
		/* a sub-interpreter's watcher goes with it, and the next one may have its address */
		on = py.f.PyCode_AddWatcher && py.f.PyInterpreterState_Get && py.f.PyInterpreterState_Main &&
		     py.f.PyInterpreterState_Get() == py.f.PyInterpreterState_Main() &&
		     py.f.PyCode_AddWatcher(on_event) >= 0;
		if (!on && py.f.PyErr_Clear)
			py.f.PyErr_Clear();
		code_watch.interpreter = on ? py.f.PyInterpreterState_Get() : NULL;
	} else {
		on = stand_in_front();
	}
	/* objects destroyed before this were not counted */
	atomic_fetch_add(&code_watch.gone, 1);
	atomic_store_explicit(&code_watch.on, on, memory_order_release);
}
