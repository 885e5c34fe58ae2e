/* SPDX-License-Identifier: Apache-2.0
 * A machine as an input: the bundle that `cuwhy doctor --bundle` wrote (see find/input.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/input.h"
#include "read/machine/machine.h"
#include "find/host/observe.h"

/* The first key of a bundle; any other JSON is a log. */
static bool machine_sniff(const struct sniffed *s)
{
	static const char key[] = "\"cuwhy_bundle\"";
	size_t i = 0;

	while (i < s->n && isspace(s->head[i]))
		i++;
	if (s->folder || s->packed || i == s->n || s->head[i++] != '{')
		return false;
	while (i < s->n && isspace(s->head[i]))
		i++;
	return s->n - i >= sizeof(key) - 1 && memcmp(s->head + i, key, sizeof(key) - 1) == 0;
}

static void *machine_source_open(const char *path, struct err *e)
{
	struct machine *m = xcalloc(1, sizeof(*m));

	if (machine_load(m, path, e) == 0)
		return m;
	machine_release(m);
	free(m);
	return NULL;
}

static void machine_source_close(void *it)
{
	if (!it)
		return;
	machine_release(it);
	free(it);
}

const struct input input_machine = {
	.name = MACHINE_OBSERVER,
	.what = "a doctor bundle",
	.sniff = machine_sniff,
	.open = machine_source_open,
	.close = machine_source_close,
};
