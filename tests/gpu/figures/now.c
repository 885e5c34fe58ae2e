/* SPDX-License-Identifier: Apache-2.0
 * What this process's own recording says of device 0 at this moment: allocated, reserved, driver, pinned.
 *
 * Finds the recorder's memory among the mappings of the process and reads it with the format's header alone.
 */
#include "cuwhy/format.h"

#include <stdio.h>
#include <string.h>

static const struct cw_header *find(void)
{
	const struct cw_header *found = NULL;
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[512];

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx rw-s", &start, &end) != 2 || !strstr(line, "/memfd:cuwhy") ||
		    end - start < sizeof(*found))
			continue;
		if (memcmp((const void *)start, "CUWHYREC", 8) == 0)
			found = (const void *)start;
	}
	if (maps)
		fclose(maps);
	return found;
}

int now(uint64_t out[4])
{
	static const struct cw_header *h;
	const struct cw_memory_now *m;

	h = h ? h : find();
	if (!h)
		return 0;
	m = &h->memory[0];
	out[0] = m->allocated;
	out[1] = m->reserved;
	out[2] = m->driver;
	out[3] = h->pinned_bytes;
	return 1;
}
