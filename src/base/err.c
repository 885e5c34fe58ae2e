/* SPDX-License-Identifier: Apache-2.0
 * Filling an error once, where its cause is known.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list args;

	if (!e)
		return code;
	e->code = code;
	e->hint[0] = '\0';
	va_start(args, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, args);
	va_end(args);
	return code;
}

int err_hint(struct err *e, const char *fmt, ...)
{
	va_list args;

	if (!e)
		return 0;
	va_start(args, fmt);
	vsnprintf(e->hint, sizeof(e->hint), fmt, args);
	va_end(args);
	return e->code;
}
