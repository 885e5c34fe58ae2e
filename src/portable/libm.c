/* SPDX-License-Identifier: Apache-2.0
 * libm's functions in the versions that they had before glibc 2.29 and 2.38 (see portable.h).
 */
#include <math.h>

#include "portable/portable.h"

OLD(log, GLIBC_FIRST);
OLD(fmod, GLIBC_FIRST);

HERE double log(double x)
{
	return old_log(x);
}

HERE double fmod(double x, double y)
{
	return old_fmod(x, y);
}
