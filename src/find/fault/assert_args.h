/* SPDX-License-Identifier: Apache-2.0
 * What a failed assertion was called with: __assertfail(message, file, line, function, size of a character), read
 * from the code before the call. The registers themselves are gone by the time of the dump.
 */
#ifndef CUWHY_ASSERT_ARGS_H
#define CUWHY_ASSERT_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "read/dump/dump.h"

enum assert_arg { ASSERT_MESSAGE, ASSERT_FILE, ASSERT_LINE, ASSERT_FUNCTION, ASSERT_ARGS };

struct assert_args {
	bool known[ASSERT_ARGS];
	uint64_t value[ASSERT_ARGS];	/* run-time addresses, and the line */
};

/* `back` is the address that the call returns to. False when there is no call before it. */
bool assert_args_find(struct bytes image, unsigned arch, uint64_t back, struct assert_args *args);

#endif
