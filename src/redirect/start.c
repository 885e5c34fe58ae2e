/* SPDX-License-Identifier: Apache-2.0
 * What the library is told, once, when it is loaded or first called: whichever comes first.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "portable/portable.h"
#include "redirect/raw.h"
#include "redirect/redirect.h"

OLD(dlsym, GLIBC_FIRST);

#define ZONES 32

struct redirect redirect;
struct scratch_pass raw_pass;
static struct scratch_state *state;
static struct { const char *path; size_t len; bool set; } zones[ZONES];
static size_t n_zones;

static void add_zone(const char *path, size_t len, bool set)
{
	while (len > 1 && path[len - 1] == '/')
		len--;
	if (len < 2 || path[0] != '/' || n_zones == ZONES)
		return;
	zones[n_zones].path = path;
	zones[n_zones].len = len;
	zones[n_zones++].set = set;
}

static void add_zones(const char *list)
{
	size_t len;

	for (; list && *list; list += len + (list[len] == ':')) {
		len = strcspn(list, ":");
		add_zone(list, len, true);
	}
}

static bool in_zone(const char *at, size_t len, bool set)
{
	for (size_t i = 0; i < n_zones; i++)
		if (len >= zones[i].len && (at[zones[i].len] == '/' || len == zones[i].len) && (!set || zones[i].set) &&
		    memcmp(at, zones[i].path, zones[i].len) == 0)
			return true;
	return false;
}

bool is_real(const char *at, size_t len)
{
	return in_zone(at, len, false);
}

bool may_be_set(const char *at, size_t len)
{
	return in_zone(at, len, true);
}

void note_change(void)
{
	if (state && !__atomic_load_n(&state->changes, __ATOMIC_RELAXED))
		__atomic_store_n(&state->changes, 1, __ATOMIC_RELEASE);
}

void *next_of(const char *name)
{
	return old_dlsym(RTLD_NEXT, name);
}

static void read_pass(const char *scratch)
{
	char path[ROOM];
	int fd;

	memcpy(path, scratch, strlen(scratch) + 1);
	strcat(path, SCRATCH_PASS);
	fd = raw_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return;
	raw(SYS_read, fd, &raw_pass, sizeof(raw_pass), 0);
	raw_close(fd);
}

static void map_state(const char *scratch)
{
	char path[ROOM];
	void *map;
	int fd;

	memcpy(path, scratch, strlen(scratch) + 1);
	strcat(path, SCRATCH_STATE);
	fd = raw_open(AT_FDCWD, path, O_RDWR, 0);
	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	raw_close(fd);
	if (map != MAP_FAILED)
		redirect.state = state = map;
}

static void use(const char *scratch)
{
	size_t len = strlen(scratch);

	while (len > 1 && scratch[len - 1] == '/')
		len--;
	if (scratch[0] != '/' || len < 2 || len > SCRATCH_LONGEST)
		return;
	memcpy(redirect.new_root, scratch, len);
	add_zone(scratch, len, true);
	read_pass(redirect.new_root);
	map_state(redirect.new_root);
	memcpy(redirect.gone_root, redirect.new_root, len);
	strcat(redirect.new_root, SCRATCH_NEW);
	strcat(redirect.gone_root, SCRATCH_GONE);
	redirect.new_len = strlen(redirect.new_root);
	redirect.gone_len = strlen(redirect.gone_root);
	redirect.on = true;
}

/* The strings of the environment are copied, since the program may change them. */
void redirect_start(void)
{
	static char real[PATH_MAX];
	const char *scratch = getenv(SCRATCH_ENV), *list = getenv(SCRATCH_REAL_ENV);
	static char kept[ROOM];

	if (redirect.started)
		return;
	if (scratch && strlen(scratch) <= SCRATCH_LONGEST) {
		add_zone("/dev/shm", strlen("/dev/shm"), true);
		add_zone("/dev", strlen("/dev"), false);
		add_zone("/proc", strlen("/proc"), false);
		add_zone("/sys", strlen("/sys"), false);
		if (list && strlen(list) < sizeof(real))
			add_zones(memcpy(real, list, strlen(list) + 1));
		use(memcpy(kept, scratch, strlen(scratch) + 1));
	}
	__atomic_store_n(&redirect.started, true, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void load(void)
{
	redirect_start();
}
