/* SPDX-License-Identifier: Apache-2.0
 * The times in a log (see line.h).
 */
#include "read/text/line.h"

#include <ctype.h>
#include <time.h>

#define STAMP_WITHIN 64		/* "[rank0]:[2025-..." */
#define STAMP_LEN    19		/* "2025-03-04 11:12:13" */

static bool has_shape(const char *s)
{
	static const char shape[] = "####-##-##T##:##:##";

	for (size_t i = 0; i < STAMP_LEN; i++)
		if (shape[i] == '#'   ? !isdigit((unsigned char)s[i])
		    : shape[i] == 'T' ? s[i] != 'T' && s[i] != ' '
				      : s[i] != shape[i])
			return false;
	return true;
}

static int two(const char *s)
{
	return (s[0] - '0') * 10 + s[1] - '0';
}

/* "+05:30", "-0800" */
static double zone_of(const char *s, const char *end)
{
	const char *minutes = s + 3 + (end - s > 5 && s[3] == ':');

	if (end - s < 5 || (*s != '+' && *s != '-') || !isdigit((unsigned char)s[1]) || !isdigit((unsigned char)s[2]) ||
	    end - minutes < 2 || !isdigit((unsigned char)minutes[0]) || !isdigit((unsigned char)minutes[1]))
		return 0;
	return (*s == '-' ? -60.0 : 60.0) * (two(s + 1) * 60 + two(minutes));
}

static double seconds_of(const char *s, const char *end)
{
	struct tm tm = {.tm_year = two(s) * 100 + two(s + 2) - 1900,
			.tm_mon = two(s + 5) - 1,
			.tm_mday = two(s + 8),
			.tm_hour = two(s + 11),
			.tm_min = two(s + 14), .tm_sec = two(s + 17)};
	double part = 0, digit = 0.1;

	s += STAMP_LEN;
	if (s < end && (*s == '.' || *s == ','))
		for (s++; s < end && isdigit((unsigned char)*s); s++, digit /= 10)
			part += (*s - '0') * digit;
	return (double)timegm(&tm) + part - zone_of(s, end);
}

bool stamp_of_line(const char *s, size_t len, double *seconds)
{
	const char *end = s + len;

	for (size_t i = 0; i < STAMP_WITHIN && i + STAMP_LEN <= len; i++)
		if (s[i] >= '1' && s[i] <= '2' && (!i || !isdigit((unsigned char)s[i - 1])) && has_shape(s + i)) {
			*seconds = seconds_of(s + i, end);
			return true;
		}
	return false;
}
