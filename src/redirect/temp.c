/* SPDX-License-Identifier: Apache-2.0
 * Names that libc chooses: the template gets the scratch in front, and what was chosen comes back from behind.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

/* 0: the template's place in the scratch is ready. The name itself does not exist, so it is not walked. */
static int ready(struct place *p, const char *template)
{
	int rc;

	if (!is_on())
		return 1;
	rc = walk(p, AT_FDCWD, template, NAME);
	if (rc < 0)
		return rc;
	if (p->zone)
		return 1;
	return exists(p) ? -EINVAL : make_way(p);	/* six X and no more are not there */
}

/* What came in the place of the X, which `behind` other characters follow. */
static void take_back(char *template, const struct place *p, size_t behind)
{
	const size_t n = 6 + behind;

	if (strlen(template) >= n && p->len >= n)
		memcpy(template + strlen(template) - n, p->at + p->len - n, n);
}

/* p->at is written to through the path in the scratch, which ends with it. */
#define TEMPLATE(name, behind, parameters, ...)                                                    \
	EXPORT int name parameters                                                                 \
	{                                                                                          \
		struct place p;                                                                    \
		int rc = ready(&p, path), fd;                                                      \
\
		if (rc == 1)                                                                       \
			return NEXT(name)(path __VA_ARGS__);                                       \
		if (rc < 0)                                                                        \
			return (int)answer(rc);                                                    \
		fd = NEXT(name)((char *)in_new(&p) __VA_ARGS__);                                   \
		take_back(path, &p, behind);                                                       \
		return fd;                                                                         \
	}

#define BEHIND(n) ((n) > 0 ? (size_t)(n) : 0)

TEMPLATE(mkstemp, 0, (char *path))
TEMPLATE(mkstemp64, 0, (char *path))
TEMPLATE(mkostemp, 0, (char *path, int flags), , flags)
TEMPLATE(mkostemp64, 0, (char *path, int flags), , flags)
TEMPLATE(mkstemps, BEHIND(suffix), (char *path, int suffix), , suffix)
TEMPLATE(mkstemps64, BEHIND(suffix), (char *path, int suffix), , suffix)
TEMPLATE(mkostemps, BEHIND(suffix), (char *path, int suffix, int flags), , suffix, flags)
TEMPLATE(mkostemps64, BEHIND(suffix), (char *path, int suffix, int flags), , suffix, flags)

EXPORT char *mkdtemp(char *path)
{
	struct place p;
	int rc = ready(&p, path);

	if (rc == 1)
		return NEXT(mkdtemp)(path);
	if (rc < 0) {
		errno = -rc;
		return NULL;
	}
	if (!NEXT(mkdtemp)((char *)in_new(&p)))
		return NULL;
	take_back(path, &p, 0);
	return path;
}
