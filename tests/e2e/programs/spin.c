/* SPDX-License-Identifier: Apache-2.0
 * A C extension that never returns. */
void spin(void);

void spin(void)
{
	volatile unsigned n = 0;

	for (;;)
		n++;
}
