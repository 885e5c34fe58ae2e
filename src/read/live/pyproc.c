/* SPDX-License-Identifier: Apache-2.0
 * Python stacks from outside (see pyproc.h).
 *
 * The process may be running: whatever is read may be half of one thing and half of another. So each pointer is only followed
 * after what it should point to was checked, every chain has an end, and a stack that was read from a running thread counts only if
 * it was read twice with the same result (look.c).
 */
#include "read/live/pyproc.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cuwhy/utf8.h"
#include "read/live/target.h"

#define INLINE_VALUES	(1u << 2)
#define MANAGED_DICT	(1u << 4)
#define HEAP_TYPE	(1u << 9)
#define INTEGER		(1u << 24)
#define LIST		(1u << 25)
#define DICTIONARY	(1u << 29)
#define CLASS		(1u << 31)
#define INTERPRETERS_MAX 64
#define STRING_MAX	4096
#define PTHREAD_TID	720	/* glibc's struct pthread on x86-64; checked against the list of tasks */

static const struct py_layout layouts[] = {
#define LAYOUT(minor, ...) {minor, __VA_ARGS__},
#include "kb/python_layouts.def"
};

static const struct py_states states[] = {
#define STATES(minor, ...) {minor, __VA_ARGS__},
#include "kb/python_layouts.def"
};

static const uint16_t locals[][9] = {
#define LOCALS(minor, ...) {minor, __VA_ARGS__},
#include "kb/python_layouts.def"
};

#define FIRST_MINOR	9u
#define LAST_MINOR	14u

__attribute__((format(printf, 2, 3))) static bool not_found(struct pyproc *p, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(p->why, sizeof(p->why), fmt, args);
	va_end(args);
	return p->found = false;
}

/* 3.13 and later say themselves where interpreters and threads are. */
static bool use_debug_offsets(struct pyproc *p)
{
	uint64_t d[PY_DEBUG_WORDS];
	struct py_debug_groups g;
	unsigned more = p->l.minor > 13;	/* 3.14 also says which thread is the main one */

	if (!remote_read(p->r, p->runtime, d, sizeof(d)))
		return not_found(p, "its memory cannot be read");
	switch (py_debug_layout(&p->l, d)) {
	case PY_DEBUG_OK: break;
	case PY_DEBUG_FREE_THREADED: return not_found(p, "it is a free-threaded Python 3.%u", p->l.minor);
	default: return not_found(p, "its Python 3.%u does not say where it keeps its frames", p->l.minor);
	}
	if (py_debug_groups(d, p->l.minor, &g) || g.runtime[2] > 65535 || g.interpreter[2] > 65535 ||
	    g.interpreter[3] > 65535 || g.thread[2] > 4096 || g.thread[5] > 4096 || g.thread[6] > 4096 ||
	    g.interpreter[8 + more] > 65535)
		return not_found(p, "its Python 3.%u does not say where it keeps its threads", p->l.minor);
	p->s.head = (uint16_t)g.runtime[2];
	p->s.next = (uint16_t)g.interpreter[2];
	p->s.threads = (uint16_t)g.interpreter[3];
	p->modules = g.interpreter[5 + more] < 65536 ? (uint32_t)g.interpreter[5 + more] : 0;
	p->s.gil = (uint16_t)g.interpreter[8 + more];
	p->s.thread_next = (uint16_t)g.thread[2];
	p->s.thread_id = (uint16_t)g.thread[5];
	p->s.native = (uint16_t)g.thread[6];
	return true;
}

void pyproc_at(struct pyproc *p, struct remote *r, uint64_t runtime, uint64_t code_type, uint32_t version)
{
	unsigned minor = (version >> 16) & 0xff, row;

	*p = (struct pyproc){.r = r, .runtime = runtime, .code_type = code_type, .version = version};
	if (version >> 24 != 3 || minor < FIRST_MINOR || minor > LAST_MINOR) {
		not_found(p, "its Python is 3.%u; cuwhy reads 3.9 to 3.14", minor);
		return;
	}
	row = minor - FIRST_MINOR;
	p->l = layouts[row];
	p->s = states[row];
	p->locals = locals[row][1];
	p->n_locals = locals[row][2];
	p->stack = locals[row][3];
	p->bytecode = locals[row][5];
	p->stack_size = locals[row][6];
	p->globals = locals[row][7];
	p->names = locals[row][8];
	p->tuple_items = minor < 14 ? PY_TUPLE_ITEMS : PY_TUPLE_ITEMS_NEW;
	p->found = minor < 13 || use_debug_offsets(p);
}

