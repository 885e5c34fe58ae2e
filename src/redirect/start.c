/* SPDX-License-Identifier: Apache-2.0
 * What the library reads from the environment, once, when it is loaded or first called, whichever comes first.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "portable/portable.h"
#include "redirect/raw.h"
#include "redirect/redirect.h"

OLD(dlsym, GLIBC_FIRST);

#define ZONES 64

struct redirect redirect;
struct scratch_pass raw_pass;
static struct scratch_state *state;
static struct { const char *path; size_t len; bool set; } zones[ZONES];
static size_t n_zones;

static void add_zone(const char *path, bool set)
{
	if (path[0] != '/' || !path[1] || n_zones == ZONES)
		return;
	zones[n_zones].path = path;
	zones[n_zones].len = strlen(path);
	zones[n_zones++].set = set;
}

/* The path of a folder as the kernel says it, without links. */
static bool canonical(const char *path, char *to, size_t size)
{
	int fd = raw_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	long n = path_of_fd(fd, to, size);

	if (fd >= 0)
		raw_close(fd);
	return n > 1 && to[0] == '/';
}

/* The variable is copied, since the program may change it. */
static void add_zones(const char *list)
{
	static char kept[SCRATCH_REAL_LONGEST];
	char path[PATH_MAX];
	size_t at = 0, len;

	for (; list && *list; list += len + (list[len] == ':')) {
		len = strcspn(list, ":");
		if (len >= sizeof(path))
			continue;
		memcpy(path, list, len);
		path[len] = '\0';
		if (!canonical(path, kept + at, sizeof(kept) - at))
			continue;
		add_zone(kept + at, true);
		at += strlen(kept + at) + 1;
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

void note_folder(void)
{
	if (state)
		__atomic_add_fetch(&state->changes, 1, __ATOMIC_ACQ_REL);
}

void *next_of(const char *name)
{
	return old_dlsym(RTLD_NEXT, name);
}

static long read_file(const char *scratch, const char *name, void *to, size_t size)
{
	char path[ROOM];
	long n;
	int fd;

	memcpy(path, scratch, strlen(scratch) + 1);
	strcat(path, name);
	fd = raw_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = raw(SYS_read, fd, to, size, 0);
	raw_close(fd);
	return n;
}

static void read_zones(const char *scratch)
{
	static char kept[SCRATCH_REAL_LONGEST + 1];
	long n = read_file(scratch, SCRATCH_REAL, kept, sizeof(kept) - 1);

	for (long at = 0; at < n; at += (long)strlen(kept + at) + 1)
		add_zone(kept + at, true);
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

static void use(const char *named)
{
	static char scratch[ROOM];

	if (strlen(named) > SCRATCH_LONGEST || !canonical(named, scratch, SCRATCH_LONGEST))
		return;
	add_zone(scratch, true);
	read_zones(scratch);
	read_file(scratch, SCRATCH_PASS, &raw_pass, sizeof(raw_pass));
	map_state(scratch);
	memcpy(redirect.new_root, scratch, sizeof(redirect.new_root));
	memcpy(redirect.gone_root, scratch, sizeof(redirect.gone_root));
	strcat(redirect.new_root, SCRATCH_NEW);
	strcat(redirect.gone_root, SCRATCH_GONE);
	redirect.new_len = strlen(redirect.new_root);
	redirect.gone_len = strlen(redirect.gone_root);
	keep_env(named, getenv("LD_PRELOAD"));
	redirect.on = true;
}

void redirect_start(void)
{
	const char *scratch = getenv(SCRATCH_ENV);

	if (redirect.started)
		return;
	if (scratch) {
		add_zone("/dev/shm", true);
		add_zone("/dev", false);
		add_zone("/proc", false);
		add_zone("/sys", false);
		add_zones(getenv(SCRATCH_REAL_ENV));
		use(scratch);
	}
	__atomic_store_n(&redirect.started, true, __ATOMIC_RELEASE);
}

__attribute__((constructor)) static void load(void)
{
	redirect_start();
}
