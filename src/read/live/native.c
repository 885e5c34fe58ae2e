/* SPDX-License-Identifier: Apache-2.0
 * Native stacks (see native.h): by unwind tables where libdw is there (unwind.h), else by return addresses: words of the stack that point
 * behind a call instruction. What was returned from long ago may still lie there, so such a frame is a hint, not a proof.
 */
#include "read/live/native.h"

#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "case/live.h"
#include "formats/demangle.h"
#include "read/live/remote.h"
#include "read/live/target.h"
#include "read/live/unwind.h"

void native_copy(struct native_stack *s, struct remote *r, uint64_t sp, uint64_t pc, const uint64_t reg[16])
{
	s->pc = pc;
	s->sp = sp;
	s->all = reg != NULL;
	if (reg)
		memcpy(s->reg, reg, sizeof(s->reg));
	s->n = 0;
	while (sp && s->n < NATIVE_STACK) {
		uint64_t at = sp + s->n;
		size_t part = REMOTE_PAGE - at % REMOTE_PAGE;

		if (part > NATIVE_STACK - s->n)
			part = NATIVE_STACK - s->n;
		if (!remote_read(r, at, s->bytes + s->n, part))
			break;
		s->n += part;
	}
}

/* call rel32; call through a register or memory, with or without a prefix and a displacement. */
static bool follows_call(const uint8_t b[7])
{
	static const int ff[] = {5, 4, 3, 1, 0};	/* where 0xff is, if the instruction ends at 7 */

	if (b[2] == 0xe8)
		return true;
	for (size_t i = 0; i < sizeof(ff) / sizeof(ff[0]); i++)
		if (b[ff[i]] == 0xff && (b[ff[i] + 1] & 0x38) == 0x10)
			return true;
	return false;
}

#define NAME_MAX_SHOWN	160	/* C++ template names go on for pages */

static const char *readable(const char *name, struct pool *pool)
{
	char *plain = demangle(name);
	const char *kept = plain ? pool_copy(pool, plain, strnlen(plain, NAME_MAX_SHOWN)) : pool_strdup(pool, name);

	free(plain);
	return kept;
}

static struct native_frame name_frame(struct target *t, struct module *m, uint64_t address, struct pool *pool)
{
	struct native_frame f = {.library = pool_strdup(pool, m->base)};
	const char *name = module_function(t, m, address, &f.offset);

	f.function = name ? readable(name, pool) : NULL;
	if (!name)
		f.offset = address - m->start;
	return f;
}

/* As far as the unwinder comes; a stack of one frame tells no more than the program counter. */
static size_t unwound_frames(const struct native_stack *s, struct target *t, struct unwinder *u,
			     struct native_frame *list, struct pool *pool)
{
	uint64_t pc[UNWIND_MAX];
	size_t n = u ? unwind(u, s, pc) : 0, kept = 0;

	for (size_t i = 0; n > 1 && i < n && kept < NATIVE_MAX; i++) {
		struct module *m = target_module(t, pc[i]);

		if (!m)
			continue;
		list[kept] = name_frame(t, m, pc[i], pool);
		list[kept++].unwound = true;
	}
	return kept;
}

size_t native_frames(const struct native_stack *s, struct target *t, struct remote *r, struct unwinder *u,
		     struct native_frame **out, struct pool *pool)
{
	struct native_frame *list = pool_alloc(pool, NATIVE_MAX * sizeof(*list));
	struct module *m = s->pc ? target_module(t, s->pc) : NULL;
	size_t n = unwound_frames(s, t, u, list, pool);

	*out = list;
	if (n)
		return n;
	if (m) {
		list[n] = name_frame(t, m, s->pc, pool);
		list[n++].unwound = true;
	}
	for (size_t i = 0; i + 8 <= s->n && n < NATIVE_MAX; i += 8) {
		uint8_t before[7];
		uint64_t word;

		memcpy(&word, s->bytes + i, sizeof(word));
		m = target_module(t, word);
		if (m && remote_read(r, word - sizeof(before), before, sizeof(before)) && follows_call(before))
			list[n++] = name_frame(t, m, word - 1, pool);
	}
	return n;
}
