/* SPDX-License-Identifier: Apache-2.0
 * Recordings as an input (see find/input.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cuwhy/format.h"
#include "find/input.h"
#include "find/failure/observe.h"
#include "read/recording/recording.h"
#include "read/recording/trace.h"

static bool recording_sniff(const struct sniffed *s)
{
	return s->folder || str_ends(s->path, PART_SUFFIX) ||
	       (s->n >= sizeof(CW_MAGIC) - 1 && memcmp(s->head, CW_MAGIC, sizeof(CW_MAGIC) - 1) == 0);
}

static void *recording_source_open(const char *path, struct err *e)
{
	struct recording *r = xcalloc(1, sizeof(*r));

	if (recording_read(r, path, e) == 0)
		return r;
	recording_release(r);
	free(r);
	return NULL;
}

static void recording_source_close(void *it)
{
	if (!it)
		return;
	recording_release(it);
	free(it);
}

const struct input input_recording = {
	.name = RECORDING_OBSERVER,
	.what = "a recording",
	.sniff = recording_sniff,
	.open = recording_source_open,
	.close = recording_source_close,
};
