/* SPDX-License-Identifier: Apache-2.0
 * Truth values that the program itself changed.
 *
 * Loops on a GPU end by a truth value that kernels compute, but what decides is often a constant that the program filled in:
 * generate() of transformers combines torch.full(n, length >= max_length) with what the model said, and reads the result back. What
 * kernels make of it is unknown. When the same line of the program has filled in False before and now True, the answer is the
 * other one, too: see truth_pass_on() in sim_contents.c. */
#include "sim/cuda/sim_contents.h"

enum { PLACES_MAX = 256 };

bool sim_truth_turns(bool value)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct { uint32_t place; bool value; } last[PLACES_MAX];
	uint32_t place = cuwhy_sim_place();
	bool turns = false;
	size_t i = 0;

	if (!place)
		return false;
	pthread_mutex_lock(&lock);
	while (i < PLACES_MAX && last[i].place && last[i].place != place)
		i++;
	if (i < PLACES_MAX) {
		turns = last[i].place && value && !last[i].value;
		last[i].place = place;
		last[i].value = value;
	}
	pthread_mutex_unlock(&lock);
	return turns;
}