static uint32_t version_of(struct pyproc *p, const struct target *t, struct module *m, uint64_t runtime)
{
	uint64_t at = module_symbol(t, m, "Py_Version"), d[2];
	uint32_t hex = 0;

	if (at && remote_read(p->r, at, &hex, sizeof(hex)) && hex >> 24 == 3)
		return hex;
	if (remote_read(p->r, runtime, d, sizeof(d)) && !memcmp(d, "xdebugpy", 8))
		return (uint32_t)d[1];
	/* "/usr/lib/python3.9/lib-dynload/…", "libpython3.10.so.1.0": before 3.11, the names of files have to tell. */
	for (size_t i = 0; i <= t->n_modules; i++) {
		const char *path = i ? t->module[i - 1].path : m->path, *found = strstr(path, "python3.");
		unsigned minor;

		if (found && sscanf(found + 8, "%u", &minor) == 1 && minor < 100)
			return 0x03000000u | minor << 16;
	}
	return 0;
}

static bool may_be_python(const struct module *m, size_t index)
{
	return index == 0 || strstr(m->base, "python") != NULL;
}

void pyproc_open(struct pyproc *p, struct target *t, struct remote *r)
{
	*p = (struct pyproc){.r = r};
	for (int libraries = 1; libraries >= 0; libraries--)
		for (size_t i = 0; i < t->n_modules; i++) {
			struct module *m = &t->module[i];
			uint64_t at;

			if (str_starts(m->base, "libpython") != (libraries != 0) || !may_be_python(m, i))
				continue;
			at = module_symbol(t, m, "_PyRuntime");
			if (!at)
				at = m->runtime_section;
			if (!at)
				continue;
			pyproc_at(p, r, at, module_symbol(t, m, "PyCode_Type"),
				  version_of(&(struct pyproc){.r = r}, t, m, at));
			return;
		}
	not_found(p, "there is no Python in it");
}

static uint64_t gil_of(struct pyproc *p, uint64_t interpreter)
{
	uint64_t gil = 0;

	if (p->l.minor < 12)
		return p->runtime + p->s.gil;
	return remote_word(p->r, interpreter + p->s.gil, &gil) ? gil : 0;
}

static bool read_thread(struct pyproc *p, uint64_t state, struct py_thread *to)
{
	uint64_t native = 0;

	*to = (struct py_thread){.state = state};
	if (!remote_word(p->r, state + p->s.thread_id, &to->pthread))
		return false;
	if (p->s.native)
		return remote_word(p->r, state + p->s.native, &native) && (to->tid = (uint32_t)native, true);
	/* before 3.11, only the address of glibc's thread: its number is in there */
	if (to->pthread && !remote_read(p->r, to->pthread + PTHREAD_TID, &to->tid, sizeof(to->tid)))
		to->tid = 0;
	return true;
}

/* Those of one interpreter, behind the `n` that are there; false if these are not all. */
static bool add_threads(struct pyproc *p, uint64_t interpreter, struct py_thread *list, size_t *n, size_t max)
{
	uint64_t gil = gil_of(p, interpreter), state = 0;

	if (!remote_word(p->r, interpreter + p->s.threads, &state))
		return false;
	while (state) {
		if (*n == max || !read_thread(p, state, &list[*n]))
			return false;
		list[*n].gil = gil;
		list[(*n)++].gil_size = p->s.gil_size;
		if (!remote_word(p->r, state + p->s.thread_next, &state))
			return false;
	}
	return true;
}

size_t pyproc_threads(struct pyproc *p, struct py_thread *list, size_t max, bool *whole)
{
	uint64_t interpreter = 0;
	size_t n = 0;

	*whole = true;
	if (!p->found)
		return 0;
	*whole = remote_word(p->r, p->runtime + p->s.head, &interpreter);
	for (int i = 0; *whole && interpreter; i++)
		*whole = i < INTERPRETERS_MAX && add_threads(p, interpreter, list, &n, max) &&
			 remote_word(p->r, interpreter + p->s.next, &interpreter);
	return n;
}

