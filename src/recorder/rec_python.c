/* SPDX-License-Identifier: Apache-2.0
 * The calling thread's Python stack, without the GIL.
 *
 * Only the thread itself changes its chain of frames, and it is inside our code right now; frames keep
 * their code objects alive. So we can read the chain without a lock, if we know where CPython keeps it.
 * We verify that: the first walk reads through the kernel, which returns an error for a bad address
 * instead of raising a signal, and a hundred walks that happen to hold the GIL are compared with the stack
 * that Python itself reports. Any difference switches frames off for good. PyTorch releases the GIL around most
 * of its calls, so that a hundred may take very long: after the first thousand walks, only stacks that were not
 * there before are compared, and the others are walked in the short way.
 */
#include <stdlib.h>
#include <string.h>

#include "cuwhy/utf8.h"
#include "rec_python.h"

#define COMPARE_FIRST	100
#define COMPARE_AMONG	1000	/* walks; after that, only new stacks are compared */
#define NAME_LEN	512

struct py py;

HOT_DATA static struct {
	_Atomic int compare_left, tries_left;
	_Atomic bool walked;		/* the first, careful walk is done */
	struct kept_walk walk;
} trust;

/* What every call needs, in one place. */
HOT_DATA static struct {
	void *(*thread_state)(void);
	int (*is_finalizing)(void);
	_Atomic(enum walked (*)(const void *tstate, struct py_chain *c)) again;
	_Atomic bool on;
} hot;

/* Until the walks are trusted, every stack is walked in full. */
static enum walked never_again(const void *tstate, struct py_chain *c)
{
	(void)tstate, (void)c;
	return WALKED_NOT;
}

/* Keys of the table are never 0. */
static inline uint64_t stack_key(uint64_t hash)
{
	return (hash ^ hash >> 31) | 1;
}

/* A str object as UTF-8, truncated to `size`. */
bool python_string(const void *unicode, char *buf, size_t size)
{
	const char *u = unicode;
	uint32_t state, kind;
	int64_t len;
	size_t n = 0;

	if (!u || *(const void *const *)(u + PY_TYPE) != py.f.unicode_type)
		return false;
	memcpy(&len, u + PY_STRING_LENGTH, sizeof(len));
	memcpy(&state, u + PY_STRING_STATE, sizeof(state));
	kind = (state >> 2) & 7;
	if (!(state & 32) || len < 0)
		return false;		/* not compact: an old style that code objects never use */
	u += state & 64 ? py.l.ascii_data : py.l.compact_data;
	for (int64_t i = 0; i < len && n + 5 < size; i++) {
		uint32_t c = kind == 1	 ? ((const uint8_t *)u)[i]
			     : kind == 2 ? ((const uint16_t *)(const void *)u)[i]
					 : ((const uint32_t *)(const void *)u)[i];

		n += utf8_put(buf + n, c);
	}
	buf[n] = '\0';
	return true;
}

static uint32_t intern_py(const void *code, uint16_t field)
{
	char buf[NAME_LEN];
	const void *s;

	memcpy(&s, (const char *)code + field, sizeof(s));
	return python_string(s, buf, sizeof(buf)) ? intern_string(buf, strlen(buf)) : 0;
}

uint32_t python_code_frame(const void *code, uint32_t line, struct cw_frame *out)
{
	int32_t first;

	memcpy(&first, (const char *)code + py.l.first_line, sizeof(first));
	out->file = intern_py(code, py.l.filename);
	out->function = intern_py(code, py.l.name);	/* as in a traceback: not the qualified name */
	out->first_line = (uint32_t)first;
	out->line = line;
	return out->file;
}

static void distrust(enum cw_reason why)
{
	hot.on = py.on = false;
	rec.h->frames_off_because = why;
}

/* GIL held. Creating frame objects allocates, and a garbage collection would run the program's finalizers in
 * the middle of a driver call, so it is disabled meanwhile. */
