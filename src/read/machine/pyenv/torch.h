/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's own files: the text of its Python files, without running them, and names in its libraries.
 */
#ifndef CUWHY_PYENV_TORCH_H
#define CUWHY_PYENV_TORCH_H

#include <stdbool.h>

#include "base/pool.h"

enum py_value { PY_VALUE_ABSENT, PY_VALUE_NONE, PY_VALUE_TEXT, PY_VALUE_OTHER };

/* The last assignment at the start of a line: `cuda: Optional[str] = '13.0'`. *value is set for PY_VALUE_TEXT only. */
enum py_value py_assignment(struct pool *pool, const char *text, const char *name, const char **value);

/* What torch/__init__.py opens by itself: pairs of a folder below nvidia/ and a file name pattern. */
struct torch_preload { const char *folder, *pattern; };

#define PRELOADS_MAX 48

struct torch_preloads {
	bool known;			/* the text has the functions that we know */
	struct torch_preload always[PRELOADS_MAX];	/* after libtorch_global_deps could be loaded */
	int n_always;
	const char *when;		/* only where this is part of the path of a loaded file; NULL: no condition */
	struct torch_preload rescue[PRELOADS_MAX];	/* when it could not */
	int n_rescue;
};

void torch_preloads_read(struct pool *pool, const char *text, struct torch_preloads *out);

/* Which C++ strings a function takes, by its mangled name: 1 and 0 as in struct py_torch; -1: it does not say. */
int torch_abi_of_symbol(const char *name);

#endif
