/* SPDX-License-Identifier: Apache-2.0
 * Folders of packages that consist of Python text alone: the search for libraries leaves them out. (internal to pyenv)
 */
#ifndef CUWHY_EXTENSION_PURE_H
#define CUWHY_EXTENSION_PURE_H

#include "input/machine/pyenv/pyenv_priv.h"

struct top_folder { const char *folder, *name; size_t len; bool native; };

struct pure_folders {
	struct top_folder *item;
	size_t n, cap;
};

void pure_folders_read(struct pure_folders *p, struct env_work *w);
bool pure_folders_has(const struct pure_folders *p, const char *folder, const char *name);
void pure_folders_release(struct pure_folders *p);

#endif
