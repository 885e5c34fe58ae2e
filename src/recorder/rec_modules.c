/* SPDX-License-Identifier: Apache-2.0
 * In which module of the program's model are we? The innermost method on the Python stack whose `self` is a torch.nn.Module says so.
 *
 * The stack's identity does not help: in a loop over layers it is the same for all of them. So `self` is read at each event, from where the last
 * walk of the stack has found the innermost methods; for a module that is known, that is five loads.
 *
 * Each module has a number, and a name by which the next one around it reaches it; that is read once, while the module runs and so is alive. An
 * address proves nothing later: the module may be gone, and another one be there. Up to Python 3.12, each dictionary says when it was last
 * changed, in a count that is never the same for two of them; as long as that of the module's attributes is the same, so is the module. Where
 * it is not, or Python has no such count, the name is read again. If it is another one, that is another module; and if the memory of both
 * cannot be told apart, the recording says so. All names are read again now and then, since a module may be given to another one.
 */
#include <errno.h>
#include <string.h>

#include "rec_python_bytecode.h"
#include "rec_segment.h"

#define INDEX		8192u	/* a power of two */
#define PROBES		16u
#define TYPES		128u	/* likewise */
#define OUTWARD		24u	/* methods that are looked at, from the innermost on */
#define VARIABLES	64u	/* of an optimizer's method that are looked at */
#define NESTED		24u	/* modules around a new one */
#define FIRST_TICKS	((uint64_t)1 << 16)	/* some ten microseconds */
#define SOON_TICKS	((uint64_t)1 << 26)
#define LATE_TICKS	((uint64_t)1 << 36)	/* half a minute or so; without a mark that is no other module's: */
#define EARLY_TICKS	((uint64_t)1 << 33)

struct known {
	const char *self, *type;
	uint64_t mark;			/* module_mark() */
	uint64_t every, until;		/* ticks: for how long its name counts, and the end of that */
	struct module_birth birth;
};

HOT_DATA static struct {
	_Atomic uint32_t generation;	/* of the recording that all this belongs to */
	struct cw_module *list;		/* in the recording */
	uint32_t n;
	bool off;
} modules;
static struct known known[CW_MODULES];
static _Atomic uint16_t index_of[INDEX];	/* by address */
static _Atomic uint64_t types[TYPES];		/* addresses of types, and in their low bits what they are */
_Static_assert(PYTHON_CELL < 8, "it is in the low bits");

static struct spin modules_lock;
LOCK_LISTED(modules, modules_lock);

static inline const char *word_at(const char *from)
{
	const char *v;

	memcpy(&v, from, sizeof(v));
	return (const char *)((uintptr_t)v & ~7ul);	/* 3.14 tags references */
}

static __attribute__((noinline)) enum torch_class judge_type(const char *type)
{
	enum torch_class v = type == py.f.cell_type ? PYTHON_CELL : torch_class_of(type);

	if (v != TORCH_UNREADABLE)
		atomic_store_explicit(&types[(uintptr_t)type >> 4 & (TYPES - 1)], (uintptr_t)type | v,
				      memory_order_relaxed);
	return v;
}

static inline enum torch_class class_of(const char *type)
{
	uint64_t v = atomic_load_explicit(&types[(uintptr_t)type >> 4 & (TYPES - 1)], memory_order_relaxed);

	return likely((v & ~7ul) == (uintptr_t)type) ? (enum torch_class)(v & 7) : judge_type(type);
}

/* A variable of a frame and its type, or what it holds for functions inside; NULL: it has no value. */
static inline const char *variable(const char *at, const char **type, enum torch_class *class)
{
	const char *v = word_at(at);

	*class = TORCH_NONE;
	if (unlikely(!v))
		return NULL;
	*type = word_at(v + PY_TYPE);
	*class = class_of(*type);
	if (likely(*class != PYTHON_CELL))
		return v;
	v = word_at(v + PY_CELL_OF);
	if (v) {
		*type = word_at(v + PY_TYPE);
		*class = class_of(*type);
	}
	return v;
}

/* The `self` of a link if it is a module; NULL: it is something else. */
static inline const char *self_of(const struct py_chain *c, uint32_t link, const char **type)
{
	enum torch_class class;
	const char *self = variable(c->link[link].frame + py_bytecode.locals, type, &class);

	return class == TORCH_MODULE ? self : NULL;
}

