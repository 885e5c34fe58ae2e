/* SPDX-License-Identifier: Apache-2.0
 * Random numbers, the same in every run.
 */
#ifndef CUWHY_TEST_DICE_H
#define CUWHY_TEST_DICE_H

#include <stdint.h>

static uint64_t dice = 88172645463325252ull;

static inline uint64_t roll(uint64_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice % below;
}

#endif
