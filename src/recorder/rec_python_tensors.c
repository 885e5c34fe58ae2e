/* SPDX-License-Identifier: Apache-2.0
 * Names, types and shapes of the tensors in the user's frames, when an exception ends the program.
 *
 * The exception's traceback holds these frames, and Python calls us with the GIL held: their variables are asked for as a debugger would,
 * never what is in a tensor. None of the program's own code may run: only tensors of PyTorch's two own classes are asked, not those
 * of derived ones, and none while a mode of PyTorch's is on that wants to see such questions. Whatever is not as expected is left out.
 */
#include <string.h>

#include "rec_python.h"
#include "rec_segment.h"

#define FRAMES		64	/* innermost ones that are looked at */
#define FRAMES_KEPT	8
#define VARIABLES	256	/* of a frame */
#define ITEMS		8	/* of a list, a tuple or a dict */
#define TP_BASE		48	/* Py_tp_base, part of the stable ABI */
#define HEAP_TYPE	(1ul << 9)

static struct {
	struct cw_tensor *table;
	uint32_t n, frames, generation;
} kept;

static void *ask(void *o, const char *name)
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

static void *type_of(const void *o)
{
	return *(void *const *)((const char *)o + 8);
}

static bool is_named(const void *type, const char *name)
{
	return strcmp(*(const char *const *)((const char *)type + PY_TYPE_NAME), name) == 0;
}

static void *base_of(void *type)
{
	return py.f.PyType_GetFlags(type) & HEAP_TYPE ? py.f.PyType_GetSlot(type, TP_BASE) : NULL;
}

/* torch.Tensor, and torch.nn.Parameter, which derives from it and answers in the same way. */
static bool is_tensor(const void *o)
{
	void *type = type_of(o), *base = base_of(type);

	if (base && is_named(type, "Parameter")) {
		type = base;
		base = base_of(type);
	}
	return base && is_named(type, "Tensor") &&
	       (is_named(base, "torch._C.TensorBase") || is_named(base, "torch._C._TensorBase"));
}

/* "torch.float32", "cuda:0": objects of C classes that cannot be derived from. */
static uint32_t word_of(void *tensor, const char *attribute, const char *without)
{
	void *o = ask(tensor, attribute), *text = o ? py.f.PyObject_Str(o) : NULL;
	size_t skip = strlen(without);
	char word[64];
	uint32_t off = 0;

	if (text && python_string(text, word, sizeof(word))) {
		skip = strncmp(word, without, skip) == 0 ? skip : 0;
		off = intern_string(word + skip, strlen(word + skip));
	}
	py.f.PyErr_Clear();
	drop(text);
	drop(o);
	return off;
}

static bool shape_of(void *tensor, struct cw_tensor *out)
{
	void *shape = ask(tensor, "shape");
	long n = shape ? py.f.PyTuple_Size(shape) : -1;
	bool ok = n >= 0;

	out->n_dims = ok ? (uint32_t)n : 0;
	for (long i = 0; ok && i < n && i < CW_TENSOR_DIMS; i++) {
		void *v = py.f.PyTuple_GetItem(shape, i);

		ok = v && type_of(v) == py.f.long_type;		/* sizes may be symbols */
		if (ok)
			out->dim[i] = py.f.PyLong_AsLong(v);
	}
	py.f.PyErr_Clear();
	drop(shape);
	return ok;
}

static void keep(const struct cw_frame *frame, const char *name, void *tensor)
{
	struct cw_tensor t = {.frame = *frame, .number = kept.frames}, *to;

	if (kept.n == CW_TENSORS || !shape_of(tensor, &t))
		return;
	t.name = intern_string(name, strlen(name));
	t.dtype = word_of(tensor, "dtype", "torch.");
	t.device = word_of(tensor, "device", "");
	if (!t.name || !t.dtype || !t.device)
		return;
	to = &kept.table[kept.n++];
	memcpy((char *)to + sizeof(to->seq), (const char *)&t + sizeof(t.seq), sizeof(t) - sizeof(t.seq));
	shared_set(&to->seq, kept.n);
}

/* A key may be anybody's data: only what could be a variable's name is shown. */
static bool is_identifier(const char *s)
{
	size_t n = 0;

	for (; s[n]; n++)
		if (!(s[n] == '_' || (s[n] >= 'a' && s[n] <= 'z') || (s[n] >= 'A' && s[n] <= 'Z') ||
		      (n && s[n] >= '0' && s[n] <= '9')))
			return false;
	return n > 0 && n < 64;
}

static void name_item(char *to, size_t size, const char *name, const char *quote, const char *item)
{
	const char *parts[] = {name, "[", quote, item, quote, "]"};
	size_t n = 0;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && n < size; i++) {
		text_copy(to + n, size - n, parts[i], strlen(parts[i]));
		n += strlen(to + n);
	}
}

static void keep_items(const struct cw_frame *frame, const char *name, void *o)
{
	bool is_list = type_of(o) == py.f.list_type;
	long n = is_list ? py.f.PyList_Size(o) : py.f.PyTuple_Size(o);
	char item[24], whole[192];

	for (long i = 0; i < n && i < ITEMS; i++) {
		void *v = is_list ? py.f.PyList_GetItem(o, i) : py.f.PyTuple_GetItem(o, i);

		if (!v || !is_tensor(v))
			continue;
		item[rec_put_number(item, sizeof(item), i)] = '\0';
		name_item(whole, sizeof(whole), name, "", item);
		keep(frame, whole, v);
	}
}