static bool same_as_python(const struct raw_frame *raw, int n)
{
	bool paused = py.f.PyGC_Disable && py.f.PyGC_Disable() == 1, ok = true;
	void *frame = py.f.PyEval_GetFrame(), *back, *code;
	char name[NAME_LEN];
	const char *file;
	int i = 0;

	if (frame)
		py.f.Py_IncRef(frame);
	for (; frame && i < n && ok; i++) {
		code = py.f.PyFrame_GetCode(frame);
		ok = code == raw[i].code &&
		     (uint32_t)py.f.PyFrame_GetLineNumber(frame) == python_line(&py.l, code, raw[i].instr);
		if (ok) {
			void *s = *(void **)((char *)code + py.l.filename);

			file = py.f.PyUnicode_AsUTF8(s);
			ok = file && python_string(s, name, sizeof(name)) &&
			     strncmp(file, name, strlen(name)) == 0;
		}
		py.f.Py_DecRef(code);
		back = py.f.PyFrame_GetBack(frame);
		py.f.Py_DecRef(frame);
		frame = back;
	}
	ok = ok && i == n && (!frame || n == CW_MAX_FRAMES);
	if (frame)
		py.f.Py_DecRef(frame);
	if (paused)
		py.f.PyGC_Enable();
	return ok;
}

static bool may_compare(const void *tstate)
{
	return atomic_load_explicit(&trust.compare_left, memory_order_relaxed) > 0 && python_has_gil(tstate);
}

static bool agrees(const struct raw_frame *raw, int n)
{
	if (!same_as_python(raw, WALK_FRAMES(n))) {
		distrust(CW_REASON_PY_MISMATCH);
		return false;
	}
	if (atomic_fetch_sub(&trust.compare_left, 1) <= 1)
		atomic_store(&trust.tries_left, 0);
	return true;
}

/* One of the first walks. */
static __attribute__((noinline)) bool still_trusted(const void *tstate)
{
	struct raw_frame raw[CW_MAX_FRAMES];
	int n;

	if (!atomic_load(&trust.walked)) {
		n = walk_carefully(tstate, raw);
		if (n < 0) {
			distrust(CW_REASON_PY_UNREADABLE);
			return false;
		}
		if (WALK_FRAMES(n))
			atomic_store(&trust.walked, true);
	}
	atomic_fetch_sub(&trust.tries_left, 1);
	if (may_compare(tstate) && !agrees(raw, walk_all(tstate, raw)))
		return false;
	if (atomic_load(&trust.tries_left) <= 0)
		atomic_store(&hot.again, trust.walk.again);
	return true;
}

/* Walks the whole stack. `hash`: its key, 0 = not known yet. */
static __attribute__((noinline)) uint32_t whole_stack(const void *tstate, uint64_t hash)
{
	struct raw_frame raw[CW_MAX_FRAMES];
	struct cw_frame frame[CW_MAX_FRAMES];
	int n = walk_all(tstate, raw);
	uint32_t off;

	if (n <= 0)
		return 0;
	if (!hash) {
		hash = stack_key(walk_hash(raw, n, code_is_watched(tstate)));
		off = stack_lookup(hash);
		if (off)
			return off;
	}
	if (may_compare(tstate) && !agrees(raw, n))
		return 0;
	for (int i = 0; i < WALK_FRAMES(n); i++)
		python_code_frame(raw[i].code, python_line(&py.l, raw[i].code, raw[i].instr), &frame[i]);
	return stack_intern(hash, frame, (uint32_t)WALK_FRAMES(n), n & WALK_CUT ? CW_STACK_CUT : 0);
}

HOT static uint32_t kept_stack(const void *tstate, struct py_chain *c)
{
	const struct py_kept *k = &c->kept[c->n];
	uint64_t key = stack_key(k->h), instr = c->link[c->n].instr;

	if (!k->python)
		return 0;
	if (k->python > CW_MAX_FRAMES)	/* it will be cut, and the hash is of the whole stack */
		return c->off = whole_stack(tstate, 0);
	c->off = stack_lookup(key);
	if (unlikely(!c->off))
		c->off = whole_stack(tstate, key);
	if (likely(c->off && k->id))
		*chain_top(c, instr) = (struct py_top){instr, k->h, c->off, c->version};
	return c->off;
}

