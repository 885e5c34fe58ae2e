/* SPDX-License-Identifier: Apache-2.0
 * Numbers for people.
 */
#include "base/format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

char *format_bytes(char *buf, size_t size, double bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	int unit = -1;
	double v = bytes;

	while (fabs(v) >= 1024 && unit < 5) {
		v /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(buf, size, "%.0f byte%s", bytes, bytes == 1 ? "" : "s");
	else
		snprintf(buf, size, "%.1f %s", v, units[unit]);
	return buf;
}

char *format_thousands(char *buf, size_t size, double number)
{
	char digits[64];
	size_t n, out = 0;
	const char *s = digits;

	snprintf(digits, sizeof(digits), "%.0f", number);
	if (number != floor(number)) {
		snprintf(buf, size, "%.2f", number);
		return buf;
	}
	if (*s == '-' && size > 1)
		buf[out++] = *s++;
	for (n = strlen(s); *s && out + 2 < size; s++, n--) {
		buf[out++] = *s;
		if (n > 1 && n % 3 == 1)
			buf[out++] = ',';
	}
	buf[out] = '\0';
	return buf;
}
