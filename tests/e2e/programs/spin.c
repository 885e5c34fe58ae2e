/* SPDX-License-Identifier: Apache-2.0
 * A C extension: a call that never returns, and a thread of its own that calls back. */
#include <pthread.h>
#include <unistd.h>

void spin(void);
void call_later(void (*function)(void), unsigned seconds);

void spin(void)
{
	volatile unsigned n = 0;

	for (;;)
		n++;
}

static struct { void (*function)(void); unsigned seconds; } later;

static void *wait_and_call(void *unused)
{
	sleep(later.seconds);
	later.function();
	return unused;
}

void call_later(void (*function)(void), unsigned seconds)
{
	pthread_t thread;

	later.function = function;
	later.seconds = seconds;
	pthread_create(&thread, NULL, wait_and_call, NULL);
}