static __attribute__((noinline)) HOT uint32_t other_stack(const void *tstate, struct py_chain *c)
{
	if (unlikely(atomic_load_explicit(&trust.tries_left, memory_order_relaxed) > 0) && !still_trusted(tstate))
		return 0;
	switch (trust.walk.other(tstate, c, code_is_watched(tstate))) {
	case WALKED_NONE:
		return 0;
	case WALKED_KEPT:
		return kept_stack(tstate, c);
	default:
		return whole_stack(tstate, 0);
	}
}

/* While Python shuts down, any thread's state may be freed, except the main thread's: it lasts until python_ended(). */
static const void *thread_state(struct py_chain *c)
{
	const void *tstate = hot.thread_state();

	if (!tstate || hot.is_finalizing())
		return NULL;
	if (rec_self->tid == rec.pid && py.f.is_main_thread && python_end_is_told() &&
	    python_has_gil(tstate) && py.f.is_main_thread())
		c->state = tstate;
	return tstate;
}

void python_ended(void)
{
	hot.on = py.on = false;
}

static HOT uint32_t stack_anew(const void *tstate, struct py_chain *c, enum walked walked)
{
	uint32_t off = walked == WALKED_KEPT ? kept_stack(tstate, c) : other_stack(tstate, c);

	if (likely(off))
		turns_seen(c);
	else
		turns_unseen(c);
	return off;
}

HOT uint32_t stack_here(void)
{
	struct py_chain *c = &rec_self->chain;
	enum walked walked;
	const void *tstate;

	if (!atomic_load_explicit(&hot.on, memory_order_relaxed))
		return 0;
	tstate = likely(c->state) ? c->state : thread_state(c);
	if (!tstate) {
		turns_unseen(c);
		return 0;
	}
	walked = likely(c->off) ? atomic_load_explicit(&hot.again, memory_order_relaxed)(tstate, c) : WALKED_NOT;
	if (unlikely(walked != WALKED_SAME))
		return stack_anew(tstate, c, walked);
	turns_seen(c);
	return c->off;
}

/* After stack_here(), which has checked that there are frames to read. */
enum branch branch_here(void)
{
	struct raw_frame frame[CW_MAX_FRAMES];
	const void *tstate = rec_self->chain.state;

	if (!atomic_load_explicit(&hot.on, memory_order_relaxed))
		return BRANCH_ANY;
	if (!tstate)
		tstate = thread_state(&rec_self->chain);
	if (!tstate || WALK_FRAMES(walk_all(tstate, frame)) < 1)
		return BRANCH_ANY;
	return loops_branch(UNTAGGED(frame[0].code), code_unit(UNTAGGED(frame[0].code), frame[0].instr));
}

uint32_t handlers_now(struct cw_handler *out, uint32_t max)
{
	struct raw_frame frame[CW_MAX_FRAMES];
	const void *tstate = rec_self->chain.state;

	if (!atomic_load_explicit(&hot.on, memory_order_relaxed))
		return HANDLERS_UNKNOWN;
	if (!tstate)
		tstate = thread_state(&rec_self->chain);
	return tstate ? handlers_of_frames(frame, (uint32_t)WALK_FRAMES(walk_all(tstate, frame)), out, max)
		      : HANDLERS_UNKNOWN;
}

/* Since 3.13 CPython says itself where its fields are. */
static enum cw_reason use_debug_offsets(const struct elf_object *o)
{
	const uint64_t *d = elf_symbol(o, "_PyRuntime");

	switch (d ? py_debug_layout(&py.l, d) : PY_DEBUG_UNKNOWN) {
	case PY_DEBUG_OK: return CW_REASON_NONE;
	case PY_DEBUG_FREE_THREADED: return CW_REASON_PY_FREETHREAD;
	default: return CW_REASON_PY_VERSION;
	}
}

