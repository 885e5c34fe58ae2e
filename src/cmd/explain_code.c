/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain CODE`.
 */
#include "cmd/cmd.h"
#include "cmd/explain.h"
#include "base/banned.h"

bool explain_is_code(char **words, int n)
{
	(void)words; (void)n;
	return false;
}

int explain_code(char **words, int n, const struct explain_options *o, const struct text_style *style)
{
	(void)words; (void)n; (void)o; (void)style;
	return 0;
}
