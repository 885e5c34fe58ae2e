/* SPDX-License-Identifier: Apache-2.0
 * Runs a program whose file is edited, without a change to the file (see fit_patch.h).
 *
 * The edit is made by the program that the dry run starts: what a dry run writes goes to a layer of its own, so that all that reads the file in
 * it sees the edit, launchers and children included, and the user's file stays as it is. Such a run never has writes that are real.
 */
#include "fit/fit_patch.h"

#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define EDIT "cat \"$1\" >\"$2\" && shift 2 && exec \"$@\""
#define WORDS_BEFORE 6	/* sh -c EDIT sh TEXT FILE */

bool fit_patch_read(struct fit_patch *p, const json_t *told, const char *change, struct pool *pool)
{
	const json_t *one;
	size_t i;

	json_array_foreach(told, i, one) {
		const char *of = json_string_value(json_object_get(one, "patch")),
			   *file = json_string_value(json_object_get(one, "file")),
			   *text = json_string_value(json_object_get(one, "text")),
			   *diff = json_string_value(json_object_get(one, "diff"));

		if (!of || strcmp(of, change) != 0 || !file || file[0] != '/' || !text || !diff)
			continue;
		*p = (struct fit_patch){.change = change, .file = pool_strdup(pool, file), .text = pool_strdup(pool, text),
					.diff = pool_strdup(pool, diff)};
		return true;
	}
	return false;
}

int fit_patch_run(struct fit_runs *r, struct fit_run *run, const struct fit_patch *p, const struct card_model *card,
		  const char *memory, char *const *program, struct err *e)
{
	const char *before[WORDS_BEFORE] = {"sh", "-c", EDIT, "sh"};
	char *edited = fs_join(r->folder, "edited"), **words;
	size_t n = 0;
	int rc = fs_write(edited, p->text, strlen(p->text), e);

	*run = (struct fit_run){.fits = false};
	while (program[n])
		n++;
	words = xcalloc(WORDS_BEFORE + n + 1, sizeof(*words));
	before[4] = edited;
	before[5] = p->file;
	memcpy(words, before, sizeof(before));
	memcpy(words + WORDS_BEFORE, program, n * sizeof(*words));
	r->edited = true;
	if (rc == 0)
		rc = fit_run(r, run, card, memory, words, e);
	r->edited = false;
	free(words);
	free(edited);
	return rc;
}
