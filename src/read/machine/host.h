/* SPDX-License-Identifier: Apache-2.0
 * What can be known about a machine from its files: /proc, /sys, /dev and a few folders. No program is started, no
 * library is loaded, the driver is not asked, and no device is opened: this cannot hang on a broken driver.
 *
 * Everything is known or unknown (-1, NULL; n_gpu and the like are -1 too); `gap` says why something is not. The fields
 * are rows of host.def.
 */
#ifndef CUWHY_HOST_H
#define CUWHY_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "base/pool.h"
#include "formats/xid.h"

#define HOST_UNLIMITED	INT64_MAX
#define HOST_LIST_MAX	256		/* per list: a hostile tree cannot exhaust memory */

#define GROUP(group)		struct host_##group {
#define LIST(list)		struct host_##list {
#define END(of)			};
#define FLAG(of, name, what)	int name;
#define NUM(of, name, what)	int64_t name;
#define TEXT(of, name, what)	const char *name;
#include "read/machine/host.def"

struct host {
#define GROUP(group)		struct host_##group group;
#define LIST(list)		struct host_##list *list; ptrdiff_t n_##list;
#include "read/machine/host.def"
	struct xid_log xids;		/* those in the kernel log since boot */
};

/* Where to look. */
struct host_from {
	const char *root;		/* "" the live machine; else a folder with a captured tree */
	const char *const *env;		/* "NAME=value", NULL at the end; for LD_LIBRARY_PATH, PATH, CUDA_HOME and the like. NULL: none */
	const char *cwd;		/* as seen under the root; NULL: not known */
};

/* Fills `h` completely; `pool` owns what it points to and must outlive it.
 *
 * In a captured tree a device node is a plain file: its permission bits are the node's, and its text, all of it
 * optional, is "MAJOR:MINOR ERROR" with the name of the errno that opening it gave ("195:0 EPERM"). The kernel log is
 * the file dev/kmsg. What only a live process can be asked comes from proc/self/limits, status, cgroup and mountinfo. */
void host_collect(struct host *h, struct pool *pool, const struct host_from *from);

/* All unknown, all lists not known. */
void host_unknown(struct host *h);

/* Its groups and lists. */
enum host_part {
#define GROUP(group)		HOST_GROUP_##group,
#define LIST(list)		HOST_LIST_##list,
#include "read/machine/host.def"
};

/* The list was examined: from now on it is known, even if empty. */
void host_looked(struct host *h, enum host_part list);

/* One more element, all of it unknown; NULL when the list is full. */
void *host_add(struct host *h, struct pool *pool, enum host_part list);

/* The first node with this path; NULL: none. */
const struct host_node *host_node(const struct host *h, const char *path);

/* Did the kernel log have lines of this kind? NULL: none, or the log could not be read (log.readable). */
const struct host_event *host_event(const struct host *h, const char *id);

/* Could this be examined ("the PCI bus", "/dev")? False when it is among the gaps. */
bool host_told(const struct host *h, const char *what);

/* Compares "580.65.06" and "580.9": <0, 0, >0. Texts that are not versions sort before all versions. */
int host_version_compare(const char *a, const char *b);

/* The bundle: {"os": {"name": ...}, "gpu": [{...}], "xids": [...]}. What is unknown is left out, lists too. Owned by the caller. */
json_t *host_to_json(const struct host *h);

/* Takes what fits; anything missing, of another type or out of range is unknown. false: not an object. */
bool host_from_json(struct host *h, struct pool *pool, const json_t *o);

#endif
