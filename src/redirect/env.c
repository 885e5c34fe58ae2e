/* SPDX-License-Identifier: Apache-2.0
 * Programs that are started with an environment of the caller's own (`env -i`, a list of what may be passed on) find the scratch, too: without
 * the library they could not write to any file.
 */
#include <string.h>
#include <unistd.h>

#include "redirect/redirect.h"

#define PRELOAD "LD_PRELOAD"

static char scratch_entry[sizeof(SCRATCH_ENV) + 1 + ROOM];	/* NAME=value */
static char library[PATH_MAX];					/* as the list had it: its $LIB is the loader's to expand */

static const char *next_name(const char *list, size_t *len)
{
	list += strspn(list, ": ");
	*len = strcspn(list, ": ");
	return *len ? list : NULL;
}

static bool is_library(const char *name, size_t len)
{
	const size_t own = sizeof(SCRATCH_LIBRARY) - 1;

	return len > own && name[len - own - 1] == '/' && memcmp(name + len - own, SCRATCH_LIBRARY, own) == 0;
}

static const char *find_library(const char *list, size_t *len)
{
	const char *name = list ? next_name(list, len) : NULL;

	while (name && !is_library(name, *len))
		name = next_name(name + *len, len);
	return name;
}

void keep_env(const char *scratch, const char *preload)
{
	size_t len;
	const char *name = find_library(preload, &len);

	if (!name || len >= sizeof(library))
		return;		/* started in another way; then others have to be, too */
	memcpy(library, name, len);
	memcpy(scratch_entry, SCRATCH_ENV "=", sizeof(SCRATCH_ENV));
	memcpy(scratch_entry + sizeof(SCRATCH_ENV), scratch, strlen(scratch) + 1);
}

static const char *value_of(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=' ? entry + len + 1 : NULL;
}

/* The last one, as the loader takes it, if there are several. */
static const char *find(char *const env[], const char *name)
{
	const char *found = NULL;

	for (; env && *env; env++)
		found = value_of(*env, name) ? value_of(*env, name) : found;
	return found;
}

size_t env_room(char *const env[])
{
	const char *scratch = find(env, SCRATCH_ENV), *preload = find(env, PRELOAD);
	size_t n = 0, len;

	if (!*library ||
	    (scratch && strcmp(scratch, scratch_entry + sizeof(SCRATCH_ENV)) == 0 && find_library(preload, &len)))
		return 0;
	while (env && env[n])
		n++;
	return (n + 3) * sizeof(*env) + sizeof(PRELOAD "=:") + strlen(library) + (preload ? strlen(preload) : 0);
}

/* The library comes first, and what the caller wants behind it. */
static void join(char *to, const char *preload)
{
	size_t len;

	strcpy(to, PRELOAD "=");
	if (!find_library(preload, &len)) {
		strcat(to, library);
		if (preload && *preload)
			strcat(to, ":");
	}
	if (preload)
		strcat(to, preload);
}

char **env_with(char *const env[], void *room)
{
	const char *preload = find(env, PRELOAD);
	char **to = room, *text;
	size_t n = 0, at = 0;

	while (env && env[n])
		n++;
	text = (char *)(to + n + 3);
	join(text, preload);
	for (size_t i = 0; i < n; i++)
		if (!value_of(env[i], PRELOAD) && !value_of(env[i], SCRATCH_ENV))
			to[at++] = env[i];
	to[at++] = scratch_entry;
	to[at++] = text;
	to[at] = NULL;
	return to;
}
