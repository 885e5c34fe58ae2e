/* SPDX-License-Identifier: Apache-2.0
 * Settings in a text: options of a command line, rows of a configuration, arguments in code, variables (kb/settings.def), each with its
 * place, so that an answer can quote it.
 */
#ifndef CUWHY_TEXT_SETTING_H
#define CUWHY_TEXT_SETTING_H

#include <stddef.h>
#include <stdint.h>

#include "case/case.h"

#define SETTINGS_MAX	32

struct setting {
	enum fact_id fact;
	double number;		/* or yes and no as 1 and 0 */
	char text[96];		/* or a word */
	const char *file;
	uint64_t line;
	char said[160];		/* "--batch-size 8" */
};

struct settings {
	struct setting list[SETTINGS_MAX];
	size_t n;
};

/* `file`: its name stays. */
void settings_line(struct settings *t, const char *s, const char *file, uint64_t line);

void facts_of_settings(struct casefile *c, const struct settings *t);

#endif
