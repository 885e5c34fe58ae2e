/* SPDX-License-Identifier: Apache-2.0
 * GPU core dumps as an input (see input/input.h).
 */
#include "input/dump/input.h"

#include <stdlib.h>

#include "base/mem.h"
#include "input/dump/culprit.h"
#include "input/dump/observe.h"
#include "input/input.h"

/* Anything compressed that is not a snapshot is opened as a dump: dumps are what people compress. */
static bool dump_sniff(const struct sniffed *s)
{
	return !s->folder && (s->packed ? !(s->n >= 2 && s->head[0] == 0x80) : dump_is_dump(s->head, s->n));
}

static void *dump_source_open(const char *path, struct err *e)
{
	struct dump *d = dump_open(path, e);
	struct dump_source *s;

	if (!d)
		return NULL;
	s = xcalloc(1, sizeof(*s));
	s->dump = d;
	s->culprit = culprit_find(d);
	return s;
}

static void dump_source_observe(void *it, struct casefile *c)
{
	dump_observe(c, ((struct dump_source *)it)->culprit);
}

static void dump_source_close(void *it)
{
	struct dump_source *s = it;

	if (!s)
		return;
	culprit_free(s->culprit);
	dump_free(s->dump);
	free(s);
}

const struct input input_dump = {
	.name = DUMP_OBSERVER,
	.what = "a GPU core dump",
	.sniff = dump_sniff,
	.open = dump_source_open,
	.observe = dump_source_observe,
	.close = dump_source_close,
};
