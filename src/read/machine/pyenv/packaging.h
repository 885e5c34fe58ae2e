/* SPDX-License-Identifier: Apache-2.0
 * Python's rules for packages: their names, versions, environment markers, METADATA files and the requirements in these.
 */
#ifndef CUWHY_PYENV_PACKAGING_H
#define CUWHY_PYENV_PACKAGING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

#define PY_NAME_MAX	128

/* PEP 503: writes the normalized name; false when it does not fit or is not a name. */
bool py_normalize(const char *name, size_t len, char *to, size_t size);

/* PEP 440. Compares two versions: <0, 0, >0. Local parts ("+cu124") count last. */
int py_version_cmp(const char *a, const char *b);

/* Does `version` fit all of `specifiers` ("<14,>=13.0.3", "==2.5.1", "")? 1 yes, 0 no, -1 not known. */
int py_version_fits(const char *version, const char *specifiers);

/* Is an environment marker true here: Linux, the given machine ("x86_64"), Python 3.`minor`, this list of extras
 * (comma separated, "" none)? 1 yes, 0 no, -1 not known. */
int py_marker_true(const char *marker, const char *machine, int minor, const char *extras);

/* METADATA has headers like those of a mail, up to the first empty line. The first one of that name, in the pool; NULL:
 * none, or an absurd one. */
const char *py_metadata_field(struct pool *pool, const char *text, const char *name);

/* The next line "name: value" from *at on, which is moved past it; NULL: no more headers. */
const char *py_metadata_next(const char **at, const char *name, size_t *len);

struct requirement {
	char name[PY_NAME_MAX];		/* normalized */
	char extras[256];		/* normalized, comma separated */
	char specifiers[128];		/* "==2.5.1"; "" any */
	const char *marker;		/* "" none */
	char text[192];			/* as written, without the marker */
};

/* "torch (==2.5.1) ; extra == 'x'" or "cuda-toolkit[cublas]==13.0.2; ..." or "x @ https://..." (any version). */
bool py_requirement_parse(struct requirement *r, const char *text, size_t len, char *marker, size_t marker_size);

#endif
