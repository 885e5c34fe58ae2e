/* SPDX-License-Identifier: Apache-2.0
 * The line of code that represents a stack of a snapshot (see snap_lines.h).
 */
#include "read/snapshot/snap_lines.h"

#include <stdlib.h>

#include "base/mem.h"

#define OWNER_NOT_ASKED	255

static enum snap_owner file_owner(const struct snapshot *s, uint8_t *known, uint32_t file, snap_owner_fn *owner)
{
	if (known[file] == OWNER_NOT_ASKED)
		known[file] = (uint8_t)owner(snap_text(s, file), s->torch_path);
	return known[file];
}

static struct snap_line snap_stack_line(const struct snapshot *s, uint32_t stack, uint8_t *known, snap_owner_fn *owner)
{
	struct snap_line l = {0};
	const uint32_t *frames;
	size_t n;

	frames = snap_stack(s, stack, &n);
	for (size_t i = 0; i < n; i++) {
		const struct snap_frame *f = snap_frame(s, frames[i]);
		enum snap_owner o = file_owner(s, known, f->file, owner);

		if (o == SNAP_OWN)
			return (struct snap_line){f->file, f->function, f->line, 0};
		if (o == SNAP_LIBRARY && !l.file)
			l = (struct snap_line){f->file, f->function, f->line, 1};
	}
	return l;
}

void snap_lines_find(struct snap_lines *l, const struct snapshot *s, snap_owner_fn *owner)
{
	static const struct snap_line none;
	uint8_t *known = xmalloc(s->text.n + 1);
	struct snap_line line;
	uint32_t id;

	for (size_t i = 0; i < s->text.n; i++)
		known[i] = OWNER_NOT_ASKED;
	intern_init(&l->table);
	intern_put(&l->table, &none, sizeof(none));
	l->of_stack = xcalloc(s->stack.n + 1, sizeof(*l->of_stack));
	for (uint32_t i = 1; i < s->stack.n; i++) {
		line = snap_stack_line(s, i, known, owner);
		id = intern_put(&l->table, &line, sizeof(line));
		l->of_stack[i] = id == INTERN_FULL ? 0 : id;
	}
	free(known);
}

void snap_lines_release(struct snap_lines *l)
{
	intern_release(&l->table);
	free(l->of_stack);
	l->of_stack = NULL;
}

const struct snap_line *snap_line(const struct snap_lines *l, uint32_t line)
{
	return intern_get(&l->table, line < l->table.n ? line : 0, NULL);
}
