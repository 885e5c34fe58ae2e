/* SPDX-License-Identifier: Apache-2.0
 * A folder of logs (see explain.h).
 */
#include "cmd/explain.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "read/recording/recording.h"

#define FOLDER_DEPTH 4		/* torchrun: logs/<run>/attempt_0/3/stderr.log */
#define FILES_MAX    1024

struct words {
	char **list;
	int n, room;
};

static void words_add(struct words *w, char *word)
{
	if (w->n == w->room) {
		w->room = w->room ? w->room * 2 : 16;
		w->list = xrealloc(w->list, (size_t)w->room, sizeof(*w->list));
	}
	w->list[w->n++] = word;
}

/* rank2.log comes before rank10.log. */
static int by_version(const struct dirent **a, const struct dirent **b)
{
	return strverscmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static void add_folder(struct words *w, const char *folder, int depth)
{
	struct dirent **list = NULL;
	int n = scandir(folder, &list, is_shown, by_version);

	for (int i = 0; i < n; i++) {
		char *path = fs_join(folder, list[i]->d_name);
		struct stat st;
		bool there = lstat(path, &st) == 0 && w->n < FILES_MAX;	/* a link could lead back here */

		if (there && S_ISDIR(st.st_mode) && depth > 0)
			add_folder(w, path, depth - 1);
		if (there && S_ISREG(st.st_mode) && st.st_size > 0)	/* most ranks have an empty stdout or stderr */
			words_add(w, path);
		else
			free(path);
		free(list[i]);
	}
	free(list);
}

static bool is_recording(const char *folder)
{
	struct recording r;
	bool is = recording_read(&r, folder, NULL) == 0;

	recording_release(&r);
	return is;
}

char **words_of_folders(char **words, int n, int *n_out)
{
	struct words w = {0};

	for (int i = 0; i < n; i++) {
		int before = w.n;

		if (fs_is_dir(words[i]) && !is_recording(words[i]))
			add_folder(&w, words[i], FOLDER_DEPTH);
		if (w.n == before)
			words_add(&w, xstrdup(words[i]));
	}
	*n_out = w.n;
	return w.list;
}

void words_free(char **words, int n)
{
	for (int i = 0; i < n; i++)
		free(words[i]);
	free(words);
}
