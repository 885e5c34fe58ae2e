/* SPDX-License-Identifier: Apache-2.0
 * Where the dynamic loader looks for a name (internal to the loader).
 */
#ifndef CUWHY_LOADER_SEARCH_H
#define CUWHY_LOADER_SEARCH_H

#include "input/machine/pyenv/loader_session.h"

/* The machine of the program (or of cuwhy itself), its CPU's level and the default folders. */
void loader_setup_machine(struct loader_session *s, const char *exe);

/* Reads one file as an object. -errno: not there; -ENOEXEC: of another machine; `broken` when the loader would refuse it. */
int loader_load(struct loader_session *s, const char *path, struct loader_object *o);

#endif