uint64_t pyproc_gil_holder(struct pyproc *p, uint64_t gil)
{
	uint64_t holder = 0;
	uint32_t locked = 0;

	if (!gil || !remote_read(p->r, gil + p->s.gil_locked, &locked, sizeof(locked)) || locked != 1 ||
	    !remote_word(p->r, gil + p->s.gil_holder, &holder))
		return 0;
	return holder;
}

static bool is_code(struct pyproc *p, uint64_t code)
{
	uint64_t type = 0;
	char name[16];

	if (!code || code % 8 || !remote_word(p->r, code + PY_TYPE, &type))
		return false;
	if (p->code_type)
		return type == p->code_type;
	return pyproc_type(p, code, name, sizeof(name)) && !strcmp(name, "code");
}

static bool read_instr(struct pyproc *p, uint64_t frame, uint64_t *instr)
{
	uint32_t lasti;

	if (p->l.instr_kind == INSTR_POINTER)
		return remote_word(p->r, frame + p->l.instr, instr);
	if (!remote_read(p->r, frame + p->l.instr, &lasti, sizeof(lasti)))
		return false;
	*instr = lasti;
	return true;
}

bool pyproc_walk(struct pyproc *p, uint64_t state, struct py_walked *w)
{
	uint64_t frame = 0;

	w->n = 0;
	w->cut = false;
	if (!p->found || !remote_word(p->r, state + p->l.first_frame, &frame))
		return false;
	if (p->l.via_cframe && frame && !remote_word(p->r, frame + p->l.cframe_frame, &frame))
		return false;
	for (size_t guard = 0; frame; guard++) {
		struct py_raw *raw = &w->raw[w->n];
		uint8_t owner = 0;

		if (w->n == PY_FRAMES_MAX || guard > 4 * PY_FRAMES_MAX) {
			w->cut = true;
			return true;
		}
		if (p->l.shim_owner != 255 && !remote_read(p->r, frame + p->l.owner, &owner, 1))
			return false;
		if (owner < p->l.shim_owner) {
			raw->frame = frame;
			if (!remote_word(p->r, frame + p->l.code, &raw->code) || !read_instr(p, frame, &raw->instr))
				return false;
			raw->code &= ~(uint64_t)3;
			if (is_code(p, raw->code))
				w->n++;
			else if (!p->l.check_type)
				return false;	/* a frame of 3.9 to 3.11 always runs code */
		}
		if (!remote_word(p->r, frame + p->l.previous, &frame))
			return false;
	}
	return true;
}

bool pyproc_text(struct pyproc *p, uint64_t unicode, char *to, size_t size)
{
	uint32_t state, kind;
	uint64_t len, data;
	size_t n = 0;

	if (!remote_word(p->r, unicode + PY_STRING_LENGTH, &len) ||
	    !remote_read(p->r, unicode + PY_STRING_STATE, &state, sizeof(state)))
		return false;
	kind = (state >> 2) & 7;
	if (!(state & 32) || len > STRING_MAX || (kind != 1 && kind != 2 && kind != 4))
		return false;
	data = unicode + (state & 64 ? p->l.ascii_data : p->l.compact_data);
	for (uint64_t i = 0; i < len && n + 5 < size; i++) {
		uint32_t c = 0;

		if (!remote_read(p->r, data + i * kind, &c, kind))	/* little-endian */
			return false;
		n += utf8_put(to + n, c);
	}
	to[n] = '\0';
	str_make_utf8(to);
	return true;
}

static bool text_field(struct pyproc *p, uint64_t code, uint16_t field, char *to, size_t size)
{
	uint64_t at = 0;

	return remote_word(p->r, code + field, &at) && at && pyproc_text(p, at, to, size);
}

static uint32_t line_of(struct pyproc *p, const struct py_raw *raw, int32_t first)
{
	uint64_t table = 0, size = 0;
	uint8_t *bytes;
	uint32_t line = (uint32_t)first;

	if (!remote_word(p->r, raw->code + p->l.line_table, &table) || !table ||
	    !remote_word(p->r, table + PY_BYTES_SIZE, &size) || size > 1u << 20)
		return line;
	bytes = malloc(size + 1);
	if (bytes && remote_read(p->r, table + PY_BYTES_DATA, bytes, size))
		line = py_line(&p->l, bytes, size, first, py_lasti(&p->l, raw->code, raw->instr));
	free(bytes);
	return line;
}

