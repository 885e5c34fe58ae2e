/* SPDX-License-Identifier: Apache-2.0
 * Drivers against toolkits, and against GPUs.
 */
#include <stdio.h>

#include "compat/compat.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define PART_MAX	100000	/* of a version number; anything larger is not one */

static const struct branch {
	int first, last, cuda;
} branches[] = {
#define COMPAT_BRANCH(first, last, cuda) {first, last, cuda},
#include "kb/compat_drivers.def"
};

static const struct toolkit {
	int cuda;
	struct compat_driver driver;
} toolkits[] = {
#define COMPAT_TOOLKIT(cuda, major, minor, patch) {cuda, {major, minor, patch}},
#include "kb/compat_drivers.def"
};

static const struct floor {
	int cuda_major;
	struct compat_driver driver;
	int forward;
} floors[] = {
#define COMPAT_FLOOR(cuda, major, minor, patch, forward) {cuda, {major, minor, patch}, forward},
#include "kb/compat_drivers.def"
};

/* A number of at most six digits; moves past it. */
static bool number_read(const char **at, int *value)
{
	const char *p = *at;

	for (*value = 0; *p >= '0' && *p <= '9'; p++) {
		*value = *value * 10 + (*p - '0');
		if (*value >= PART_MAX)
			return false;
	}
	if (p == *at)
		return false;
	*at = p;
	return true;
}

static bool part_read(const char **at, int *value)
{
	const char *p = *at + 1;

	if (**at != '.' || !number_read(&p, value))
		return false;
	*at = p;
	return true;
}

bool compat_driver_parse(const char *text, struct compat_driver *d)
{
	struct compat_driver got = {0};

	*d = got;
	if (!text || !number_read(&text, &got.major) || got.major == 0)
		return false;
	if (part_read(&text, &got.minor))
		part_read(&text, &got.patch);
	if (*text == '.' || *text == '-' || *text == '_' || (*text >= '0' && *text <= '9') ||
	    (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z'))
		return false;
	*d = got;
	return true;
}

int compat_cuda_parse(const char *text)
{
	int major = 0, minor = 0;

	if (!text || sscanf(text, "%d.%d", &major, &minor) < 1 || major < 1 || major > 99 || minor < 0 || minor > 99)
		return 0;
	return major * 1000 + minor * 10;
}

int compat_driver_compare(struct compat_driver a, struct compat_driver b)
{
	if (a.major != b.major)
		return a.major < b.major ? -1 : 1;
	if (a.minor != b.minor)
		return a.minor < b.minor ? -1 : 1;
	return a.patch < b.patch ? -1 : a.patch > b.patch;
}

const char *compat_driver_text(struct compat_driver d, char text[32])
{
	if (d.minor == COMPAT_ANY_RELEASE)
		d.minor = 0;
	if (d.patch)
		snprintf(text, 32, "%d.%02d.%02d", d.major, d.minor, d.patch);
	else if (d.minor)
		snprintf(text, 32, "%d.%02d", d.major, d.minor);
	else
		snprintf(text, 32, "%d", d.major);
	return text;
}

static const struct branch *driver_branch(struct compat_driver d)
{
	for (size_t i = 0; i < COUNT(branches); i++)
		if (d.major >= branches[i].first && d.major <= branches[i].last)
			return &branches[i];
	return NULL;
}

int compat_driver_cuda(struct compat_driver d)
{
	const struct branch *b = driver_branch(d);

	return b ? b->cuda : 0;
}

bool compat_driver_is_newer(struct compat_driver d)
{
	return d.major > branches[COUNT(branches) - 1].last;
}

static const struct toolkit *toolkit_of(int cuda)
{
	for (size_t i = 0; i < COUNT(toolkits); i++)
		if (toolkits[i].cuda == cuda / 10 * 10)
			return &toolkits[i];
	return NULL;
}

static const struct floor *floor_of(int cuda)
{
	for (size_t i = 0; i < COUNT(floors); i++)
		if (floors[i].cuda_major == cuda / 1000)
			return &floors[i];
	return NULL;
}

/* A driver is as new as a toolkit if its own CUDA version is. Where the version is not in the table, the driver that
 * came with the toolkit decides. */
static bool driver_is_native(struct compat_driver d, int cuda, const struct toolkit *t)
{
	int own = compat_driver_cuda(d);

	if (own)
		return own >= cuda / 10 * 10;
	return t && compat_driver_compare(d, t->driver) >= 0;
}

enum compat_run compat_driver_runs(struct compat_driver d, int cuda)
{
	const struct toolkit *t = toolkit_of(cuda);
	const struct floor *f = floor_of(cuda);

	if (d.major <= 0 || cuda <= 0 || (!t && !f))
		return COMPAT_RUN_UNKNOWN;
	if (driver_is_native(d, cuda, t))
		return COMPAT_RUN_NATIVE;
	if (!f)
		return COMPAT_RUN_NO;
	if (compat_driver_compare(d, f->driver) >= 0)
		return COMPAT_RUN_MINOR;
	return d.major >= f->forward ? COMPAT_RUN_FORWARD : COMPAT_RUN_NO;
}

bool compat_driver_needed(int cuda, struct compat_need *need)
{
	const struct toolkit *t = toolkit_of(cuda);
	const struct floor *f = floor_of(cuda);

	*need = (struct compat_need){0};
	if (!t && !f)
		return false;
	if (t)
		need->full = t->driver;
	need->least = f ? f->driver : t->driver;
	/* the first toolkit of a major version came with a driver that is older than what the others need */
	if (t && compat_driver_compare(t->driver, need->least) < 0)
		need->least = t->driver;
	return true;
}

int compat_branch_for(int cc)
{
	const struct compat_generation *g = compat_generation(cc);

	if (!g)
		return 0;
	return g->last_branch ? g->last_branch : branches[COUNT(branches) - 1].first;
}

int compat_first_branch_for(int cc)
{
	const struct compat_capability *c = compat_capability(cc);

	if (!c || c->first_cuda < branches[0].cuda)
		return 0;
	for (size_t i = 0; i < COUNT(branches); i++)
		if (branches[i].cuda >= c->first_cuda)
			return branches[i].first;
	return 0;
}

int compat_driver_supports(struct compat_driver d, int cc)
{
	const struct compat_generation *g = compat_generation(cc);

	if (d.major <= 0 || !g)
		return -1;
	if (d.major < compat_first_branch_for(cc))
		return 0;
	/* the branch after the last one starts five numbers later */
	if (g->last_branch)
		return d.major < g->last_branch + 5;
	return compat_driver_is_newer(d) ? -1 : 1;
}
