/* SPDX-License-Identifier: Apache-2.0
 * A signal handler that leaves a CUDA call with siglongjmp, as cysignals, SageMath and C++ timeouts do.
 *
 * The wrapper that it leaves never returns: without this, the thread would count as inside that call forever, and none
 * of its later calls would be recorded.
 */
#include "rec.h"

typedef void jump_fn(void *env, int value);

#define JUMPS(X) X(longjmp) X(_longjmp) X(siglongjmp) X(__longjmp_chk)

enum {
#define X(name) JUMP_##name,
	JUMPS(X)
#undef X
	JUMP_COUNT
};

static const char *const jump_name[JUMP_COUNT] = {
#define X(name) #name,
	JUMPS(X)
#undef X
};
static _Atomic(jump_fn *) real_jump[JUMP_COUNT];

/* At load: in a signal handler, the loaded libraries must not be searched. */
__attribute__((constructor)) static void find_jumps(void)
{
	for (int i = 0; i < JUMP_COUNT; i++)
		atomic_store(&real_jump[i], (jump_fn *)elf_symbol_after_us(jump_name[i]));
}

/* If the driver itself jumps, inside the call, nothing is lost: a call that it makes afterwards counts as the program's. */
static void leave_by_jump(void)
{
	struct rec_thread *t = rec_self;

	if (rec_nesting == REC_NEVER_HERE)
		return;
	rec_nesting = 0;
	if (!t)		/* nothing was recorded on this thread yet */
		return;
	locks_release_mine();
	dump_left();
	wait_left();
	t->runtime_caller = NULL;
	t->log_len = 0;
	t->chain.n = t->chain.off = 0;	/* it may have been left half written */
}

#define X(name)                                                                          \
	EXPORT void name(void *env, int value) __attribute__((noreturn));                \
	void name(void *env, int value)                                                  \
	{                                                                                \
		jump_fn *real = atomic_load(&real_jump[JUMP_##name]);                    \
\
		if (unlikely(!real))	/* called by a constructor that runs before ours */ \
			real = (jump_fn *)elf_symbol_after_us(#name);                    \
		if (unlikely(rec_nesting))                                               \
			leave_by_jump();                                                 \
		real(env, value);                                                        \
		__builtin_unreachable();                                                 \
	}
JUMPS(X)
#undef X
