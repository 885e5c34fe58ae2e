/* SPDX-License-Identifier: Apache-2.0
 * Readers of a machine's files: lines, numbers, versions, mounts, control groups (see look.h). Nothing read is trusted.
 */
#include "read/machine/look.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "base/tree.h"
#include "read/machine/variables.h"

#define SMALL_FILE	4096

const char *look_env(const struct looking *l, const char *name)
{
	return environ_get(l->env, name);
}

char *look_file(const struct looking *l, const char *path, size_t max, size_t *len)
{
	struct buf b;
	char *text = NULL;

	buf_init(&b, max);
	if (tree_read(l->root, path, &b) == 0) {
		text = pool_copy(l->pool, b.data ? b.data : "", b.len);
		if (len)
			*len = b.len;
	}
	buf_release(&b);
	return text;
}

const char *look_clean(const struct looking *l, const char *text, size_t len)
{
	char *copy;

	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (len > FIELD_LINE_MAX)
		len = FIELD_LINE_MAX;
	while (len && (isspace((unsigned char)text[len - 1]) || !text[len - 1]))
		len--;
	copy = pool_copy(l->pool, text, len);
	str_make_line(copy);
	return copy;
}

const char *look_line(const struct looking *l, const char *path)
{
	const char *text = look_file(l, path, SMALL_FILE, NULL);

	if (!text)
		return NULL;
	text = look_clean(l, text, strcspn(text, "\n"));
	return *text ? text : NULL;
}

int64_t look_number(const struct looking *l, const char *path)
{
	const char *text = look_line(l, path);
	long long n;
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return -1;
	errno = 0;
	n = strtoll(text, &end, text[1] == 'x' ? 16 : 10);
	return errno || *end ? -1 : n;
}

bool look_exists(const struct looking *l, const char *path)
{
	struct stat st;

	return tree_stat(l->root, path, &st) == 0;
}

int look_list(const struct looking *l, const char *path, size_t max, char ***names)
{
	bool cut = false;
	int n = tree_list(l->root, path, l->pool, max, names, &cut);

	if (cut)
		look_gap(l, path, "it has too many entries: not all were read");
	return n;
}

const char *look_link_name(const struct looking *l, const char *dir, const char *link)
{
	char inside[TREE_PATH_MAX], target[TREE_PATH_MAX];
	const char *slash;
	ssize_t n;

	if (tree_resolve(l->root, dir, inside) != 0)
		return NULL;
	n = readlink(pool_printf(l->pool, "%s%s/%s", l->root, inside, link), target, sizeof(target) - 1);
	if (n < 0)
		return NULL;
	target[n] = '\0';
	slash = strrchr(target, '/');
	return look_clean(l, slash ? slash + 1 : target, strlen(slash ? slash + 1 : target));
}

void look_gap(const struct looking *l, const char *what, const char *why)
{
	struct host_gap *g = host_add(l->h, l->pool, HOST_LIST_gap);

	if (g) {
		g->what = look_clean(l, what, strlen(what));
		g->why = look_clean(l, why, strlen(why));
	}
}

const char *look_field(const struct looking *l, const char *text, const char *name)
{
	size_t n = strlen(name);

	for (; text && *text; text = strchr(text, '\n'), text = text ? text + 1 : NULL)
		if (strncmp(text, name, n) == 0 && text[n] == ':')
			return look_clean(l, text + n + 1, strcspn(text + n + 1, "\n"));
	return NULL;
}

/* Length of "580.65.06" or "12.4" here, 0 when it is not a version. */
static size_t version_text_length(const char *s)
{
	size_t n = 0, dots = 0, digits;

	for (;;) {
		digits = strspn(s + n, "0123456789");
		if (digits == 0 || digits > 6)
			return 0;
		n += digits;
		if (s[n] != '.' || !isdigit((unsigned char)s[n + 1]))
			break;
		if (++dots == 4)
			return 0;
		n++;
	}
	return dots && !isalnum((unsigned char)s[n]) ? n : 0;
}

const char *look_version(const struct looking *l, const char *text)
{
	size_t n;

	for (; text && *text && *text != '\n'; text++) {
		if (!isdigit((unsigned char)*text))
			continue;
		n = version_text_length(text);
		if (n)
			return pool_copy(l->pool, text, n);
		text += strspn(text, "0123456789.") - 1;
	}
	return NULL;
}

/* A captured tree has a file in place of the node: "195:0 EPERM". */
static int look_error_in_tree(const struct looking *l, const char *path)
{
	static const struct { const char *name; int number; } errors[] = {
		{"EPERM", EPERM}, {"EACCES", EACCES}, {"ENXIO", ENXIO}, {"ENODEV", ENODEV}};
	const char *text = look_line(l, path);
	const char *name = text ? strchr(text, 'E') : NULL;

	if (!look_exists(l, path))
		return ENOENT;
	if (!name)
		return 0;
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (strcmp(name, errors[i].name) == 0)
			return errors[i].number;
	return EIO;
}

int look_open_error(const struct looking *l, const char *path)
{
	if (!l->live)
		return look_error_in_tree(l, path);
	/* access() also checks the cgroup's device rules, and does not wake or block on the device */
	if (geteuid() == getuid())
		return access(path, R_OK | W_OK) == 0 ? 0 : errno;
	return faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) == 0 ? 0 : errno;
}

static bool is_octal(const char *s)
{
	return s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' && s[3] <= '7';
}

/* The next word of the line, with \040 and the like undone. false at the end of the line. */
static bool mount_word(const char **at, char *to, size_t size)
{
	const char *s = *at;
	size_t n = 0;

	while (*s == ' ')
		s++;
	if (!*s || *s == '\n')
		return false;
	while (*s && *s != ' ' && *s != '\n') {
		char c = *s++;

		if (is_octal(s - 1)) {
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
static bool mount_parse(const char *line, struct mount *m)
{
	char word[256];
	int i;

	*m = (struct mount){0};
	for (i = 0; i < 5; i++) {
		if (!mount_word(&line, word, sizeof(word)))
			return false;
		if (i == 3)
			str_copy(m->root, sizeof(m->root), word);
		if (i == 4)
			str_copy(m->point, sizeof(m->point), word);
	}
	while (strcmp(word, "-") != 0)
		if (!mount_word(&line, word, sizeof(word)))
			return false;
	return mount_word(&line, m->type, sizeof(m->type)) && mount_word(&line, m->source, sizeof(m->source)) &&
	       mount_word(&line, m->options, sizeof(m->options));
}

bool look_mount(const char **at, struct mount *m)
{
	const char *line;

	while (*at && **at) {
		line = *at;
		*at = strchr(line, '\n');
		if (*at)
			++*at;
		if (mount_parse(line, m))
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
static bool cgroup_names_controller(const char *list, size_t len, const char *controller)
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
		if (cgroup_names_controller(list + 1, (size_t)(path - list - 1), controller))
			return look_clean(l, path + 1, strcspn(path + 1, "\n"));
	}
	return NULL;
}