bool pyproc_frame(struct pyproc *p, const struct py_raw *raw, struct py_frame *out, struct pool *pool)
{
	char file[STRING_MAX], name[512];
	int32_t first = 0;

	if (!is_code(p, raw->code) || !text_field(p, raw->code, p->l.filename, file, sizeof(file)) ||
	    !text_field(p, raw->code, p->l.name, name, sizeof(name)) ||
	    !remote_read(p->r, raw->code + p->l.first_line, &first, sizeof(first)))
		return false;
	out->file = pool_strdup(pool, file);
	out->function = pool_strdup(pool, name);
	out->first_line = (uint32_t)first;
	out->line = line_of(p, raw, first);
	return true;
}

bool pyproc_type(struct pyproc *p, uint64_t object, char *name, size_t size)
{
	uint64_t type = 0, text = 0;

	return object && object % 8 == 0 && remote_word(p->r, object + PY_TYPE, &type) && type && type % 8 == 0 &&
	       remote_word(p->r, type + PY_TYPE_NAME, &text) && text && remote_string(p->r, text, name, size);
}

/* How many words a frame has: variables, then its stack. 3.9 and 3.10: the stack begins after cells, whose number is not in the code; the
 * frame says where. What inner functions use, too, is in these cells. */
static size_t frame_words(struct pyproc *p, const struct py_raw *raw, size_t *variables)
{
	uint64_t at = 0, begin = raw->frame + p->locals;
	int32_t n = 0, stack = 0;

	if (!remote_read(p->r, raw->code + p->n_locals, &n, sizeof(n)) ||
	    !remote_read(p->r, raw->code + p->stack_size, &stack, sizeof(stack)) || n < 0 || stack < 0)
		return *variables = 0;
	*variables = (size_t)n;
	if (p->stack && remote_word(p->r, raw->frame + p->stack, &at) && at >= begin &&
	    (at - begin) / 8 < PY_WORDS_MAX && (at - begin) / 8 >= *variables)
		*variables = (at - begin) / 8;
	if (*variables > PY_WORDS_MAX)
		*variables = PY_WORDS_MAX;
	return *variables + (size_t)stack < PY_WORDS_MAX ? *variables + (size_t)stack : PY_WORDS_MAX;
}

static bool read_words(struct pyproc *p, const struct py_raw *raw, uint64_t *words, size_t variables, size_t n)
{
	uint64_t stack = 0;

	if (!p->stack)
		return remote_read(p->r, raw->frame + p->locals, words, n * 8);
	return remote_read(p->r, raw->frame + p->locals, words, variables * 8) &&
	       remote_word(p->r, raw->frame + p->stack, &stack) &&
	       remote_read(p->r, stack, words + variables, (n - variables) * 8);
}

size_t pyproc_objects(struct pyproc *p, const struct py_raw *raw, uint64_t *list, size_t max)
{
	uint64_t words[PY_WORDS_MAX];
	size_t variables, n = frame_words(p, raw, &variables), kept = 0;

	if (!n || !read_words(p, raw, words, variables, n))
		return 0;
	for (size_t i = 0; i < n && kept < max; i++) {
		words[i] &= ~(uint64_t)3;
		if (words[i] >= REMOTE_PAGE && words[i] % 8 == 0)
			list[kept++] = words[i];
	}
	return kept;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0xd6e8feb86659fd93ull;
	return h ^ h >> 32;
}

/* What a pointer leads to; of an object from word 1 on, without its reference count. */
static uint64_t mix_pointee(struct pyproc *p, uint64_t h, uint64_t at, size_t from, size_t words)
{
	uint64_t w[16];

	at &= ~(uint64_t)7;
	if (at < REMOTE_PAGE || words > 16 || !remote_read(p->r, at, w, words * 8))
		return h;
	for (size_t i = from; i < words; i++)
		h = mix(h, w[i]);
	return h;
}

