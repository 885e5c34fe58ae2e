/* SPDX-License-Identifier: Apache-2.0
 * Private to the recorder's Python part: where CPython keeps things, and the functions we call.
 */
#ifndef CUWHY_REC_PYTHON_H
#define CUWHY_REC_PYTHON_H

#include "cuwhy/python.h"
#include "rec.h"

/* Called only with the GIL held (python_has_gil), except the first one, current_state and is_finalizing, which need none. */
#define PY_FUNCTIONS(X)                                                   \
	X(void *, PyGILState_GetThisThreadState, (void))                  \
	X(const char *, Py_GetVersion, (void))                            \
	X(void *, PyEval_GetFrame, (void))                                \
	X(void *, PyFrame_GetBack, (void *))                              \
	X(void *, PyFrame_GetCode, (void *))                              \
	X(int, PyFrame_GetLineNumber, (void *))                           \
	X(const char *, PyUnicode_AsUTF8, (void *))                       \
	X(void, Py_IncRef, (void *))                                      \
	X(void, Py_DecRef, (void *))                                      \
	X(int, PyGC_Disable, (void))                                      \
	X(int, PyGC_Enable, (void))                                       \
	X(int, Py_AddPendingCall, (int (*)(void *), void *))              \
	X(int, PySys_AddAuditHook, (int (*)(const char *, void *, void *), void *)) \
	X(void *, PyTuple_GetItem, (void *, long))                        \
	X(long, PyTuple_Size, (void *))                                   \
	X(void *, PyList_GetItem, (void *, long))                         \
	X(long, PyList_Size, (void *))                                    \
	X(unsigned long, PyType_GetFlags, (void *))                       \
	X(void *, PyException_GetTraceback, (void *))                     \
	X(void *, PyException_GetCause, (void *))                         \
	X(void *, PyException_GetContext, (void *))                       \
	X(void *, PyObject_GetAttrString, (void *, const char *))         \
	X(long, PyLong_AsLong, (void *))                                  \
	X(void, PyErr_Clear, (void))                                      \
	X(void *, PyDict_New, (void))                                     \
	X(int, PyDict_Update, (void *, void *))                           \
	X(int, PyDict_Next, (void *, long *, void **, void **))           \
	X(void *, PyObject_Str, (void *))                                 \
	X(void *, PyType_GetSlot, (void *, int))                          \
	X(int, PyCode_AddWatcher, (int (*)(int, void *)))                 \
	X(void *, PyInterpreterState_Get, (void))                         \
	X(void *, PyInterpreterState_Main, (void))

struct py_functions {
#define X(type, name, args) type(*name) args;
	PY_FUNCTIONS(X)
#undef X
	void *(*current_state)(void);	/* PyThreadState_GetUnchecked or _PyThreadState_UncheckedGet */
	int (*is_finalizing)(void);	/* Py_IsFinalizing or _Py_IsFinalizing */
	int (*is_main_thread)(void);	/* _PyOS_IsMainThread, or NULL; GIL held */
	const void *code_type, *unicode_type, *long_type;
	const void *dict_type, *list_type, *tuple_type, *cell_type;
	const void *proxy_type;		/* of a function's variables, since 3.13 */
};

struct py {
	bool on;
	uint32_t version;
	struct py_layout l;
	struct py_functions f;
	const void *none, *none_type;
};
extern struct py py __attribute__((visibility("hidden")));

/* Whether this thread holds the GIL, with the thread state that PyGILState_GetThisThreadState returns. The current state
 * is that of the thread that holds the GIL (up to 3.11), or this thread's own, NULL without the GIL (since 3.12).
 * PyGILState_Check will not do: once a program has created a sub-interpreter, it returns 1 on every thread forever. */
static inline bool python_has_gil(const void *tstate)
{
	return tstate && py.f.current_state() == tstate;
}

