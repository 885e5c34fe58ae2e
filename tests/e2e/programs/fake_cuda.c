/* SPDX-License-Identifier: Apache-2.0
 * A library that is not the driver but has a function with the name of a driver function. */
int cuInit(unsigned int flags);

int cuInit(unsigned int flags)
{
	return 77 + (int)flags;
}
