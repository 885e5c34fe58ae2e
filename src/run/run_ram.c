/* SPDX-License-Identifier: Apache-2.0
 * The memory of the host at the moment when a process of the run could not get any (see run.h).
 */
#include "run/run.h"

#include <sys/mman.h>

#include "sim/cuda/sim_cards.h"
#include "sim/cuda/sim_spec.h"

/* What is pinned on the simulated host; nothing of it is taken from the real one. */
static uint64_t simulated_pinned(void)
{
	struct sim_cards *c = sim_cards_map();
	uint64_t sum = c ? sim_cards_sum(c, CARD_HOST) : 0;

	if (c)
		munmap(c, sizeof(*c));
	return sum;
}

/* `ram=` names another host, which has no limits but its memory. */
static void simulate(struct ram_state *r, uint64_t total, uint64_t pinned)
{
	uint64_t left = total > pinned ? total - pinned : 0;

	if (r->total != total) {
		r->total = total;
		r->available = left;
		r->group_limit = r->lock_limit = RAM_UNLIMITED;
		r->group_used = RAM_UNKNOWN;
		r->wsl = false;
	} else if (r->available > left) {
		r->available = left;
	}
}

void run_ram_look(struct ram_state *r, pid_t pid, const char *sim)
{
	struct sim_config config;
	struct sim_spec_error why;

	ram_look(r, "", pid);
	if (sim && sim_spec_read(&config, sim, &why))
		simulate(r, config.ram, simulated_pinned());
}
