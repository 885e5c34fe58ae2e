/* SPDX-License-Identifier: Apache-2.0
 * Whoever watches the program (the recorder): it knows where the program is, and is told what the program did wrong that no
 * call of the driver shows. */
#include "sim/cuda/sim.h"

SIM_EXPORT void cuwhy_sim_on_place(sim_place_fn fn);
SIM_EXPORT void cuwhy_sim_on_mismatch(sim_mismatch_fn fn);
SIM_EXPORT void cuwhy_sim_mismatch(uint32_t place, uint64_t mono_ns, const char *call, const char *sentence, int blame);

static _Atomic(sim_place_fn) place_fn;
static _Atomic(sim_mismatch_fn) mismatch_fn;

/* The function says where in the program the calling thread is, as a number; 0: nowhere. NULL: nobody knows. */
void cuwhy_sim_on_place(sim_place_fn fn)
{
	atomic_store(&place_fn, fn);
}

uint32_t cuwhy_sim_place(void)
{
	sim_place_fn fn = atomic_load(&place_fn);

	return fn ? fn() : 0;
}

/* The function is called in the process of a rank that called, at `place`, another collective than the others, or may have
 * (enum sim_blame). */
void cuwhy_sim_on_mismatch(sim_mismatch_fn fn)
{
	atomic_store(&mismatch_fn, fn);
}

void cuwhy_sim_mismatch(uint32_t place, uint64_t mono_ns, const char *call, const char *sentence, int blame)
{
	sim_mismatch_fn fn = atomic_load(&mismatch_fn);

	if (fn)
		fn(place, mono_ns, call, sentence, blame);
}
