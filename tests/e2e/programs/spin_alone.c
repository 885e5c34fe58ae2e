/* SPDX-License-Identifier: Apache-2.0
 * A program that only runs. */
int main(void)
{
	volatile unsigned n = 0;

	for (;;)
		n++;
}