/* A method of an optimizer: the module whose parameter is the only one among its variables. */
static __attribute__((noinline)) uint32_t module_of_state(const struct py_chain *c, uint32_t link)
{
	uint32_t n = LOOPS_LOCALS(c->kept[link].loops);
	const char *parameter = NULL, *type, *v;
	enum torch_class class;

	for (uint32_t i = 1; i < n && i < VARIABLES; i++) {
		v = variable(c->link[link].frame + py_bytecode.locals + 8 * (size_t)i, &type, &class);
		if (class != TORCH_PARAMETER || v == parameter)
			continue;
		if (parameter)
			return 0;
		parameter = v;
	}
	return parameter && modules.generation == rec.generation ? parameter_module(parameter) : 0;
}

static inline uint32_t place_of(const char *self)
{
	return (uint32_t)((uintptr_t)self * 0x9e3779b97f4a7c15ull >> 40) & (INDEX - 1);
}

/* Its number, or 0 and where it would be. */
static inline uint32_t find(const char *self, uint32_t *place)
{
	uint32_t at = place_of(self), n;

	for (uint32_t i = 0; i < PROBES; i++, at = (at + 1) & (INDEX - 1)) {
		*place = at;
		n = atomic_load_explicit(&index_of[at], memory_order_acquire);
		if (!n || known[n].self == self)
			return n;
	}
	*place = INDEX;
	return 0;
}

static bool start(void)
{
	if (modules.generation == rec.generation)
		return !modules.off;
	memset(index_of, 0, sizeof(index_of));
	parameters_forget();
	modules.n = 1;
	modules.list = chunk_new(CW_CHUNK_MODULES, CW_MODULES * sizeof(*modules.list), 0);
	modules.off = !modules.list;
	atomic_store(&modules.generation, rec.generation);
	return !modules.off;
}

/* Still what it was called, by a module of the same class, which is still called what it was called? */
static bool is_still(uint32_t n)
{
	for (unsigned depth = 0; depth < NESTED; depth++) {
		uint32_t parent = modules.list[n].parent;
		const char *type;

		if (!parent)
			return true;
		if (!rec_read_memory(&type, known[parent].self + PY_TYPE, sizeof(type)) || type != known[parent].type ||
		    module_name(known[parent].self, known[n].self) != modules.list[n].name)
			return false;
		n = parent;
	}
	return false;
}

/* Who has it: the innermost module around it in which it is found, or none of them. */
static void find_parent(uint32_t n, uint32_t outer)
{
	shared_set(&modules.list[n].parent, 0);
	for (unsigned i = 0; outer && outer != n && i < NESTED; i++, outer = modules.list[outer].parent) {
		uint32_t name = module_name(known[outer].self, known[n].self);

		if (name) {
			modules.list[n].name = name;
			shared_set(&modules.list[n].parent, outer);
			return;
		}
	}
}

/* How long what was read counts: longer and longer. */
static void set_until(uint32_t n, uint64_t now)
{
	struct known *k = &known[n];

	if (modules.list[n].parent && k->mark & 1 && k->every < SOON_TICKS)
		k->every = SOON_TICKS;
	parameters_learn(n, k->self);
	k->birth = module_birth(k->self);
	k->until = now + k->every;
	k->every = k->every < (k->mark & 1 ? LATE_TICKS : EARLY_TICKS) ? 4 * k->every : k->every;
}

static uint32_t add(const char *self, const char *type, uint64_t mark, uint32_t outer, uint32_t place)
{
	uint32_t n = modules.n, class_name = n < CW_MODULES && place < INDEX ? module_class(type) : 0;

	if (!class_name)
		return 0;
	known[n] = (struct known){.self = self, .type = type, .mark = mark, .every = FIRST_TICKS};
	modules.list[n].ticks = rec_ticks();
	modules.list[n].address = (uintptr_t)self;
	find_parent(n, outer);
	set_until(n, modules.list[n].ticks);
	shared_set(&modules.list[n].class_name, class_name);
	modules.n++;
	atomic_store_explicit(&index_of[place], (uint16_t)n, memory_order_release);
	return n;
}

