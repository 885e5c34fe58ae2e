/* SPDX-License-Identifier: Apache-2.0
 * The exception that ends a Python program, seen through CPython's audit event `sys.excepthook`, and Python's shutdown.
 *
 * None of the program's own code may run here: messages are read only from the str and int objects in `args`, never
 * through str(). The hook is called for every audit event, so it rejects most at the first byte.
 */
#include <string.h>

#include "rec_python.h"

#define MAX_CHAIN	8	/* exceptions kept: the one that ended the program, its causes, those that it carries */
#define WHOLE_TEXT	8192	/* bytes kept of a long message: its end, where a printed traceback has the error */
#define EXC_ARGS	24	/* PyBaseExceptionObject.args, 3.9 to 3.14 */

static void *attr(void *o, const char *name)
{
	void *v = o ? py.f.PyObject_GetAttrString(o, name) : NULL;

	if (!v)
		py.f.PyErr_Clear();
	return v;
}

static void drop(void *o)
{
	if (o)
		py.f.Py_DecRef(o);
}

/* Py_TPFLAGS_*_SUBCLASS: the same in all versions, part of the stable ABI. */
enum { IS_LIST = 1u << 25, IS_TUPLE = 1u << 26, IS_TEXT = 1u << 28, IS_EXCEPTION = 1u << 30 };

static bool is_a(void *o, unsigned long kind)
{
	return o && (py.f.PyType_GetFlags(*(void **)((char *)o + 8)) & kind);
}

static uint64_t hash_frames(const struct cw_frame *f, uint32_t n)
{
	const uint32_t *w = (const uint32_t *)f;
	uint64_t h = 0x8e5b1f3d9c6a4711ull;	/* not the seed of walked stacks */

	for (uint32_t i = 0; i < n * sizeof(*f) / sizeof(*w); i++)
		h = (h ^ w[i]) * 0x100000001b3ull;
	return (h ^ h >> 29) | 1;
}

/* The traceback as a stack, innermost frame first. Only the innermost part of a very deep one is kept. */
static uint32_t traceback_stack(void *tb)
{
	struct cw_frame ring[CW_MAX_FRAMES], frame[CW_MAX_FRAMES];
	uint32_t n = 0, kept;
	void *next, *type = *(void **)((char *)tb + 8);

	if (!py.on) {		/* reading code objects is switched off, too */
		drop(tb);
		return 0;
	}
	for (; tb; n++) {
		void *f = attr(tb, "tb_frame"), *line = attr(tb, "tb_lineno");
		void *code = f ? py.f.PyFrame_GetCode(f) : NULL;
		long number = line ? py.f.PyLong_AsLong(line) : 0;

		memset(&ring[n % CW_MAX_FRAMES], 0, sizeof(ring[0]));
		if (code)
			python_code_frame(code, number > 0 ? (uint32_t)number : 0, &ring[n % CW_MAX_FRAMES]);
		py.f.PyErr_Clear();
		drop(code);
		drop(line);
		drop(f);
		next = attr(tb, "tb_next");
		drop(tb);
		tb = next && *(void **)((char *)next + 8) == type ? next : NULL;
		if (!tb)	/* None, at the end */
			drop(next);
	}
	kept = n < CW_MAX_FRAMES ? n : CW_MAX_FRAMES;
	for (uint32_t i = 0; i < kept; i++)
		frame[i] = ring[(n - 1 - i) % CW_MAX_FRAMES];
	return kept ? stack_intern(hash_frames(frame, kept), frame, kept, n > kept ? CW_STACK_CUT : 0) : 0;
}

/* The message in UTF-8, for as long as the object lives; NULL: it has none. */
static const char *utf8_of(void *text)
{
	const char *s = py.f.PyUnicode_AsUTF8(text);

	if (!s)
		py.f.PyErr_Clear();
	return s;
}

/* A str, or an object of a class derived from it: PyTorch has one for the messages of KeyErrors. */
static bool copy_text(void *v, char *to, size_t size)
{
	const char *s;

	if (python_string(v, to, size))
		return true;
	s = utf8_of(v);
	if (s)
		text_copy(to, size, s, strlen(s));
	return s != NULL;
}

