/* SPDX-License-Identifier: Apache-2.0
 * Processes that failed because another one did: which one is to blame, and what is printed about them.
 */
#include <stdio.h>
#include <stdlib.h>

#include "show/report.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/run.h"

#define VICTIMS_MAX 8	/* a job may have a thousand ranks: beyond this many, they are only counted */

bool victims_blame(struct judge *j, struct process *p)
{
	size_t i, n = j->server->n_processes;
	struct verdict **list = xcalloc(n + 1, sizeof(*list));
	bool found;

	for (i = 0; i < n; i++)
		list[i] = j->server->process[i]->verdict;
	found = verdict_blame(p->verdict, list, n);
	str_copy(p->cause, sizeof(p->cause), verdict_cause(p->verdict));
	free(list);
	return found;
}

void victims_print(struct judge *j, struct process *p)
{
	p->told = true;
	if (++j->n_victims <= VICTIMS_MAX)
		report_victim(stderr, p->verdict);
}

void victims_tell(struct judge *j)
{
	struct process *p;
	size_t i;

	for (i = 0; i < j->server->n_processes; i++) {
		p = j->server->process[i];
		if (p->verdict && !p->told && victims_blame(j, p) && !j->json)
			victims_print(j, p);
	}
	if (j->n_victims > VICTIMS_MAX)
		fprintf(stderr, "cuwhy: %zu more process%s failed because of it\n", j->n_victims - VICTIMS_MAX,
			j->n_victims - VICTIMS_MAX == 1 ? "" : "es");
}