#define UNTAGGED(code) ((const char *)((uintptr_t)(code) & ~3ul))	/* 3.14 tags references */

extern struct code_watch {
	_Atomic bool on;
	_Atomic uint32_t gone;		/* code objects destroyed, roughly: only changes matter */
	const void *interpreter;	/* whose code objects are watched; NULL = all */
} code_watch __attribute__((visibility("hidden")));
void code_watch_start(void);		/* GIL held */

bool python_end_is_told(void);		/* python_ended() will be called */
void python_ended(void);		/* no thread has frames anymore */

/* A number that identifies a code object by its contents or, with `watched` false, by its address and a little more. */
uint64_t code_id(const char *code, bool watched);

/* The same, and its loops: LOOPS_NUMBER() and LOOPS_LOCALS() of it are for the functions below. */
uint64_t code_id_and_loops(const char *code, bool watched, uint32_t *loops);

static inline bool code_is_watched(const void *tstate)
{
	return likely(atomic_load_explicit(&code_watch.on, memory_order_acquire)) &&
	       (!code_watch.interpreter ||
		*(const void *const *)((const char *)tstate + PY_THREAD_INTERPRETER) == code_watch.interpreter);
}

struct py_loop {			/* units of code, from the start of its bytecode */
	uint16_t head, end;		/* of `for`: end is where it goes when it is over */
	uint16_t body;			/* of `for`: after the instruction that takes the next element */
	uint16_t jump;			/* others: the last jump back, 0 = only from a handler */
	uint16_t up;			/* the loop around it, 0 = none */
	int16_t depth;			/* of the stack: `for` without the iterator, else at the head */
	int16_t slot;			/* of the iterator on the stack, -1 = none */
	bool is_for, checked;		/* checked: the slot was read without a fault */
	uint8_t n_vars, var[2];		/* variables that are set in it, but in none of the loops inside; those of `for` first */
#define LOOP_VARS	2u
	uint64_t inside;		/* those that are, a bit for each by number modulo 64 */
	uint32_t number;		/* in the recording, 0 = not yet */
};
extern struct py_loop py_loop[] __attribute__((visibility("hidden")));

struct code_loops {
	uint32_t first;			/* span */
	uint16_t n;
	uint16_t locals;		/* variables in a frame, before its stack */
	uint16_t cold;			/* where the handlers are that the compiler moved behind everything else */
};

#define LOOPS_LATER	0xffffffffu	/* not known now; ask again */
#define LOOPS_KNOWN	0x10000u
#define LOOPS_ANY	0x20000u	/* it has loops */
#define LOOPS_METHOD	0x40000u	/* its first variable is `self` */
#define LOOPS_NUMBER(with) ((with)&0xffffu) /* 0 = nothing to say about it */
#define LOOPS_LOCALS(with) ((with) >> 24)	/* variables in its frames, at most 127 */
#define LOOPS_NOT_COLD	0xffffu
uint32_t loops_cold(uint32_t number);
uint32_t code_units(const char *code);		/* the length of its bytecode */
uint32_t code_unit(const char *code, uint64_t instr);	/* of an instruction; UINT32_MAX: it has not started */
void loops_start(bool on);
uint32_t loops_of_code(const char *code, uint64_t id);
/* The innermost, an index into py_loop; 0 = none. `range`: where that is the answer; may be NULL. */
uint32_t loops_around(uint32_t number, uint32_t unit, uint32_t *range);
/* What the code does with the truth value that its instruction at `unit` gets, if that decides whether it raises an exception. */
enum branch { BRANCH_ANY, BRANCH_TRUE_RAISES, BRANCH_FALSE_RAISES };
enum branch loops_branch(const char *code, uint32_t unit);
enum branch branch_here(void);		/* of the innermost frame (rec_python.c) */
uint32_t loops_locals(void);			/* offset of the first variable in a frame */
const void *const *loops_stack(const char *frame, uint32_t number);

