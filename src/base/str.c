/* SPDX-License-Identifier: Apache-2.0
 * Small string helpers.
 */
#include <errno.h>
#include <stdlib.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

#define WORD_MAX_LEN 48		/* longer words are not compared: no option is that long */
#define TIME_MAX_SECONDS 1e9	/* 30 years */

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

const char *str_find_case(const char *s, const char *what)
{
	char low = (char)tolower((unsigned char)what[0]), high = (char)toupper((unsigned char)what[0]);
	char low2, high2;

	if (!what[0])
		return s;
	low2 = (char)tolower((unsigned char)what[1]);
	high2 = (char)toupper((unsigned char)what[1]);
	for (; *s; s++)	/* two letters tell most places apart from the word, without a call */
		if ((*s == low || *s == high) && (!low2 || s[1] == low2 || s[1] == high2) &&
		    !strncasecmp(s, what, strlen(what)))
			return s;
	return NULL;
}

bool str_copy(char *to, size_t size, const char *from)
{
	size_t n = strnlen(from, size);

	if (size == 0)
		return false;
	if (n == size)
		n = size - 1;
	memcpy(to, from, n);
	to[n] = '\0';
	return from[n] == '\0';
}

bool str_u64(const char *s, uint64_t *value)
{
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*value = strtoull(s, &end, 10);
	return errno == 0 && *end == '\0';
}

bool str_bytes(const char *s, uint64_t *bytes)
{
	static const char letters[] = "KMGTP";
	char *end;
	double value = strtod(s, &end);
	const char *letter = *end ? strchr(letters, toupper((unsigned char)*end)) : NULL;

	for (long i = letter ? letter - letters : -1; i >= 0; i--)
		value *= 1024;
	end += letter != NULL;
	end += letter && *end == 'i';
	end += *end == 'B';
	if (end == s || *end || !isdigit((unsigned char)*s) || value < 1 || value > (double)(1ull << 62))
		return false;
	*bytes = (uint64_t)value;
	return true;
}

bool str_time(const char *s, uint64_t *ns)
{
	static const struct { const char *unit; double seconds; } units[] = {
		{"ms", 0.001}, {"s", 1}, {"m", 60}, {"h", 3600}};
	size_t digits = strspn(s, "0123456789."), i;
	double n;
	char *end;

	if (s[0] < '0' || s[0] > '9')
		return false;
	n = strtod(s, &end);
	if (end != s + digits)
		return false;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(end, units[i].unit) == 0 && n * units[i].seconds <= TIME_MAX_SECONDS) {
			*ns = (uint64_t)(n * units[i].seconds * 1000000000u);
			return true;
		}
	return false;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

size_t str_distance(const char *a, const char *b)
{
	size_t d[WORD_MAX_LEN + 1][WORD_MAX_LEN + 1];
	size_t n = strlen(a), m = strlen(b), i, j, cost;

	if (n > WORD_MAX_LEN || m > WORD_MAX_LEN)
		return n > m ? n : m;
	for (i = 0; i <= n; i++)
		d[i][0] = i;
	for (j = 0; j <= m; j++)
		d[0][j] = j;
	for (i = 1; i <= n; i++) {
		for (j = 1; j <= m; j++) {
			cost = a[i - 1] != b[j - 1];
			d[i][j] = least(d[i - 1][j - 1] + cost,
					least(d[i - 1][j], d[i][j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[n][m];
}

const char *str_nearest(const char *word, const char *const *candidates)
{
	size_t best = strlen(word) / 3 + 2, d;
	const char *found = NULL;

	for (; *candidates; candidates++) {
		d = str_distance(word, *candidates);
		/* If every letter would change, the word was not meant. */
		if (d >= strlen(*candidates))
			continue;
		if (strlen(word) >= 3 && str_starts(*candidates, word))
			d = 0;
		if (d < best) {
			best = d;
			found = *candidates;
		}
	}
	return found;
}

size_t str_character(const char *s, size_t n, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *p = (const unsigned char *)s;
	size_t len;
	uint32_t c;

	if (*p < 0x80)
		len = 1;
	else
		len = 2 + (*p >= 0xe0) + (*p >= 0xf0);
	c = len == 1 ? *p : *p & (0xffu >> (len + 1));
	*code = STR_INVALID;
	if (*p >= 0xf8 || (*p & 0xc0) == 0x80)
		return 1;
	for (size_t i = 1; i < len; i++) {
		if (i == n)
			return 0;
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 1;
	*code = c;
	return len;
}

bool str_harmless(uint32_t c)
{
	static const struct { uint32_t from, to; } hidden[] = {
		{0x061c, 0x061c}, {0x200e, 0x200f}, {0x2028, 0x202e},	{0x2066, 0x2069},
		{0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f},
	};

	if (c < 0xa0)
		return c == '\n' || c == '\t' || (c >= ' ' && c < 0x7f);
	for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
		if (c >= hidden[i].from && c <= hidden[i].to)
			return false;
	return c != STR_INVALID;
}

size_t str_plain(char *to, const char *s, size_t n)
{
	size_t len, put = 0;
	uint32_t code;

	for (size_t i = 0; i < n; i += len) {
		len = str_character(s + i, n - i, &code);
		len = len ? len : 1;
		if (str_harmless(code)) {
			memmove(to + put, s + i, len);
			put += len;
		} else {
			to[put++] = '?';
		}
	}
	return put;
}

void str_make_plain(char *s)
{
	s[str_plain(s, s, strlen(s))] = '\0';
}

void str_make_line(char *s)
{
	str_make_plain(s);
	for (; *s; s++)
		if (*s == '\n' || *s == '\t')
			*s = ' ';
}

void str_make_utf8(char *s)
{
	size_t n, left = strlen(s);
	uint32_t code;

	for (; left; s += n, left -= n) {
		n = str_character(s, left, &code);
		n = n ? n : 1;
		if (code == STR_INVALID)
			*s = '?';
	}
}
