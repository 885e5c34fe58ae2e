/* SPDX-License-Identifier: Apache-2.0
 * Reductions of small contents on the CPU, for the types that C has.
 */
#include "sim/nccl/nccl.h"

bool nccl_can_reduce(int type, int redop)
{
	/* half and bfloat16 are gradients, which nothing computed; a factor is on the device */
	return redop >= 0 && redop < RED_BUILT_IN && type >= 0 && type <= 8 && type != 6;
}

#define REDUCE(c, expression)                     \
	do {                                      \
		c *to = into;                     \
		const c *add = from;              \
		for (size_t i = 0; i < count; i++) \
			to[i] = (c)(expression);  \
	} while (0)

#define REDUCE_TYPE(number, c, wide)                                                      \
	case number:                                                                \
		switch (redop) {                                                    \
		case RED_SUM:                                                       \
		case RED_AVG: REDUCE(c, (wide)to[i] + (wide)add[i]); break;                     \
		case RED_PROD: REDUCE(c, (wide)to[i] * (wide)add[i]); break;                    \
		case RED_MAX: REDUCE(c, to[i] > add[i] ? to[i] : add[i]); break;    \
		case RED_MIN: REDUCE(c, to[i] < add[i] ? to[i] : add[i]); break;    \
		}                                                                   \
		break

/* Sums of integers wrap around, which C allows for unsigned types only. */
void nccl_reduce(int type, int redop, void *into, const void *from, size_t count)
{
	switch (type) {
		REDUCE_TYPE(0, int8_t, uint64_t);
		REDUCE_TYPE(1, uint8_t, uint64_t);
		REDUCE_TYPE(2, int32_t, uint64_t);
		REDUCE_TYPE(3, uint32_t, uint64_t);
		REDUCE_TYPE(4, int64_t, uint64_t);
		REDUCE_TYPE(5, uint64_t, uint64_t);
		REDUCE_TYPE(7, float, float);
		REDUCE_TYPE(8, double, double);
	}
}

#define AVERAGE_TYPE(number, c)                       \
	case number:                                  \
		for (size_t i = 0; i < count; i++)    \
			((c *)values)[i] /= (c)ranks; \
		break

void nccl_average(int type, void *values, size_t count, int ranks)
{
	switch (type) {
		AVERAGE_TYPE(0, int8_t);
		AVERAGE_TYPE(1, uint8_t);
		AVERAGE_TYPE(2, int32_t);
		AVERAGE_TYPE(3, uint32_t);
		AVERAGE_TYPE(4, int64_t);
		AVERAGE_TYPE(5, uint64_t);
		AVERAGE_TYPE(7, float);
		AVERAGE_TYPE(8, double);
	}
}