/* The traceback of an exception that ends the program; GIL held (rec_python_tensors.c). */
void tensors_note(void *tb);

/* Did PyTorch run out of memory in one of the exceptions that end the program? Then `cuwhy run` is asked what keeps its tensors alive. */
void holders_consider(const char *type, const char *text);
void holders_ask(const void *exception);

struct raw_frame { const char *code, *frame; uint64_t instr; };

/* Does a method's code name its first variable `self`? */
bool code_is_method(const char *code);

/* What a module is called by the one around it, read from their objects with care (rec_modules_names.c). */
enum torch_class { TORCH_UNREADABLE, TORCH_NONE, TORCH_MODULE, TORCH_OPTIMIZER, TORCH_PARAMETER, PYTHON_CELL };
enum torch_class torch_class_of(const char *type);	/* what is it derived from? */
uint32_t module_class(const char *type);		/* its name: off of a cw_string */
uint32_t module_name(const char *in, const char *module);	/* off of a cw_string; 0: it is not in that one */

/* A dictionary that a module has all its life, and when that last changed: up to Python 3.12, no other module has both. */
struct module_birth { const char *dict; uint64_t version; };
struct module_birth module_birth(const char *module);
bool module_is_born(const char *module, const struct module_birth *so);

/* Its parameters, one after the other, as long as `each` says so. `dict`: where they are. */
typedef bool parameter_seen(const char *parameter, const char *dict, void *with);
void module_parameters(const char *module, parameter_seen *each, void *with);

/* Whose parameter it is (rec_modules_parameters.c). */
void parameters_forget(void);
void parameters_learn(uint32_t module, const char *self);	/* under the lock of rec_modules.c */
uint32_t parameter_module(const char *parameter);		/* 0 = not known */

/* Changes when an attribute of the module does, and, if it is odd, is never that of another module. The module is alive. */
static inline uint64_t module_mark(const char *module, const char *type)
{
	uint64_t dict, at = -(uint64_t)PY_DICT_BEFORE, version;

	if (unlikely(py.l.minor < 11))
		memcpy(&at, type + PY_TYPE_DICT_AT, sizeof(at));
	memcpy(&dict, module + at, sizeof(dict));
	if (unlikely(!dict || dict & 1 || py.l.minor > 12))
		return dict & ~1ul;
	memcpy(&version, (const char *)(uintptr_t)dict + PY_DICT_VERSION, sizeof(version));
	return version << 1 | 1;
}

/* Innermost frame first. Returns their number, with WALK_CUT if there are more; -1 if memory could not be read. */
#define WALK_CUT	(1 << 16)
#define WALK_FRAMES(n) ((n)&0xffff)
int walk_carefully(const void *tstate, struct raw_frame *out);
int walk_all(const void *tstate, struct raw_frame *out);
uint64_t walk_hash(const struct raw_frame *raw, int n, bool watched);

/* What would catch an exception that leaves these frames (rec_python_handlers.c). */
uint32_t handlers_of_frames(const struct raw_frame *raw, uint32_t n, struct cw_handler *out, uint32_t max);

/* Walks that use what was kept from the last one: `again` if hardly anything changed, else `other`. */
enum walked {
	WALKED_NONE,			/* no frames */
	WALKED_SAME,			/* the same stack as before */
	WALKED_KEPT,			/* the new stack is in the chain */
	WALKED_NOT,			/* it cannot be kept */
};
struct kept_walk {
	enum walked (*again)(const void *tstate, struct py_chain *c);
	enum walked (*other)(const void *tstate, struct py_chain *c, bool watched);
};
struct kept_walk kept_walk_for(const struct py_layout *l);
const struct py_layout *layout_of(unsigned minor);	/* NULL: an unknown version */

/* Line number of an instruction; the table formats are those of 3.9, 3.10, and 3.11 and later. */
uint32_t python_line(const struct py_layout *l, const void *code, uint64_t instr);

#endif
