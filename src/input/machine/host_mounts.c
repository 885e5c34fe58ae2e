/* SPDX-License-Identifier: Apache-2.0
 * Mounts and control groups of this process, from /proc/self.
 */
#include <string.h>

#include "base/str.h"
#include "base/tree.h"
#include "input/machine/host_priv.h"
#include "base/banned.h"

static bool octal(const char *s)
{
	return s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7';
}

/* The next word of the line, with \040 and the like undone. false at the end of the line. */
static bool take_word(const char **at, char *to, size_t size)
{
	const char *s = *at;
	size_t n = 0;

	while (*s == ' ')
		s++;
	if (!*s || *s == '\n')
		return false;
	while (*s && *s != ' ' && *s != '\n') {
		char c = *s++;

		if (octal(s - 1)) {
			c = (char)((s[0] - '0') << 6 | (s[1] - '0') << 3 | (s[2] - '0'));
			s += 3;
		}
		if (n + 1 < size)
			to[n++] = c;
	}
	to[n] = '\0';
	*at = s;
	return true;
}

/* 36 35 98:0 /root /point rw,noatime shared:1 - type source options */
static bool take_mount(const char *line, struct mount *m)
{
	char word[256];
	int i;

	*m = (struct mount){0};
	for (i = 0; i < 5; i++) {
		if (!take_word(&line, word, sizeof(word)))
			return false;
		if (i == 3)
			str_copy(m->root, sizeof(m->root), word);
		if (i == 4)
			str_copy(m->point, sizeof(m->point), word);
	}
	while (strcmp(word, "-") != 0)
		if (!take_word(&line, word, sizeof(word)))
			return false;
	return take_word(&line, m->type, sizeof(m->type)) && take_word(&line, m->source, sizeof(m->source)) &&
	       take_word(&line, m->options, sizeof(m->options));
}

bool look_mount(const char **at, struct mount *m)
{
	const char *line;

	while (*at && **at) {
		line = *at;
		*at = strchr(line, '\n');
		if (*at)
			++*at;
		if (take_mount(line, m))
			return true;
	}
	return false;
}

const char *look_mounted(const struct looking *l, const char *path)
{
	const char *at = l->mounts;
	struct mount m;

	while (look_mount(&at, &m))
		if (strcmp(m.point, path) == 0)
			return look_clean(l, m.root, strlen(m.root));
	return NULL;
}

/* 5:cpu,devices:/docker/abc */
static bool names_controller(const char *list, size_t len, const char *controller)
{
	size_t n = strlen(controller), part;

	if (n == 0)
		return len == 0;
	for (;; list += part + 1, len -= part + 1) {
		for (part = 0; part < len && list[part] != ','; part++)
			;
		if (part == n && memcmp(list, controller, n) == 0)
			return true;
		if (part == len)
			return false;
	}
}

const char *look_cgroup(const struct looking *l, const char *controller)
{
	const char *line = look_file(l, "/proc/self/cgroup", 1 << 16, NULL), *list, *path;

	for (; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		list = strchr(line, ':');
		path = list ? strchr(list + 1, ':') : NULL;
		if (!path || memchr(line, '\n', (size_t)(path - line)))
			continue;
		if (names_controller(list + 1, (size_t)(path - list - 1), controller))
			return look_clean(l, path + 1, strcspn(path + 1, "\n"));
	}
	return NULL;
}
