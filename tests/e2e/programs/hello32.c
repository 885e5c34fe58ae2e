/* SPDX-License-Identifier: Apache-2.0
 * Something to run as a 32-bit program: started by the 32-bit loader, but without a 32-bit C library, which few
 * machines have. */
static long call3(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}

void _start(void)
{
	static const char text[] = "32 bits\n";

	call3(4, 1, (long)text, sizeof(text) - 1);	/* write */
	call3(1, 7, 0, 0);				/* exit */
}
