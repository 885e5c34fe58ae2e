/* SPDX-License-Identifier: Apache-2.0
 * From a filled process to what is told about it (internal to pyenv).
 */
#ifndef CUWHY_LOADER_REPORT_H
#define CUWHY_LOADER_REPORT_H

#include "input/machine/pyenv/loader_session.h"
#include "input/machine/pyenv/pyenv_priv.h"

void loader_report(struct env_work *w, struct loader_session *l, struct loader_result *out);

/* dlopen(name) by the object `by`. */
void loader_driver_report(struct scan *s, struct loader_session *l, const char *name, int by, struct loader_driver *out);

/* The copy of a library that the wheels bring: torch/lib, nvidia/.../lib beside torch, or conda's lib. NULL: none. */
const char *loader_wheel_copy(struct env_work *w, const char *soname);

#endif
