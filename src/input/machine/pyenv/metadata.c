/* SPDX-License-Identifier: Apache-2.0
 * METADATA files and the requirements in them (see metadata.h).
 */
#include "input/machine/pyenv/metadata.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "base/banned.h"

#define VALUE_MAX 128

const char *py_metadata_text(struct scan *s, const struct py_package *p)
{
	if (p->source == PY_DIST_INFO)
		return scan_text(s, scan_join(s, p->info, "METADATA"), METADATA_MAX, NULL);
	if (p->source == PY_EGG_INFO && tree_is_file(s->root, p->info))
		return scan_text(s, p->info, METADATA_MAX, NULL);
	return p->source == PY_EGG_INFO ? scan_text(s, scan_join(s, p->info, "PKG-INFO"), METADATA_MAX, NULL) : NULL;
}

const char *py_metadata_next(const char **at, const char *name, size_t *len)
{
	size_t n = strlen(name);

	while (**at && **at != '\n' && **at != '\r') {
		const char *line = *at;
		size_t length = strcspn(line, "\n");

		*at = line + length + (line[length] == '\n');
		if (length <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
			continue;
		line += n + 1;
		length -= n + 1;
		while (length && isspace((unsigned char)*line))
			line++, length--;
		while (length && isspace((unsigned char)line[length - 1]))
			length--;
		*len = length;
		return line;
	}
	return NULL;
}

const char *py_metadata_field(const struct scan *s, const char *text, const char *name)
{
	size_t len;
	const char *value = py_metadata_next(&text, name, &len);
	char *copy;

	if (!value || len == 0 || len > VALUE_MAX)
		return NULL;
	copy = pool_copy(s->pool, value, len);
	str_make_utf8(copy);
	return copy;
}

static bool take(char *to, size_t size, const char *from, size_t len)
{
	if (len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

/* "[a, B_c]" to "a,b-c" */
static bool take_extras(struct requirement *r, const char *p, size_t len)
{
	size_t used = 0;

	for (size_t i = 0; i < len;) {
		size_t n = 0;

		while (i < len && (isspace((unsigned char)p[i]) || p[i] == ','))
			i++;
		while (i + n < len && p[i + n] != ',' && !isspace((unsigned char)p[i + n]))
			n++;
		if (n == 0)
			break;
		if (used + n + 2 > sizeof(r->extras))
			return false;
		if (used)
			r->extras[used++] = ',';
		if (!py_normalise(p + i, n, r->extras + used, sizeof(r->extras) - used))
			return false;
		used += strlen(r->extras + used);
		i += n;
	}
	return true;
}

bool py_requirement_parse(struct requirement *r, const char *text, size_t len, char *marker, size_t marker_size)
{
	const char *semicolon = memchr(text, ';', len), *close;
	size_t head = semicolon ? (size_t)(semicolon - text) : len, n = 0, rest = semicolon ? len - head - 1 : 0;

	*r = (struct requirement){.marker = marker};
	if (!take(marker, marker_size, semicolon ? semicolon + 1 : "", rest))
		return false;
	while (head && isspace((unsigned char)text[head - 1]))
		head--;
	if (!take(r->text, sizeof(r->text), text, head))
		return false;
	while (n < head && (isalnum((unsigned char)text[n]) || strchr("-_.", text[n])))
		n++;
	if (!py_normalise(text, n, r->name, sizeof(r->name)))
		return false;
	while (n < head && isspace((unsigned char)text[n]))
		n++;
	if (n < head && text[n] == '[') {
		close = memchr(text + n, ']', head - n);
		if (!close || !take_extras(r, text + n + 1, (size_t)(close - text) - n - 1))
			return false;
		n = (size_t)(close - text) + 1;
	}
	while (n < head && isspace((unsigned char)text[n]))
		n++;
	if (n < head && text[n] == '@')
		return true;
	return take(r->specifiers, sizeof(r->specifiers), text + n, head - n);
}