static uint32_t version_of(const struct elf_object *o)
{
	const uint32_t *hex = elf_symbol(o, "Py_Version");
	const char *text;
	unsigned minor = 0;

	if (hex)
		return *hex;
	text = py.f.Py_GetVersion ? py.f.Py_GetVersion() : "";
	if (text[0] != '3' || text[1] != '.')
		return 0;
	for (text += 2; *text >= '0' && *text <= '9'; text++)
		minor = minor * 10 + (unsigned)(*text - '0');
	return 0x03000000u | minor << 16;
}

static bool find_functions(const struct elf_object *o)
{
#define X(type, name, args) py.f.name = (type(*) args)elf_symbol(o, #name);
	PY_FUNCTIONS(X)
#undef X
	py.f.is_finalizing = (int (*)(void))elf_symbol(o, "Py_IsFinalizing");
	if (!py.f.is_finalizing)
		py.f.is_finalizing = (int (*)(void))elf_symbol(o, "_Py_IsFinalizing");
	py.f.current_state = (void *(*)(void))elf_symbol(o, "PyThreadState_GetUnchecked");
	if (!py.f.current_state)
		py.f.current_state = (void *(*)(void))elf_symbol(o, "_PyThreadState_UncheckedGet");
	py.f.is_main_thread = (int (*)(void))elf_symbol(o, "_PyOS_IsMainThread");
	py.f.code_type = elf_symbol(o, "PyCode_Type");
	py.f.unicode_type = elf_symbol(o, "PyUnicode_Type");
	py.f.long_type = elf_symbol(o, "PyLong_Type");
	py.f.dict_type = elf_symbol(o, "PyDict_Type");
	py.f.list_type = elf_symbol(o, "PyList_Type");
	py.f.tuple_type = elf_symbol(o, "PyTuple_Type");
	py.f.cell_type = elf_symbol(o, "PyCell_Type");
	py.f.proxy_type = elf_symbol(o, "PyFrameLocalsProxy_Type");
	return py.f.PyGILState_GetThisThreadState && py.f.current_state && py.f.is_finalizing &&
	       py.f.code_type && py.f.unicode_type && py.f.PyEval_GetFrame && py.f.PyFrame_GetBack &&
	       py.f.PyFrame_GetCode && py.f.PyFrame_GetLineNumber && py.f.PyUnicode_AsUTF8;
}

static enum cw_reason find_python(void)
{
	struct elf_object o;
	void *f = elf_symbol_anywhere("PyGILState_GetThisThreadState");
	const struct py_layout *known;
	unsigned minor;

	if (!f || !elf_object_at(f, &o))
		return CW_REASON_PY_ABSENT;
	if (!find_functions(&o))
		return CW_REASON_PY_VERSION;
	py.version = rec.h->py_version = version_of(&o);
	f = elf_symbol(&o, "_Py_NoneStruct");
	py.none = f;
	py.none_type = f ? *(const void *const *)((const char *)f + 8) : NULL;
	if (rec_getenv("CUWHY_NO_FRAMES"))
		return CW_REASON_ASKED;
	minor = (py.version >> 16) & 0xff;
	known = py.version >> 24 == 3 ? layout_of(minor) : NULL;
	if (!known)
		return CW_REASON_PY_VERSION;
	py.l = *known;
	return minor >= 13 ? use_debug_offsets(&o) : CW_REASON_NONE;
}

void python_start(void)
{
	enum cw_reason why;

	memset(&py, 0, sizeof(py));
	atomic_store(&trust.walked, false);
	atomic_store(&trust.compare_left, COMPARE_FIRST);
	atomic_store(&trust.tries_left, COMPARE_AMONG);
	why = find_python();
	rec.h->frames_off_because = why;
	trust.walk = kept_walk_for(&py.l);
	hot.thread_state = py.f.PyGILState_GetThisThreadState;
	hot.is_finalizing = py.f.is_finalizing;
	hot.again = never_again;
	hot.on = py.on = why == CW_REASON_NONE;
	turns_start();
}