#define OWN_WORDS 6	/* of an object, that are looked at */

/* The words of an object that are its own, without its reference count; what lies behind it belongs to another object. Returns
 * how many there are with that one; 0 = it cannot be read. */
static size_t own_words(struct pyproc *p, uint64_t object, uint64_t w[OWN_WORDS])
{
	uint64_t basic = 0, item = 0, flags = 0, n;

	if (object < REMOTE_PAGE || object % 8 || !remote_read(p->r, object, w, 16) ||
	    !remote_word(p->r, w[1] + PY_TYPE_BASIC, &basic) || !remote_word(p->r, w[1] + PY_TYPE_ITEM, &item) ||
	    !remote_word(p->r, w[1] + PY_TYPE_FLAGS, &flags))
		return 0;
	if (item && remote_word(p->r, object + PY_COUNT, &n)) {
		n = flags & INTEGER && p->l.minor >= 12 ? n >> 3 : (int64_t)n < 0 ? -n : n;
		if (flags & INTEGER)	/* bool says that its first digit is before its digits: the next object is no part of it */
			basic = PY_INTEGER_DIGITS;
		basic += (n < OWN_WORDS ? n : OWN_WORDS) * (item < 8 ? item : 8);
	}
	n = basic < 16 ? 2 : (basic + 7) / 8;
	n = n < OWN_WORDS ? n : OWN_WORDS;
	return remote_read(p->r, object, w, n * 8) ? n : 0;
}

#define ITEMS		8	/* of a list: so many from either end */
#define ENTRIES		1024	/* of a dictionary of variables; of any other, as many as of a list */
#define DEEP		3	/* "trainer.state.global_step", "self.config['train']['step']" */
#define OBJECTS		4096	/* of a frame: then it is enough */

static uint64_t mix_object(struct pyproc *p, uint64_t h, uint64_t object, unsigned depth);

/* The first and the last of these objects and what they hold: where items come and go, their places are taken again and again. */
static uint64_t mix_items(struct pyproc *p, uint64_t h, uint64_t items, uint64_t n, unsigned depth)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t item = 0;

		if (i == ITEMS && n > (uint64_t)2 * ITEMS)
			i = n - ITEMS;
		if (!remote_word(p->r, items + i * 8, &item))
			break;
		h = mix_object(p, h, item, depth);
	}
	return h;
}

/* The values of a dictionary: those of a module's code are its variables. */
static uint64_t mix_dictionary(struct pyproc *p, uint64_t h, uint64_t dict, uint64_t most, unsigned depth)
{
	bool old = p->l.minor < 11;
	uint64_t w[PY_DICT_VALUES / 8 + 1], keys, values, n = 0, entries;
	uint8_t log2[3];

	if (!remote_read(p->r, dict, w, sizeof(w)))
		return h;
	keys = w[PY_DICT_KEYS / 8];
	values = w[PY_DICT_VALUES / 8];
	if (!remote_read(p->r, keys + PY_KEYS_SIZES, log2, sizeof(log2)))
		return h;
	h = mix(mix(h, w[PY_DICT_USED / 8]), keys);
	if (p->l.minor <= 12)
		h = mix(h, w[PY_DICT_VERSION / 8]);
	if (!remote_word(p->r, keys + (old ? PY_KEYS_ENTRIES_OLD : PY_KEYS_ENTRIES), &n))
		return h;
	if (values)	/* it shares its keys with others, and has the values by itself */
		return mix_items(p, h, values + (p->l.minor >= 13 ? PY_VALUES_FIRST : 0), n < 2 * ITEMS ? n : 2 * ITEMS,
				 depth);
	if (old) {	/* the entries are behind the indices */
		uint64_t size = 0;

		remote_word(p->r, keys + PY_KEYS_SIZES, &size);
		entries = keys + PY_KEYS_INDICES_OLD + size * (size <= 0xff ? 1 : size <= 0xffff ? 2 : 4);
	} else {
		entries = keys + PY_KEYS_INDICES + (log2[1] < 32 ? 1ull << log2[1] : 0);
	}
	for (uint64_t i = 0; i < n && i < most; i++) {
		bool with_hash = old || !log2[2];	/* keys that are not all texts */
		uint64_t value = 0;

		if (!remote_word(p->r, entries + i * (with_hash ? 24 : 16) + (with_hash ? 16 : 8), &value))
			break;
		h = mix_object(p, h, value, depth);
	}
	return h;
}

