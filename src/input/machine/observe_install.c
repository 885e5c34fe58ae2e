/* SPDX-License-Identifier: Apache-2.0
 * Facts about what to install: which PyTorch goes with the machine (see fact_machine.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/machine/observe.h"

void machine_ask(const struct machine *m, const struct pyenv *env, int *cc, struct compat_ask *ask)
{
	size_t n = machine_gpus(m);
	struct machine_gpu g;

	*ask = (struct compat_ask){.driver = machine_driver(m), .cc = cc, .forward = n > 0};
	ask->machine = m->host.os.arch && strcmp(m->host.os.arch, "aarch64") == 0 ? COMPAT_AARCH64 : COMPAT_X86_64;
	if (env && env->major > 0 && env->minor >= 0)
		ask->python = env->major * 100 + env->minor;
	for (size_t i = 0; i < n && ask->n_cc < MACHINE_GPUS_MAX; i++) {
		machine_gpu(m, i, &g);
		/* those that CUDA hides from this program need not work */
		if (m->cuda.n && !g.cuda)
			continue;
		ask->forward &= compat_class_forward(g.class);
		if (g.cc)
			cc[ask->n_cc++] = g.cc;
	}
}

/* A CUDA version from before a GPU has libraries and compilers that do not know it, even where the code runs. */
static bool knows_gpus(const struct compat_wheel *w, const struct compat_ask *ask)
{
	for (size_t i = 0; i < ask->n_cc; i++) {
		const struct compat_capability *c = compat_capability(ask->cc[i]);

		if (c && c->first_cuda > w->cuda)
			return false;
	}
	return true;
}

/* The release that is installed, if a build of it fits; else the best of all. */
static struct compat_choice *pick(struct compat_choice *choice, size_t n, const struct compat_ask *ask, const struct compat_torch *has,
				  bool knowing)
{
	struct compat_choice *best = NULL;

	for (size_t i = 0; i < n && choice[i].fit < COMPAT_FIT_PYTHON; i++) {
		if (knowing && !knows_gpus(choice[i].wheel, ask))
			continue;
		if (has && strcmp(choice[i].wheel->release, has->release) == 0)
			return &choice[i];
		best = best ? best : &choice[i];
	}
	return best;
}

void fill_machine_install(struct casefile *f, const struct machine *m, const struct pyenv *env)
{
	struct compat_choice *choice = xcalloc(COMPAT_CHOICES_MAX, sizeof(*choice)), *best = NULL;
	const struct compat_torch *has = env && env->torch.version ? compat_torch(env->torch.version) : NULL;
	int cc[MACHINE_GPUS_MAX];
	struct compat_ask ask;
	char command[256];
	size_t n;

	machine_ask(m, env, cc, &ask);
	n = ask.n_cc ? compat_recommend(&ask, choice, COMPAT_CHOICES_MAX) : 0;
	best = pick(choice, n, &ask, has, true);
	best = best ? best : pick(choice, n, &ask, has, false);
	if (best) {
		fact_set_text(f, FACT_install_command, compat_wheel_command(best->wheel, command, sizeof(command)));
		fact_set_text(f, FACT_install_wheel, pool_printf(f->pool, "PyTorch %s for CUDA %d.%d (%s)", best->wheel->release,
								 best->wheel->cuda / 1000, best->wheel->cuda % 1000 / 10,
								 best->wheel->variant));
		fact_set_text(f, FACT_install_why, best->why);
	}
	free(choice);
}
