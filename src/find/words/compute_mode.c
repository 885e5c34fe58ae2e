/* SPDX-License-Identifier: Apache-2.0
 * Compute modes in a text (see env.h).
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/text/said.h"

static const struct {
	enum said_list shown;
	const char *mode;
} modes[] = {{SAID_mode_exclusive_process, "exclusive-process"}, {SAID_mode_exclusive_thread, "exclusive-thread"},
	     {SAID_mode_prohibited, "prohibited"}, {SAID_mode_default, "default"}};

static void note_mode(struct compute_modes *m, const char *s)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!says(s, modes[i].shown))
			continue;
		m->mode[m->row - 1] = modes[i].mode;
		m->n = m->row > m->n ? m->row : m->n;
		return;
	}
}

/* What stands last in a row of the table: "| N/A   34C    P0   52W / 400W |   4812MiB / 40960MiB |      0%   E. Process |" */
static const char *last_cell(const char *s)
{
	const char *percent = strrchr(s, '%');

	return percent && strstr(s, "MiB / ") ? percent + 1 + strspn(percent + 1, " ") : NULL;
}

void compute_modes_line(struct compute_modes *m, const char *s)
{
	size_t bar = s[0] == '|' ? 1 + strspn(s + 1, " ") : 0, digits = bar ? strspn(s + bar, "0123456789") : 0;
	const char *cell;

	if (digits && s[bar + digits] == ' ' && isalpha((unsigned char)s[bar + digits + strspn(s + bar + digits, " ")])) {
		long gpu = strtol(s + bar, NULL, 10);

		m->row = gpu < COMPUTE_MODES_MAX ? (int)gpu + 1 : 0;
	} else if (str_starts(s, "GPU 0000")) {	/* -q: a section for each, in order */
		m->row = m->listed < COMPUTE_MODES_MAX ? ++m->listed : 0;
	} else if (m->row && str_starts(s, "Compute Mode ")) {
		cell = strchr(s, ':');
		note_mode(m, cell ? cell + 1 + strspn(cell + 1, " ") : "");
	} else if (m->row && (cell = last_cell(s)) != NULL) {
		note_mode(m, cell);
		m->row = 0;
	}
}

const char *compute_mode_of(const struct compute_modes *m, int device)
{
	const char *all = NULL;

	if (device >= 0 && device < m->n && m->mode[device])
		return m->mode[device];
	for (int i = 0; i < m->n; i++) {
		if (!m->mode[i] || (all && all != m->mode[i] && strcmp(all, m->mode[i]) != 0))
			return "";
		all = m->mode[i];
	}
	return device >= m->n || !all ? "" : all;
}
