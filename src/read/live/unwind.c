/* SPDX-License-Identifier: Apache-2.0
 * libdw's unwinder, over a copy of the stack and the registers that are known (see unwind.h).
 *
 * Of a thread that sleeps in a system call, only the stack pointer and the program counter are known: its callers' registers are found on
 * the stack as far as somebody saved them. Debug information is not looked for: the tables in the libraries themselves suffice, and
 * libdw would ask servers for it.
 */
#include "read/live/unwind.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "read/live/native.h"
#include "read/live/remote.h"
#include "read/live/target.h"

#if __has_include(<elfutils/libdwfl.h>)
#include <elfutils/libdwfl.h>

#define LIBRARY	"libdw.so.1"

#define FUNCTIONS(X)                  \
	X(dwfl_begin)                 \
	X(dwfl_end)                   \
	X(dwfl_linux_proc_report)     \
	X(dwfl_report_end)            \
	X(dwfl_attach_state)          \
	X(dwfl_getthread_frames)      \
	X(dwfl_frame_pc)              \
	X(dwfl_thread_state_registers) \
	X(dwfl_thread_state_register_pc)

static struct {
#define X(name) __typeof__(name) *name;
	FUNCTIONS(X)
#undef X
} dw;

struct unwinder {
	Dwfl *dwfl;
	pid_t pid;
	struct remote *r;
	const struct native_stack *stack;	/* of the thread that is unwound now */
	uint64_t *pc;
	size_t n;
};

static bool load(void)
{
	static void *lib;

	if (lib)
		return true;
	lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return false;
#define X(name)                                                   \
	*(void **)(void *)&dw.name = dlsym(lib, #name);           \
	if (!dw.name) {                                           \
		dlclose(lib);                                     \
		lib = NULL;                                       \
		return false;                                     \
	}
	FUNCTIONS(X)
#undef X
	return true;
}

static pid_t asked_of;	/* find_elf gets no argument of ours */

static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, char **file, Elf **elf)
{
	char path[4096];

	(void)module, (void)data, (void)base, (void)elf;
	if (name[0] != '/')
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)asked_of, name);
	*file = xstrdup(path);	/* libdw frees it */
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

static int no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base, const char *file,
			const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc, (void)found;
	return -1;
}

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	struct unwinder *u = arg;
	bool first = !*thread;

	(void)dwfl;
	*thread = u;
	return first ? u->pid : 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	(void)dwfl, (void)tid;
	*thread = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *to, void *arg)
{
	struct unwinder *u = arg;
	const struct native_stack *s = u->stack;

	(void)dwfl;
	if (at >= s->sp && at - s->sp + sizeof(*to) <= s->n) {
		memcpy(to, s->bytes + (at - s->sp), sizeof(*to));
		return true;
	}
	return remote_read(u->r, at, to, sizeof(*to));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct native_stack *s = ((struct unwinder *)arg)->stack;
	Dwarf_Word all[16], sp = s->sp;

	for (size_t i = 0; i < 16; i++)
		all[i] = s->reg[i];
	dw.dwfl_thread_state_register_pc(thread, s->pc);
	return s->all ? dw.dwfl_thread_state_registers(thread, 0, 16, all)
		      : dw.dwfl_thread_state_registers(thread, 7, 1, &sp);
}

static int note_frame(Dwfl_Frame *frame, void *arg)
{
	struct unwinder *u = arg;
	bool active = false;
	Dwarf_Addr pc;

	if (u->n == UNWIND_MAX || !dw.dwfl_frame_pc(frame, &pc, &active))
		return DWARF_CB_ABORT;
	u->pc[u->n++] = active || !pc ? pc : pc - 1;
	return DWARF_CB_OK;
}

static const Dwfl_Callbacks callbacks = {.find_elf = find_elf, .find_debuginfo = no_debuginfo};
static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

struct unwinder *unwind_open(const struct target *t, struct remote *r, const char **why)
{
	struct unwinder *u;

	*why = "libdw is not installed: on Debian, apt-get install libdw1";
	if (!load())
		return NULL;
	*why = "libdw could not read what is mapped in the process";
	u = xcalloc(1, sizeof(*u));
	u->pid = asked_of = t->pid;
	u->r = r;
	u->dwfl = dw.dwfl_begin(&callbacks);
	if (u->dwfl && dw.dwfl_linux_proc_report(u->dwfl, t->pid) == 0 && dw.dwfl_report_end(u->dwfl, NULL, NULL) == 0 &&
	    dw.dwfl_attach_state(u->dwfl, NULL, t->pid, &thread_callbacks, u)) {
		*why = NULL;
		return u;
	}
	unwind_close(u);
	return NULL;
}

void unwind_close(struct unwinder *u)
{
	if (u && u->dwfl)
		dw.dwfl_end(u->dwfl);
	free(u);
}

size_t unwind(struct unwinder *u, const struct native_stack *s, uint64_t pc[UNWIND_MAX])
{
	if (!s->pc || !s->n)
		return 0;
	asked_of = u->pid;
	u->stack = s;
	u->pc = pc;
	u->n = 0;
	dw.dwfl_getthread_frames(u->dwfl, u->pid, note_frame, u);
	return u->n;
}

#else

struct unwinder *unwind_open(const struct target *t, struct remote *r, const char **why)
{
	(void)t, (void)r;
	*why = "this cuwhy was built without libdw";
	return NULL;
}

void unwind_close(struct unwinder *u)
{
	(void)u;
}

size_t unwind(struct unwinder *u, const struct native_stack *s, uint64_t pc[UNWIND_MAX])
{
	(void)u, (void)s, (void)pc;
	return 0;
}

#endif