/* Attributes: an array of values, whose number is in the second byte before it, or a dictionary. 3.11 has a place for each, 3.12 one for
 * either (an odd number leads to values), 3.13 has the values behind the object. */
static uint64_t mix_attributes(struct pyproc *p, uint64_t h, uint64_t object, uint64_t flags, uint64_t type,
			       unsigned depth)
{
	uint64_t values = 0, dict = 0, basic = 0;
	uint8_t n = 0;

	if (!remote_word(p->r, object - PY_DICT_BEFORE, &dict))
		return h;
	if (p->l.minor <= 11) {
		remote_word(p->r, object - PY_VALUES_BEFORE, &values);
	} else if (p->l.minor == 12 && dict & 1) {
		values = dict + 1;
		dict = 0;
	} else if (flags & INLINE_VALUES && remote_word(p->r, type + PY_TYPE_BASIC, &basic)) {
		values = object + basic + PY_VALUES_FIRST;
	}
	if (values &&
	    remote_read(p->r, values - (p->l.minor >= 13 ? PY_VALUES_USED_BEFORE : PY_VALUES_USED_BEFORE_OLD), &n, 1))
		h = mix_items(p, h, values, n, depth);
	return dict ? mix_object(p, h, dict, depth) : h;
}

/* An object and what it points to: numbers, sizes of containers, positions of iterators, attributes, and of these the same, `depth` times. */
static uint64_t mix_object(struct pyproc *p, uint64_t h, uint64_t object, unsigned depth)
{
	uint64_t w[OWN_WORDS] = {0}, flags = 0, buffer = 0, dict = 0;
	size_t n = own_words(p, object, w);

	h = mix(h, object);
	for (size_t i = 1; i < n; i++)
		h = mix(h, w[i]);
	if (!n || !depth || ++p->mixed > OBJECTS || !remote_word(p->r, w[1] + PY_TYPE_FLAGS, &flags) ||
	    !remote_word(p->r, w[1] + PY_TYPE_BUFFER, &buffer))
		return h;
	if (buffer && !remote_word(p->r, buffer, &buffer))	/* every class has a place for the function, few have one */
		return h;
	depth--;
	for (size_t i = 2; buffer && i < n; i++)	/* an array: one of these points to its numbers */
		h = mix_pointee(p, h, w[i], 0, 16);
	if (flags & LIST)
		h = mix_items(p, h, w[PY_LIST_ITEMS / 8], w[PY_COUNT / 8], depth);
	if (flags & CLASS && remote_word(p->r, object + PY_TYPE_DICT, &dict))
		return mix_object(p, h, dict, depth);
	if (flags & DICTIONARY)
		return mix_dictionary(p, h, object, 2 * ITEMS, depth);
	if (flags & MANAGED_DICT && p->l.minor >= 11)
		return mix_attributes(p, h, object, flags, w[1], depth);
	/* before 3.11, an instance's dictionary; a module's is not its program's */
	return n > 2 ? mix_object(p, h, w[2], flags & HEAP_TYPE ? depth : 0) : h;
}

uint64_t pyproc_contents(struct pyproc *p, const struct py_raw *raw)
{
	uint64_t words[PY_WORDS_MAX], h = 1, globals = 0;
	size_t variables, n = frame_words(p, raw, &variables);

	if (!n || !read_words(p, raw, words, variables, n))
		return 0;
	p->mixed = 0;
	for (size_t i = 0; i < variables; i++)
		h = mix_object(p, h, words[i] & ~(uint64_t)3, DEEP);
	for (size_t i = variables; i < n; i++) {	/* of the stack only iterators: what was popped is still there, and may be anything */
		char name[32];

		if (pyproc_type(p, words[i] & ~(uint64_t)3, name, sizeof(name)) && strstr(name, "iterator"))
			h = mix_object(p, h, words[i] & ~(uint64_t)3, DEEP);
	}
	if (!variables && remote_word(p->r, raw->frame + p->globals, &globals))
		h = mix_dictionary(p, h, globals, ENTRIES, DEEP);
	return h;
}
