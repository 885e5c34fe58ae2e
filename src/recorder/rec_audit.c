/* SPDX-License-Identifier: Apache-2.0
 * The exception that ends a Python program, seen through CPython's audit event `sys.excepthook`, and Python's shutdown.
 *
 * None of the program's own code may run here: messages are read only from plain str and int objects in
 * `args`, never through str(). The hook is called for every audit event, so it rejects most at the first byte.
 */
#include <string.h>

#include "rec_python.h"

#define MAX_CHAIN	6
#define EXC_ARGS	24	/* PyBaseExceptionObject.args, 3.9 to 3.14 */
#define TYPE_NAME	24	/* PyTypeObject.tp_name */

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

/* The arguments that are plain str or int, in order: "262144, 232448, shared memory". */
static void words_of(void *args, char *to, size_t size)
{
	long n = py.f.PyTuple_Size(args);
	size_t at_byte = 0;

	to[0] = '\0';
	for (long i = 0; i < n && i < 4 && at_byte + 32 < size; i++) {
		void *v = py.f.PyTuple_GetItem(args, i);
		bool is_number = v && *(void **)((char *)v + 8) == py.f.long_type;
		bool is_text = v && *(void **)((char *)v + 8) == py.f.unicode_type;

		if (!is_number && !is_text)
			continue;
		if (at_byte) {
			to[at_byte++] = ',';
			to[at_byte++] = ' ';
		}
		if (is_number)
			at_byte += rec_put_number(to + at_byte, size - at_byte, py.f.PyLong_AsLong(v));
		else if (python_string(v, to + at_byte, size - at_byte))
			at_byte += strlen(to + at_byte);
		py.f.PyErr_Clear();
	}
	to[at_byte] = '\0';
}

static void note_exception(void *value, uint32_t depth)
{
	const char *type = *(const char *const *)(*(char *const *)((char *)value + 8) + TYPE_NAME);
	void *args = *(void **)((char *)value + EXC_ARGS);
	const char *dot = strrchr(type, '.');
	struct cw_failure f;
	void *tb;

	fail_init(&f, CW_SRC_PYTHON, 0);
	f.python_chain = depth;
	type = dot ? dot + 1 : type;
	text_copy(f.what, sizeof(f.what), type, strlen(type));
	if (args)
		words_of(args, f.text, sizeof(f.text));
	py.f.PyErr_Clear();
	tb = py.f.PyException_GetTraceback(value);
	f.stack = tb ? traceback_stack(tb) : 0;
	fail_note(&f);
}

static void note_chain(void *value)
{
	void *next;

	py.f.Py_IncRef(value);
	for (uint32_t depth = 0; value && depth < MAX_CHAIN; depth++) {
		note_exception(value, depth);
		next = py.f.PyException_GetCause(value);
		if (!next)
			next = py.f.PyException_GetContext(value);
		drop(value);
		value = next;
	}
	drop(value);
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

/* Nothing is recorded yet: is this exception worth starting a recording? With PyTorch in the process it always is:
 * a program that found no CUDA may not mention CUDA in its message. */
static bool is_about_cuda(void *args)
{
	void *(*item)(void *, long) = (void *(*)(void *, long))elf_symbol_anywhere("PyTuple_GetItem");
	long (*size)(void *) = (long (*)(void *))elf_symbol_anywhere("PyTuple_Size");
	const char *(*utf8)(void *) = (const char *(*)(void *))elf_symbol_anywhere("PyUnicode_AsUTF8");
	const void *text_type = elf_symbol_anywhere("PyUnicode_Type");
	void *value, *words, *first;
	struct elf_object o;
	const char *text;

	if (elf_find_object("libc10.so", &o))
		return true;
	if (!item || !size || !utf8 || !text_type || size(args) < 3)
		return false;
	value = item(args, 2);
	words = value && elf_symbol_anywhere("_Py_NoneStruct") != value ? *(void **)((char *)value + EXC_ARGS) : NULL;
	first = words && size(words) > 0 ? item(words, 0) : NULL;
	if (!first || *(void **)((char *)first + 8) != text_type)
		return false;
	text = utf8(first);
	return text && speaks_of_cuda(text);
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
	if (!py.f.PyTuple_Size || !py.f.PyTuple_GetItem || !py.f.PyException_GetTraceback || py.f.PyTuple_Size(args) < 3) {
		rec_leave();
		return 0;
	}
	value = py.f.PyTuple_GetItem(args, 2);
	/* it is None when an exception is reported without a value */
	if (value && *(void **)((char *)value + 8) != py.none_type)
		note_chain(value);
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
