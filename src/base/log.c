/* SPDX-License-Identifier: Apache-2.0
 * Debug lines on stderr, chosen by CUWHY_DEBUG.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"

/* The level that one item ("area:2", "area" or "2") gives to an area; 0 = none. */
static int item_level(const char *item, size_t len, const char *area)
{
	const char *colon = memchr(item, ':', len);
	size_t name = colon ? (size_t)(colon - item) : len;

	if (!colon && len == 1 && *item >= '0' && *item <= '9')
		return *item - '0';
	if (strlen(area) != name || memcmp(item, area, name) != 0)
		return 0;
	return colon && colon + 1 < item + len ? colon[1] - '0' : 1;
}

bool log_on(const char *area, int level)
{
	const char *s = getenv("CUWHY_DEBUG");
	size_t len;

	while (s && *s) {
		len = strcspn(s, ",");
		if (item_level(s, len, area) >= level)
			return true;
		s += len;
		s += *s == ',';
	}
	return false;
}

void log_line(const char *area, int level, const char *fmt, ...)
{
	char line[512];
	va_list args;

	if (!log_on(area, level))
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	fprintf(stderr, "cuwhy[%s]: %s\n", area, line);
}
