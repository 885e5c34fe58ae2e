/* SPDX-License-Identifier: Apache-2.0
 * The GPUs of a machine (see machine_gpu.h).
 */
#include "input/machine/machine_gpu.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* "0000:10:1c.0", "00000000:10:1C.0": the same place. */
static bool same_place(const char *a, const char *b)
{
	unsigned int x[4] = {0}, y[4] = {1};

	return a && b && sscanf(a, "%x:%x:%x.%x", &x[0], &x[1], &x[2], &x[3]) == 4 &&
	       sscanf(b, "%x:%x:%x.%x", &y[0], &y[1], &y[2], &y[3]) == 4 && !memcmp(x, y, sizeof(x));
}

static bool same_text(const char *a, const char *b)
{
	return a[0] && strcmp(a, b) == 0;
}

static size_t host_gpus(const struct machine *m)
{
	return m->host.n_gpu > 0 ? (size_t)m->host.n_gpu : 0;
}

size_t machine_gpus(const struct machine *m)
{
	if (m->nvml && m->nvml->n)
		return m->nvml->n;
	return m->cuda.n ? m->cuda.n : host_gpus(m);
}

static void find_cuda(const struct machine *m, struct machine_gpu *g)
{
	for (size_t i = 0; i < m->cuda.n && !g->cuda; i++) {
		const struct cuda_device *d = &m->cuda.device[i];

		if (!same_text(d->uuid, g->nvml->card.uuid) && !same_place(d->pci, g->nvml->card.pci))
			continue;
		g->cuda = d;
		g->ordinal = (int)i;
	}
	/* bundles that people write have neither ids nor places */
	if (!g->cuda && g->index < m->cuda.n && m->cuda.n == m->nvml->n && !m->cuda.device[g->index].uuid[0] &&
	    !m->cuda.device[g->index].pci[0]) {
		g->cuda = &m->cuda.device[g->index];
		g->ordinal = (int)g->index;
	}
}

static void find_host(const struct machine *m, struct machine_gpu *g)
{
	const char *pci = g->nvml ? g->nvml->card.pci : g->cuda ? g->cuda->pci : NULL;

	for (size_t i = 0; pci && i < host_gpus(m) && !g->host; i++)
		if (same_place(m->host.gpu[i].address, pci))
			g->host = &m->host.gpu[i];
	if (!g->host && host_gpus(m) == 1 && machine_gpus(m) == 1)
		g->host = &m->host.gpu[0];
}

static int capability(int64_t major, int64_t minor)
{
	return major > 0 && major < 100 && minor >= 0 && minor < 10 ? (int)(major * 10 + minor) : 0;
}

/* The driver's word first; then what the tables say of the name or the PCI number. */
static void find_kind(struct machine_gpu *g)
{
	const struct compat_gpu *by_pci = NULL, *by_name;
	const struct gpu_details *d = g->nvml ? &g->nvml->details : NULL;

	if (g->cuda)
		g->cc = capability(g->cuda->cc_major, g->cuda->cc_minor);
	if (!g->cc && d)
		g->cc = capability(d->cc_major, d->cc_minor);
	by_name = g->name ? compat_gpu_by_name(g->name) : NULL;
	if (g->name)
		g->class = compat_class_of(g->name);
	if (by_name) {
		g->cc = g->cc ? g->cc : by_name->cc;
		g->class = g->class ? g->class : by_name->class;
	}
	if (g->host && g->host->device > 0 && g->host->device <= UINT16_MAX && (!g->cc || !g->name))
		by_pci = compat_gpu_by_pci((uint16_t)g->host->device);
	if (!by_pci)
		return;
	g->cc = g->cc ? g->cc : by_pci->cc;
	g->class = g->class ? g->class : by_pci->class;
	g->name = g->name ? g->name : by_pci->name;
}

void machine_gpu(const struct machine *m, size_t i, struct machine_gpu *g)
{
	*g = (struct machine_gpu){.index = i, .ordinal = -1};
	if (m->nvml && i < m->nvml->n) {
		g->nvml = &m->nvml->gpu[i];
		g->index = g->nvml->card.index;
		g->name = g->nvml->card.name[0] ? g->nvml->card.name : NULL;
		find_cuda(m, g);
	} else if (i < m->cuda.n) {
		g->cuda = &m->cuda.device[i];
		g->ordinal = (int)i;
	} else if (i < host_gpus(m)) {
		g->host = &m->host.gpu[i];
	}
	if (!g->name && g->cuda && g->cuda->name[0])
		g->name = g->cuda->name;
	if (!g->host)
		find_host(m, g);
	if (!g->name && g->host)
		g->name = g->host->model;
	find_kind(g);
}

const struct pyenv *machine_env(const struct machine *m, size_t *index)
{
	*index = 0;
	for (size_t i = 0; i < m->envs.n_envs; i++) {
		/* with --python that one is meant, whatever is in it */
		if (!m->envs.env[i].torch.dir && !(m->envs.env[i].origin & PYENV_ASKED))
			continue;
		*index = i;
		return &m->envs.env[i];
	}
	return m->envs.n_envs ? &m->envs.env[0] : NULL;
}

int cuda_number(const char *text)
{
	int major = 0, minor = 0;

	if (!text || sscanf(text, "%d.%d", &major, &minor) < 1 || major < 1 || major > 99 || minor < 0 || minor > 99)
		return 0;
	return major * 1000 + minor * 10;
}
