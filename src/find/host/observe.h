/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine: for one of its GPUs and one of its Python environments.
 */
#ifndef CUWHY_MACHINE_OBSERVE_H
#define CUWHY_MACHINE_OBSERVE_H

#include "case/case.h"
#include "read/machine/machine.h"

#define MACHINE_OBSERVER "machine"

/* The machine and its driver; then the GPU with this index (SIZE_MAX: there is none); then the environment. */
void facts_of_machine(struct casefile *f, const struct machine *m, size_t gpu);

#endif
