/* SPDX-License-Identifier: Apache-2.0
 * What the files observe*.c of this folder ask of each other.
 */
#ifndef CUWHY_MACHINE_OBSERVE_PARTS_H
#define CUWHY_MACHINE_OBSERVE_PARTS_H

#include "case/case.h"
#include "read/machine/machine.h"

/* observe_host.c */
void facts_of_host(struct casefile *f, const struct machine *m);
void facts_of_driver(struct casefile *f, const struct machine *m);

/* observe_code.c: of the environment `index`; `g` and `env` may be NULL. */
void facts_of_code(struct casefile *f, const struct machine *m, const struct machine_gpu *g, size_t index);
void facts_of_install(struct casefile *f, const struct machine *m, const struct pyenv *env);
void facts_of_extension_code(struct casefile *f, const struct machine *m, size_t env, int cc);

/* observe_packages.c */
void facts_of_builds(struct casefile *f, const struct machine *m, const struct pyenv *env);
void facts_of_loader(struct casefile *f, const struct machine *m, const struct pyenv *env);
void facts_of_packages(struct casefile *f, const struct pyenv *env);

#endif
