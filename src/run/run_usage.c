/* SPDX-License-Identifier: Apache-2.0
 * Who holds the GPUs when memory runs out: starts the probe as soon as a recorder reports it.
 *
 * One probe at a time, for all processes that wait for one; a process keeps only the latest result.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "run/run.h"

static bool is_kept_by(const struct server *s, const struct gpu_usage *u)
{
	size_t i;

	for (i = 0; i < s->n_processes; i++)
		if (s->process[i]->end.usage == u)
			return true;
	return false;
}

static void drop_unused(struct sampler *m, const struct server *s)
{
	size_t i;

	for (i = 0; i < m->n_kept;) {
		if (is_kept_by(s, m->kept[i])) {
			i++;
			continue;
		}
		usage_free(m->kept[i]);
		m->kept[i] = m->kept[--m->n_kept];
	}
}

static void finish_sample(struct sampler *m, struct server *s)
{
	struct gpu_usage *u = probe_finish(&m->probe);
	size_t i;

	m->busy = false;
	for (i = 0; i < s->n_processes; i++) {
		if (s->process[i]->sample != SAMPLE_UNDER_WAY)
			continue;
		s->process[i]->sample = SAMPLE_NONE;
		s->process[i]->end.usage = u;
	}
	m->kept = xgrow(m->kept, m->n_kept, &m->cap_kept, sizeof(*m->kept));
	m->kept[m->n_kept++] = u;
	drop_unused(m, s);
}

static void start_sample(struct sampler *m, struct server *s)
{
	size_t i;

	for (i = 0; i < s->n_processes; i++) {
		if (s->process[i]->sample != SAMPLE_WANTED)
			continue;
		s->process[i]->sample = SAMPLE_UNDER_WAY;
		m->busy = true;
	}
	if (m->busy)
		probe_start(&m->probe);
}

void sampler_step(struct sampler *m, struct server *s)
{
	if (m->busy && probe_step(&m->probe, proc_mono_ns()))
		finish_sample(m, s);
	if (!m->busy)
		start_sample(m, s);
}

bool sampler_poll(const struct sampler *m, struct pollfd *p, int *wait_ms)
{
	uint64_t now = proc_mono_ns();
	int left = 0;

	if (!m->busy)
		return false;
	if (now < m->probe.until_ns)
		left = (int)((m->probe.until_ns - now) / 1000000u) + 1;
	if (!probe_runs(&m->probe))
		left = 0;
	if (*wait_ms < 0 || *wait_ms > left)
		*wait_ms = left;
	*p = (struct pollfd){.fd = m->probe.fd, .events = POLLIN};
	return true;
}

bool sampler_pending(const struct server *s)
{
	size_t i;

	for (i = 0; i < s->n_processes; i++)
		if (s->process[i]->sample != SAMPLE_NONE)
			return true;
	return false;
}

void sampler_release(struct sampler *m)
{
	if (m->busy)
		usage_free(probe_finish(&m->probe));
	while (m->n_kept)
		usage_free(m->kept[--m->n_kept]);
	free(m->kept);
	*m = (struct sampler){.busy = false};
}