/* A module that is known, but something has changed, or it was long ago. False: it is not that one. */
static bool is_the_same(uint32_t n, const char *type, uint64_t mark)
{
	struct known *k = &known[n];

	if (k->type == type && k->mark == mark && mark & 1)
		return true;
	if (k->type == type && (module_is_born(k->self, &k->birth) || is_still(n))) {
		k->mark = mark;
		return true;
	}
	if (!(k->mark & 1))
		shared_set(&modules.list[n].flags, modules.list[n].flags | CW_MODULE_UNSURE);
	return false;
}

static inline bool is_known(uint32_t n, const char *type, uint64_t mark, uint64_t now)
{
	return known[n].mark == mark && known[n].type == type && now < known[n].until;
}

static uint32_t module_at(const struct py_chain *c, uint32_t link, unsigned depth);

/* Under the lock. */
static uint32_t learn(const struct py_chain *c, uint32_t link, const char *self, const char *type, unsigned depth)
{
	uint64_t mark = module_mark(self, type), now;
	uint32_t place, n, outer;

	if (!start())
		return 0;
	n = find(self, &place);
	now = rec_ticks();
	if (n && is_known(n, type, mark, now))
		return n;
	outer = depth < NESTED ? module_at(c, c->kept[link - 1].method, depth + 1) : 0;
	if (!n || !is_the_same(n, type, mark))
		return add(self, type, mark, outer, place);
	if (now < known[n].until)
		return n;
	if (!modules.list[n].parent || !is_still(n))	/* it is the same one, and somebody else has it now */
		find_parent(n, outer);
	set_until(n, now);
	return n;
}

/* The number of the innermost module from this link on; methods of it around it are itself. */
static uint32_t module_at(const struct py_chain *c, uint32_t link, unsigned depth)
{
	const char *self, *type;

	for (unsigned i = 0; link && i < OUTWARD; i++, link = c->kept[link - 1].method) {
		self = self_of(c, link, &type);
		if (!self)
			continue;
		while (link > 1 && c->kept[link - 1].method && self_of(c, c->kept[link - 1].method, &type) == self)
			link = c->kept[link - 1].method;
		type = word_at(self + PY_TYPE);
		return learn(c, link, self, type, depth);
	}
	return 0;
}

static __attribute__((noinline)) uint32_t module_slowly(struct py_chain *c, uint32_t link)
{
	int saved = errno;
	uint32_t n = 0;

	if (spin_try(&modules_lock)) {
		n = module_at(c, link, 0);
		spin_done(&modules_lock);
	}
	errno = saved;
	return n;
}

/* The same one as at the last event? */
static inline bool is_last(const struct rec_thread *t, const char *self, uint64_t ticks)
{
	return self && self == t->module.self && word_at(self + PY_TYPE) == t->module.type && ticks < t->module.until &&
	       t->module.generation == rec.generation && module_mark(self, t->module.type) == t->module.mark;
}

/* It has just been walked. */
HOT uint32_t module_here(struct rec_thread *t, uint64_t ticks)
{
	struct py_chain *c = &t->chain;
	enum torch_class class = TORCH_NONE;
	const char *self = NULL, *type;
	uint32_t n, place, link = c->kept[c->n].method;
	uint64_t mark;

	if (link && likely(is_last(t, word_at(c->link[link].frame + py_bytecode.locals), ticks)))
		return t->module.number;
	for (unsigned i = 0; link && i < OUTWARD; i++, link = c->kept[link - 1].method) {
		self = variable(c->link[link].frame + py_bytecode.locals, &type, &class);
		if (likely(class == TORCH_MODULE))
			break;
		if (unlikely(class == TORCH_OPTIMIZER))
			return module_of_state(c, link);
	}
	if (!link || class != TORCH_MODULE)
		return 0;
	mark = module_mark(self, type);
	n = modules.generation == rec.generation ? find(self, &place) : 0;
	if (!n || !is_known(n, type, mark, ticks))
		n = module_slowly(c, link);
	t->module.self = n ? self : NULL;
	t->module.type = type;
	t->module.until = known[n].until;
	t->module.mark = mark;
	t->module.generation = rec.generation;
	t->module.number = n;
	return n;
}
