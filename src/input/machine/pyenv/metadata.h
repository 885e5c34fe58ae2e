/* SPDX-License-Identifier: Apache-2.0
 * METADATA files: headers like those of a mail, up to the first empty line.
 */
#ifndef CUWHY_PYENV_METADATA_H
#define CUWHY_PYENV_METADATA_H

#include "input/machine/pyenv/pyenv_priv.h"

struct requirement {
	char name[PY_NAME_MAX];		/* normalised */
	char extras[256];		/* normalised, comma separated */
	char specifiers[128];		/* "==2.5.1"; "" any */
	const char *marker;		/* "" none */
	char text[192];			/* as written, without the marker */
};

bool py_is_watched(const char *name);

/* METADATA or PKG-INFO of a package; NULL: unreadable. */
const char *py_metadata_text(struct scan *s, const struct py_package *p);

/* The first header of that name; NULL: none, or an absurd one. */
const char *py_metadata_field(const struct scan *s, const char *text, const char *name);

/* The next line "name: value" from *at on, which is moved behind it; NULL: no more headers. */
const char *py_metadata_next(const char **at, const char *name, size_t *len);

/* "torch (==2.5.1) ; extra == 'x'" or "cuda-toolkit[cublas]==13.0.2; ..." or "x @ https://..." (any version). */
bool py_requirement_parse(struct requirement *r, const char *text, size_t len, char *marker, size_t marker_size);

#endif
