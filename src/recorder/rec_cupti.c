/* SPDX-License-Identifier: Apache-2.0
 * Profilers: the driver serves one developer tool at a time, and armed core dumps count as one.
 *
 * A process that subscribes to CUPTI before its first context gets no dumps, and a line of the driver's on stderr that it
 * would not have without us; one whose context has dumps armed may be refused (R580, H200). So dumps step aside for
 * whoever subscribes, as long as that is possible: until the first context.
 */
#include <string.h>

#include "rec_linked.h"

#define NOT_INITIALIZED 15	/* CUptiResult */

static const char *const subscribe_name[] = {"cuptiSubscribe", "cuptiSubscribe_v2"};
static struct linked cupti = LINKED("libcupti.so", subscribe_name);
LOCK_LISTED(cupti, cupti.adding);

bool cupti_subscribes(const char *name)
{
	return strncmp(name, subscribe_name[0], strlen(subscribe_name[0])) == 0;
}

static int subscribe(uint32_t function, const void *caller, void *handle, void *callback, void *data, void *more)
{
	int (*real)(void *, void *, void *, void *) = linked_real(&cupti, function, caller);

	if (!real)
		real = elf_symbol_anywhere(subscribe_name[function]);
	dump_step_aside();
	return real ? real(handle, callback, data, more) : NOT_INITIALIZED;
}

EXPORT int cuptiSubscribe(void *handle, void *callback, void *data);
EXPORT int cuptiSubscribe(void *handle, void *callback, void *data)
{
	return subscribe(0, __builtin_return_address(0), handle, callback, data, NULL);
}

EXPORT int cuptiSubscribe_v2(void *handle, void *callback, void *data, void *more);
EXPORT int cuptiSubscribe_v2(void *handle, void *callback, void *data, void *more)
{
	return subscribe(1, __builtin_return_address(0), handle, callback, data, more);
}
