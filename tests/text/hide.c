/* SPDX-License-Identifier: Apache-2.0
 * Takes the secrets out of many texts in one process: reads them from standard input, each ended by a zero byte, and writes them
 * likewise.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/private.h"

int main(void)
{
	char *text = NULL, *shown;
	size_t room = 0;

	while (getdelim(&text, &room, '\0', stdin) > 0) {
		shown = private_shown(text);
		fwrite(shown, 1, strlen(shown) + 1, stdout);
		free(shown);
	}
	free(text);
	return fflush(stdout) != 0;
}
