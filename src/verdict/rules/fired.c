/* SPDX-License-Identifier: Apache-2.0
 * Records which rules matched (see fired.h).
 */
#include "verdict/rules/fired.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "knowledge/kb.h"

/* Opened at every use, not kept: a test may close all descriptors of its process, and another file may get the number. */
static void append_line(const char *path, const char *line, size_t len)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

	ssize_t written;

	if (fd < 0)
		return;
	written = write(fd, line, len);	/* one write per line: suites run in parallel */
	(void)written;			/* a rule that was not recorded is reported as one that never matched */
	close(fd);
}

void rule_fired(const struct cause *c, const struct when *w)
{
	/* A rule may match thousands of times in one process; recording it twice does no harm. */
	static const struct when *lately[256];
	size_t at = (uintptr_t)w / sizeof(*w) % (sizeof(lately) / sizeof(lately[0]));
	const char *path = getenv("CUWHY_RULES_FIRED");
	char line[256];
	int len;

	if (!path || !path[0] || lately[at] == w)
		return;
	lately[at] = w;
	len = snprintf(line, sizeof(line), "%s/%s\n", AT(c->id), AT(w->id));
	if (len > 0 && (size_t)len < sizeof(line))
		append_line(path, line, (size_t)len);
}