static void keep_entries(const struct cw_frame *frame, const char *name, void *dict)
{
	char item[96], whole[192];
	void *key, *v;
	long at_entry = 0;

	for (int i = 0; i < ITEMS && py.f.PyDict_Next(dict, &at_entry, &key, &v); i++) {
		if (!is_tensor(v) || !python_string(key, item, sizeof(item)) || !is_identifier(item))
			continue;
		name_item(whole, sizeof(whole), name, "\"", item);
		keep(frame, whole, v);
	}
}

static void keep_variables(const struct cw_frame *frame, void *dict)
{
	char name[96];
	void *key, *v;
	long at_entry = 0;

	for (int i = 0; i < VARIABLES && py.f.PyDict_Next(dict, &at_entry, &key, &v); i++) {
		if (!v || !python_string(key, name, sizeof(name)) || !is_identifier(name) ||
		    (name[0] == '_' && name[1] == '_'))
			continue;
		if (is_tensor(v))
			keep(frame, name, v);
		else if (type_of(v) == py.f.dict_type)
			keep_entries(frame, name, v);
		else if (type_of(v) == py.f.list_type || type_of(v) == py.f.tuple_type)
			keep_items(frame, name, v);
	}
}

/* A function's variables (since 3.13 behind a proxy), or a module's. A class may have put anything there. */
static void keep_frame(const struct cw_frame *frame, void *f)
{
	void *locals = ask(f, "f_locals"), *copy = NULL;
	uint32_t before = kept.n;

	if (locals && type_of(locals) == py.f.dict_type) {
		keep_variables(frame, locals);
	} else if (locals && py.f.proxy_type && type_of(locals) == py.f.proxy_type) {
		copy = py.f.PyDict_New();
		if (copy && py.f.PyDict_Update(copy, locals) == 0)
			keep_variables(frame, copy);
		py.f.PyErr_Clear();
		drop(copy);
	}
	drop(locals);
	kept.frames += kept.n > before;
}

/* Most are in such a folder; PyTorch itself may be anywhere ("…/torch/lib/libtorch_cpu.so"). */
static bool is_library(uint32_t file)
{
	static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
	const struct cw_string *path = at(file);
	const char *lib = strstr(rec.h->torch_path, "/lib/");

	if (path && lib && strncmp(path->text, rec.h->torch_path, (size_t)(lib - rec.h->torch_path) + 1) == 0)
		return true;
	for (size_t i = 0; path && i < sizeof(parts) / sizeof(parts[0]); i++)
		if (strstr(path->text, parts[i]))
			return true;
	return !path || strncmp(path->text, "<frozen", 7) == 0;
}

static bool can_ask(void)
{
	static const char mode[] = "_ZN2at4impl27torch_function_mode_enabledEv";
	struct elf_object o;
	bool (*enabled)(void);

	if (!py.on || !py.f.PyDict_New || !py.f.PyDict_Update || !py.f.PyDict_Next || !py.f.PyType_GetSlot ||
	    !py.f.PyObject_Str || !py.f.PyList_Size || !py.f.dict_type || !py.f.list_type || !py.f.tuple_type ||
	    !py.f.long_type)
		return false;
	if (!elf_find_object("libtorch_cpu.so", &o))
		return false;
	*(void **)&enabled = elf_symbol(&o, mode);
	if (!enabled || enabled())
		return false;
	if (kept.generation != rec.generation) {	/* another recording: a forked child's */
		kept.generation = rec.generation;
		kept.n = kept.frames = 0;
		kept.table = chunk_new(CW_CHUNK_TENSORS, CW_TENSORS * sizeof(*kept.table), 0);
	}
	return kept.table != NULL;
}

/* Innermost first. The traceback keeps all of its frames alive. */
static void keep_traceback(void *tb)
{
	struct { void *frame; uint32_t line; } ring[FRAMES];
	uint32_t n = 0, found = 0;
	void *type = type_of(tb), *next;

	py.f.Py_IncRef(tb);
	for (; tb; n++) {
		void *f = ask(tb, "tb_frame"), *line = ask(tb, "tb_lineno");

		ring[n % FRAMES].frame = f;
		ring[n % FRAMES].line = line ? (uint32_t)py.f.PyLong_AsLong(line) : 0;
		drop(f);
		drop(line);
		next = ask(tb, "tb_next");
		drop(tb);
		tb = next && type_of(next) == type ? next : NULL;
		if (!tb)
			drop(next);
	}
	for (uint32_t i = 0; i < n && i < FRAMES && found < FRAMES_KEPT; i++) {
		void *f = ring[(n - 1 - i) % FRAMES].frame, *code = f ? py.f.PyFrame_GetCode(f) : NULL;
		struct cw_frame frame = {0};

		if (code && python_code_frame(code, ring[(n - 1 - i) % FRAMES].line, &frame) && !is_library(frame.file)) {
			keep_frame(&frame, f);
			found++;
		}
		drop(code);
	}
	py.f.PyErr_Clear();
}

/* GIL held. What is asked for is made anew, and a garbage collection would run the program's finalizers. */
void tensors_note(void *tb)
{
	bool paused;

	if (!tb || !can_ask())
		return;
	paused = py.f.PyGC_Disable && py.f.PyGC_Disable() == 1;
	keep_traceback(tb);
	if (paused)
		py.f.PyGC_Enable();
}