/* A parent process that raises its child's exception again puts the child's traceback into the message, and the error
 * is at its end. */
static uint32_t whole_text(void *v)
{
	const char *s = utf8_of(v);
	size_t len = s ? strlen(s) : 0, skip = len > WHOLE_TEXT ? len - WHOLE_TEXT : 0;

	while (skip && (s[skip] & 0xc0) == 0x80)
		skip++;		/* never cut a UTF-8 character in two */
	return s ? intern_string(s + skip, len - skip) : 0;
}

/* The arguments that are str or int, in order: "262144, 232448, shared memory". */
static void words_of(void *args, struct cw_failure *f)
{
	long n = py.f.PyTuple_Size(args);
	const size_t size = sizeof(f->text);
	size_t at_byte = 0;

	for (long i = 0; i < n && i < 4 && at_byte + 32 < size; i++) {
		void *v = py.f.PyTuple_GetItem(args, i);
		bool is_number = v && *(void **)((char *)v + 8) == py.f.long_type;

		if (!is_number && !is_a(v, IS_TEXT))
			continue;
		if (at_byte) {
			f->text[at_byte++] = ',';
			f->text[at_byte++] = ' ';
		}
		if (is_number)
			at_byte += rec_put_number(f->text + at_byte, size - at_byte, py.f.PyLong_AsLong(v));
		else if (copy_text(v, f->text + at_byte, size - at_byte))
			at_byte += strlen(f->text + at_byte);
		if (at_byte + 8 > size)		/* there may be more of it */
			f->whole_text = whole_text(v);
		py.f.PyErr_Clear();
	}
	f->text[at_byte] = '\0';
}

static void note_exception(void *value, uint32_t number)
{
	const char *type = *(const char *const *)(*(char *const *)((char *)value + PY_TYPE) + PY_TYPE_NAME);
	void *args = *(void **)((char *)value + EXC_ARGS);
	const char *dot = strrchr(type, '.');
	struct cw_failure f;
	void *tb;

	fail_init(&f, CW_SRC_PYTHON, 0);
	f.python_chain = number;
	type = dot ? dot + 1 : type;
	text_copy(f.what, sizeof(f.what), type, strlen(type));
	if (args)
		words_of(args, &f);
	py.f.PyErr_Clear();
	tb = py.f.PyException_GetTraceback(value);
	tensors_note(tb);
	holders_consider(f.what, f.text);
	f.stack = tb ? traceback_stack(tb) : 0;
	fail_note(&f);
}

static uint32_t note_chain(void *value, uint32_t n);

/* Exceptions among the arguments: those of an ExceptionGroup, or a worker's that its library wrapped. */
static uint32_t note_carried(void *list, uint32_t n)
{
	bool is_list = is_a(list, IS_LIST);
	long size = is_list ? py.f.PyList_Size(list) : py.f.PyTuple_Size(list);

	for (long i = 0; i < size && n < MAX_CHAIN; i++) {
		void *v = is_list ? py.f.PyList_GetItem(list, i) : py.f.PyTuple_GetItem(list, i);

		if (is_a(v, IS_EXCEPTION)) {
			n = note_chain(v, n);
		} else if (is_a(v, IS_LIST | IS_TUPLE)) {
			void *first = is_a(v, IS_LIST) ? py.f.PyList_GetItem(v, 0) : py.f.PyTuple_GetItem(v, 0);

			py.f.PyErr_Clear();	/* it may be empty */
			if (is_a(first, IS_EXCEPTION))
				n = note_carried(v, n);
		}
	}
	return n;
}

/* The exception, what it carries, its cause and so on; `n` have been noted before. An exception may carry itself: their
 * number ends it. */
