/* SPDX-License-Identifier: Apache-2.0
 * Private to the recorder's Python part: where CPython keeps things, and the functions we call.
 */
#ifndef CUWHY_REC_PYTHON_H
#define CUWHY_REC_PYTHON_H

#include "rec.h"

/* Called only with the GIL held, except the first two and the finalising test, which need none. */
#define PY_FUNCTIONS(X)                                                   \
	X(void *, PyGILState_GetThisThreadState, (void))                  \
	X(int, PyGILState_Check, (void))                                  \
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
	X(void *, PyException_GetTraceback, (void *))                     \
	X(void *, PyException_GetCause, (void *))                         \
	X(void *, PyException_GetContext, (void *))                       \
	X(void *, PyObject_GetAttrString, (void *, const char *))         \
	X(long, PyLong_AsLong, (void *))                                  \
	X(void, PyErr_Clear, (void))

struct py_functions {
#define X(type, name, args) type(*name) args;
	PY_FUNCTIONS(X)
#undef X
	int (*is_finalizing)(void);	/* Py_IsFinalizing or _Py_IsFinalizing */
	const void *code_type, *unicode_type, *long_type;
};

enum instr_kind { INSTR_BYTES, INSTR_UNITS, INSTR_POINTER };

/* Offsets in bytes; measured from the headers of each version. */
struct py_layout {		/* compared as bytes: no padding */
	uint16_t minor;
	uint16_t via_cframe;
	uint16_t instr_kind;	/* enum instr_kind */
	uint16_t first_frame, cframe_frame;
	uint16_t previous, code, instr, owner;
	uint16_t first_line, filename, name, line_table, bytecode;
	uint16_t ascii_data, compact_data;
	uint16_t shim_owner;	/* owners from here on are not Python code; 255 = there are none */
	uint16_t check_type;	/* what a frame runs may be something else than a code object */
};

struct py {
	bool on;
	uint32_t version;
	struct py_layout l;
	struct py_functions f;
	const void *none_type;
};
extern struct py py;

/* Line number of an instruction; the table formats are those of 3.9, 3.10 and 3.11 on. */
uint32_t python_line(const struct py_layout *l, const void *code, uint64_t instr);

#endif
