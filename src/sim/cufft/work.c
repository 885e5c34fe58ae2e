/* SPDX-License-Identifier: Apache-2.0
 * The work area of a transform: a model, not a measurement. cuFFT documents that a transform of lengths with no prime factor above
 * 127 is done in place or with one copy of the signal, that others use Bluestein's algorithm on a longer signal, and gives 8 times
 * the signal as the most it takes.
 */
#include "sim/cufft/cufft.h"

enum { LARGEST_PRIME = 127, ONE_KERNEL = 4096, ALIGNMENT = 512 };

static size_t largest_prime_factor(size_t n)
{
	size_t largest = 1;

	for (size_t p = 2; p * p <= n; p++)
		while (n % p == 0) {
			largest = p;
			n /= p;
		}
	return n > 1 ? n : largest;
}

/* Bluestein: a convolution at the next power of two that holds 2n - 1 elements. */
static size_t bluestein_length(size_t n)
{
	size_t m = 1;

	while (m < 2 * n - 1)
		m *= 2;
	return m;
}

static bool fits_one_kernel(const struct fft_shape *s)
{
	return s->rank == 1 && s->length[0] <= ONE_KERNEL && largest_prime_factor(s->length[0]) <= 7;
}

size_t fft_work_bytes(const struct fft_shape *s)
{
	size_t elements = s->batch, copies = 1;

	if (fits_one_kernel(s))
		return 0;
	for (int i = 0; i < s->rank; i++) {
		/* a real signal is stored as half of its spectrum, plus one element */
		size_t n = s->length[i];
		bool halved = s->kind != FFT_C2C && i == s->rank - 1;

		if (largest_prime_factor(n) > LARGEST_PRIME) {
			n = bluestein_length(n);
			copies = 2;
		}
		elements *= halved ? n / 2 + 1 : n;
	}
	return (elements * copies * s->complex_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}