static uint32_t note_chain(void *value, uint32_t n)
{
	void *next, *args;

	py.f.Py_IncRef(value);
	while (value && n < MAX_CHAIN) {
		note_exception(value, n++);
		args = *(void **)((char *)value + EXC_ARGS);
		if (args)
			n = note_carried(args, n);
		next = py.f.PyException_GetCause(value);
		if (!next)
			next = py.f.PyException_GetContext(value);
		drop(value);
		value = next;
	}
	drop(value);
	return n;
}

/* Words in exceptions that end programs before they reach the driver. */
static bool speaks_of_cuda(const char *text)
{
	static const char *const words[] = {"CUDA",	"cuda",	  "NVIDIA",	 "libcu",	    "libnv",
					    "libtorch", "libc10", "torchvision", "undefined symbol"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* What is needed to read an exception's messages before the recording has begun. */
struct reader {
	void *(*item)(void *, long), *(*list_item)(void *, long);
	long (*size)(void *), (*list_size)(void *);
	const char *(*utf8)(void *);
	unsigned long (*flags)(void *);
	void *(*cause)(void *), *(*context)(void *);
	void (*retain)(void *), (*release)(void *), (*clear)(void);
};

static bool reader_find(struct reader *r)
{
	r->item = (void *(*)(void *, long))elf_symbol_anywhere("PyTuple_GetItem");
	r->size = (long (*)(void *))elf_symbol_anywhere("PyTuple_Size");
	r->list_item = (void *(*)(void *, long))elf_symbol_anywhere("PyList_GetItem");
	r->list_size = (long (*)(void *))elf_symbol_anywhere("PyList_Size");
	r->utf8 = (const char *(*)(void *))elf_symbol_anywhere("PyUnicode_AsUTF8");
	r->flags = (unsigned long (*)(void *))elf_symbol_anywhere("PyType_GetFlags");
	r->cause = (void *(*)(void *))elf_symbol_anywhere("PyException_GetCause");
	r->context = (void *(*)(void *))elf_symbol_anywhere("PyException_GetContext");
	r->retain = (void (*)(void *))elf_symbol_anywhere("Py_IncRef");
	r->release = (void (*)(void *))elf_symbol_anywhere("Py_DecRef");
	r->clear = (void (*)(void))elf_symbol_anywhere("PyErr_Clear");
	return r->item && r->size && r->list_item && r->list_size && r->utf8 && r->flags && r->cause && r->context &&
	       r->retain && r->release && r->clear;
}

/* A message; an exception, by its arguments; a list or a tuple of them. */
static bool is_about(const struct reader *r, void *o, int depth)
{
	unsigned long kind = o ? r->flags(*(void **)((char *)o + 8)) : 0;
	const char *text = kind & IS_TEXT ? r->utf8(o) : NULL;
	long n;

	r->clear();
	if (text)
		return speaks_of_cuda(text);
	if (kind & IS_EXCEPTION)
		return is_about(r, *(void **)((char *)o + EXC_ARGS), depth - 1);
	if (!(kind & (IS_LIST | IS_TUPLE)) || depth < 0)
		return false;
	n = kind & IS_LIST ? r->list_size(o) : r->size(o);
	for (long i = 0; i < n && i < MAX_CHAIN; i++)
		if (is_about(r, kind & IS_LIST ? r->list_item(o, i) : r->item(o, i), depth - 1))
			return true;
	return false;
}

/* Nothing is recorded yet: is this exception, or one of its causes, worth starting a recording? With PyTorch in the
 * process it always is: a program that found no CUDA may not mention CUDA in its message. */
static bool is_about_cuda(void *args)
{
	struct elf_object o;
	struct reader r;
	void *value, *next;
	bool found = false;

	if (elf_find_object("libc10.so", &o))
		return true;
	if (!reader_find(&r) || r.size(args) < 3)
		return false;
	value = r.item(args, 2);
	if (!value || !(r.flags(*(void **)((char *)value + 8)) & IS_EXCEPTION))
		return false;
	r.retain(value);
	for (int i = 0; value && !found && i < MAX_CHAIN; i++) {
		found = is_about(&r, value, 4);
		next = r.cause(value);
		if (!next)
			next = r.context(value);
		r.release(value);
		value = next;
	}
	if (value)
		r.release(value);
	return found;
}

static int audit(const char *event, void *args, void *data)
{
	void *value;

	(void)data;
	if (unlikely(event[0] == 'c' && event[1] == 'p' && strcmp(event, "cpython._PySys_ClearAuditHooks") == 0)) {
		exit_is_near();
		python_ended();
	}
	if (likely(event[0] != 's') || strcmp(event, "sys.excepthook") != 0)
		return 0;
	if (rec_asleep() && !is_about_cuda(args))
		return 0;
	if (!rec_enter())
		return 0;
	if (!py.f.PyTuple_Size || !py.f.PyTuple_GetItem || !py.f.PyList_GetItem || !py.f.PyType_GetFlags ||
	    !py.f.PyException_GetTraceback || py.f.PyTuple_Size(args) < 3) {
		rec_leave();
		return 0;
	}
	value = py.f.PyTuple_GetItem(args, 2);
	/* it is None when an exception is reported without a value, and a program may raise this event with anything */
	if (is_a(value, IS_EXCEPTION)) {
		note_chain(value, 0);
		holders_ask(value);
	}
	rec_leave();
	return 0;
}

static _Atomic int installed;	/* survives fork: so does the hook */
static _Atomic bool refused;	/* by another hook */

bool python_end_is_told(void)
{
	return installed && !refused;
}

/* The offsets above are those of 3.9 to 3.14, with a GIL. */
static bool is_known_python(const char *version)
{
	unsigned minor = 0;

	if (version[0] != '3' || version[1] != '.' || strstr(version, "free-threading"))
		return false;
	for (version += 2; *version >= '0' && *version <= '9'; version++)
		minor = minor * 10 + (unsigned)(*version - '0');
	return minor >= 9 && minor <= 14;
}

/* Before Python has started, adding the hook needs no GIL. This way we also see the exception that ends a program
 * before it reaches the driver: a PyTorch without CUDA, a missing library. */
void python_hook_early(void)
{
	int (*add)(int (*)(const char *, void *, void *), void *) =
		(int (*)(int (*)(const char *, void *, void *), void *))elf_symbol_anywhere("PySys_AddAuditHook");
	int (*is_started)(void) = add ? (int (*)(void))elf_symbol_anywhere("Py_IsInitialized") : NULL;
	const char *(*version)(void) = add ? (const char *(*)(void))elf_symbol_anywhere("Py_GetVersion") : NULL;

	if (!is_started || !version || is_started() || !is_known_python(version()))
		return;
	if (add(audit, NULL) == 0)
		atomic_store(&installed, 1);
}

static int install(void *data)
{
	(void)data;
	if (!installed) {
		refused = py.f.PySys_AddAuditHook(audit, NULL) != 0;
		if (refused)
			py.f.PyErr_Clear();
		atomic_store(&installed, 1);
	}
	code_watch_start();
	return 0;
}

/* After startup the calls need the GIL. A driver call that holds it will do; otherwise we queue a pending call,
 * which Python allows from any thread. */
void python_hook(void)
{
	static _Atomic int asked;	/* survives fork: so does what was installed */
	const void *tstate;

	if (likely(atomic_load_explicit(&asked, memory_order_relaxed)) || !py.version)
		return;
	if (!py.f.PySys_AddAuditHook || !py.f.PyTuple_GetItem || !py.f.PyException_GetTraceback ||
	    !py.f.Py_AddPendingCall || !py.f.Py_GetVersion || !is_known_python(py.f.Py_GetVersion())) {
		asked = 1;
		return;
	}
	tstate = py.f.PyGILState_GetThisThreadState();
	if (!tstate || py.f.is_finalizing() || atomic_exchange(&asked, 1))
		return;
	if (python_has_gil(tstate))
		install(NULL);
	else if (py.f.Py_AddPendingCall(install, NULL) != 0)
		atomic_store(&asked, 0);	/* its queue is full: next time */
}
