/* SPDX-License-Identifier: Apache-2.0
 * Who a process is (see identity.h).
 */
#include "read/rank/identity.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "read/rank/rank.h"

enum who { WHO_RANK, WHO_WORLD, WHO_LOCAL, WHO_JOB, WHO_ATTEMPT, WHO_REQUEUE, WHO_NODE };

static const struct who_row {
	enum who who;
	const char *variable, *nothing;
} rows[] = {
#define WHO(who, variable, nothing) {WHO_##who, variable, nothing},
#include "read/rank/identity.def"
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static const char *value_of(enum who who, job_variable get, const void *env, int *row)
{
	for (size_t i = 0; i < ROWS; i++) {
		const char *value = rows[i].who == who ? get(rows[i].variable, env) : NULL;

		if (!value || !*value || (rows[i].nothing && !strcmp(value, rows[i].nothing)))
			continue;
		if (row)
			*row = (int)i;
		return value;
	}
	return NULL;
}

static bool number_of(enum who who, job_variable get, const void *env, uint32_t *to, int *row)
{
	const char *value = value_of(who, get, env, row);
	uint64_t n;

	if (!value || !str_u64(value, &n) || n >= JOB_UNKNOWN)
		return false;
	*to = (uint32_t)n;
	return true;
}

static void text_of(enum who who, job_variable get, const void *env, const char **to, struct pool *pool)
{
	const char *value = value_of(who, get, env, NULL);

	if (value)
		*to = pool_copy(pool, value, strnlen(value, JOB_TEXT_MAX));
}

void job_identify(struct job_rank *r, job_variable get, const void *env, struct pool *pool, int *by)
{
	number_of(WHO_RANK, get, env, &r->rank, by);
	number_of(WHO_WORLD, get, env, &r->world, NULL);
	number_of(WHO_LOCAL, get, env, &r->local, NULL);
	number_of(WHO_ATTEMPT, get, env, &r->attempt, NULL);
	number_of(WHO_REQUEUE, get, env, &r->requeue, NULL);
	text_of(WHO_JOB, get, env, &r->job, pool);
	text_of(WHO_NODE, get, env, &r->node, pool);
}

void job_boot(char *to, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	to[n > 0 ? (size_t)n : 0] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

#define KEPT 48		/* bytes of the text: with the rest of a path, shorter than any file system's limit */

void job_file_name(char *to, size_t size, const char *text)
{
	size_t n = 0;
	bool same = strlen(text) <= KEPT && *text != '.' && *text;

	for (; text[n] && n < KEPT && n + 12 < size; n++) {
		bool fine = isalnum((unsigned char)text[n]) || strchr("_-.", text[n]);

		to[n] = fine && (n || text[n] != '.') ? text[n] : '_';
		same &= to[n] == text[n];
	}
	to[n] = '\0';
	if (!same)
		snprintf(to + n, size - n, "~%08x", hash_of(text));
}
