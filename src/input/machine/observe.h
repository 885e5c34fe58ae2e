/* SPDX-License-Identifier: Apache-2.0
 * Facts about a machine: for one of its GPUs and one of its Python environments.
 */
#ifndef CUWHY_FACT_MACHINE_H
#define CUWHY_FACT_MACHINE_H

#include "case/case.h"
#include "input/machine/machine_gpu.h"

#define MACHINE_OBSERVER "machine"

/* The machine and its driver; then the GPU with this index (SIZE_MAX: there is none); then the environment. */
void facts_of_machine(struct casefile *f, const struct machine *m, size_t gpu);

void fill_machine_host(struct casefile *f, const struct machine *m);
void fill_machine_driver(struct casefile *f, const struct machine *m);
void fill_machine_gpu(struct casefile *f, const struct machine *m, const struct machine_gpu *g);
void fill_machine_env(struct casefile *f, const struct machine *m, const struct machine_gpu *g);
void fill_machine_loader(struct casefile *f, const struct machine *m, const struct pyenv *env);
void fill_machine_extensions(struct casefile *f, const struct machine *m, size_t env, const struct machine_gpu *g);
void fill_machine_install(struct casefile *f, const struct machine *m, const struct pyenv *env);
void fill_machine_builds(struct casefile *f, const struct machine *m, const struct pyenv *env);

/* What the driver is, by everything that knows: for src/compat. */
struct compat_driver machine_driver(const struct machine *m);
int machine_driver_cuda(const struct machine *m);	/* 13000; 0 = not known */
int machine_newest_branch(const struct machine *m);	/* of drivers that support every GPU; 0 = not known */

/* Does this PyTorch run on this GPU, as far as is known? */
bool machine_gpu_works(const struct machine *m, const struct machine_gpu *g, const struct pyenv *env, size_t env_index);

/* What src/compat is asked for a wheel that fits; `cc` has room for all GPUs. */
#define MACHINE_GPUS_MAX 64
void machine_ask(const struct machine *m, const struct pyenv *env, int *cc, struct compat_ask *ask);

/* Coverage of one library's code. `archs` (pool) lists its architectures. */
const char *machine_cover_word(enum fatbin_cover c);

#endif
