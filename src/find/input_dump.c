/* SPDX-License-Identifier: Apache-2.0
 * GPU core dumps as an input (see find/input.h).
 */
#include "find/input_dump.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"
#include "find/input.h"

/* Anything compressed that is not a snapshot is opened as a dump: dumps are what people compress. */
static bool dump_sniff(const struct sniffed *s)
{
	return !s->folder && (dump_is_dump(s->head, s->n) || (s->packed && !s->n));
}

/* core.cuda.HOST.PID, perhaps with .gz behind it. */
static uint32_t pid_of_name(const char *path)
{
	static const char driver[] = "core.cuda.";
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *at;
	size_t n = strlen(name) - (str_ends(name, ".gz") ? 3 : 0);
	unsigned long pid;
	char *end;

	if (!str_starts(name, driver) || n <= sizeof(driver))
		return 0;
	for (at = name + n; at[-1] >= '0' && at[-1] <= '9';)
		at--;
	if (at[-1] != '.' || at < name + sizeof(driver))
		return 0;
	pid = strtoul(at, &end, 10);
	return end == name + n && pid <= INT32_MAX ? (uint32_t)pid : 0;
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
	s->pid = pid_of_name(path);
	s->written_ns = fs_written_ns(path);
	return s;
}

static void dump_source_observe(void *it, struct casefile *c)
{
	if (!fact_known(c, FACT_fault_kind))	/* otherwise it was joined with its launch */
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
