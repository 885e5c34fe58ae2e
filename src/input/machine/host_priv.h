/* SPDX-License-Identifier: Apache-2.0
 * Between the files of the host's collector: where it looks, small readers, and one function per subject.
 */
#ifndef CUWHY_HOST_PRIV_H
#define CUWHY_HOST_PRIV_H

#include "input/machine/host.h"

enum host_kind { HOST_FLAG, HOST_NUM, HOST_TEXT };

struct host_field {
	const char *group, *name;
	enum host_kind kind;
	size_t offset;
};

struct host_list {
	const char *name;
	size_t at, at_n, size;		/* of the pointer and the number in struct host; of one element */
	const struct host_field *field;
	size_t n_fields;
};

/* Index of a list in host_lists. */
enum host_list_id {
#define GROUP(group)
#define GROUP_END(group)
#define G_FLAG(group, name, what)
#define G_NUM(group, name, what)
#define G_TEXT(group, name, what)
#define LIST(list)	HOST_LIST_##list,
#define LIST_END(list)
#define L_FLAG(list, name, what)
#define L_NUM(list, name, what)
#define L_TEXT(list, name, what)
#include "input/machine/host.def"
	HOST_LISTS
};

extern const struct host_field host_fields[];
extern const size_t host_n_fields;
extern const struct host_list host_lists[HOST_LISTS];

/* The list was looked for: from now on it is known, if only to be empty. */
void host_looked(struct host *h, enum host_list_id list);

/* One more element, all of it unknown; NULL when the list is full. */
void *host_add(struct host *h, struct pool *pool, enum host_list_id list);

struct looking {
	struct host *h;
	struct pool *pool;
	const char *root;
	const char *const *env;
	const char *cwd;
	bool live;			/* it is the machine that we run on */
	char *mounts;			/* /proc/self/mountinfo; NULL: not readable */
};

/* ---- readers: NULL or -1 when there is nothing to read ------------------------------------------------ */

#define LOOK_TEXT_MAX	512		/* bytes of a text that is kept */

const char *look_env(const struct looking *l, const char *name);	/* NULL: not set or empty */
char *look_file(const struct looking *l, const char *path, size_t max, size_t *len);	/* at most `max` bytes of it, ends with a NUL */
const char *look_line(const struct looking *l, const char *path);	/* its first line, cleaned; NULL also when it is empty */
int64_t look_number(const struct looking *l, const char *path);	/* decimal or 0x */
bool look_exists(const struct looking *l, const char *path);
int look_list(const struct looking *l, const char *path, size_t max, char ***names);	/* notes a gap when it was cut; -errno */

/* Where a link in this folder points to, without following it: the last part of it. */
const char *look_link_name(const struct looking *l, const char *dir, const char *link);

/* Text without control bytes, valid UTF-8, no spaces at its ends, at most LOOK_TEXT_MAX. */
const char *look_clean(const struct looking *l, const char *text, size_t len);

void look_gap(const struct looking *l, const char *what, const char *why);

/* After "NAME:" at the beginning of a line; NULL when there is none. */
const char *look_field(const struct looking *l, const char *text, const char *name);

/* The first version ("580.65.06") at or after this place of the line; NULL when there is none. */
const char *look_version(const struct looking *l, const char *text);

/* Would opening it for reading and writing work? 0 or an errno. */
int look_open_error(const struct looking *l, const char *path);

/* ---- mounts ------------------------------------------------------------------------------------------ */

struct mount {
	char root[256], point[256], type[32], source[256], options[256];
};

/* One after the other: `*at` begins as l->mounts. */
bool look_mount(const char **at, struct mount *m);

/* What is mounted at exactly this path: its path in the file system that it is from. NULL: nothing. */
const char *look_mounted(const struct looking *l, const char *path);

/* The path of this process in a control group hierarchy ("" = the unified one); NULL when it is not there. */
const char *look_cgroup(const struct looking *l, const char *controller);

/* ---- subjects, in the order in which they are filled -------------------------------------------------- */

void host_look_os(const struct looking *l);
void host_look_kernel(const struct looking *l);
void host_look_wsl(const struct looking *l);
void host_look_container(const struct looking *l);
void host_look_pci(const struct looking *l);
void host_look_iommu(const struct looking *l);
void host_look_nodes(const struct looking *l);
void host_look_mig(const struct looking *l);
void host_look_libraries(const struct looking *l);
void host_look_daemons(const struct looking *l);
void host_look_memory(const struct looking *l);
void host_look_toolkits(const struct looking *l);
void host_look_compilers(const struct looking *l);
void host_look_builds(const struct looking *l);
void host_look_log(const struct looking *l);

#endif
