/* SPDX-License-Identifier: Apache-2.0
 * Writes the seeds of the corpus of libraries: make_fatbin_seeds FOLDER.
 */
#include <stdio.h>

#include "tests/unit/fatbin_make.h"

static void save(const char *folder, const char *name, struct lib_make *m)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (!f || fwrite(m->data, 1, m->len, f) != m->len || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	free(m->data);
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"75 80 86 90 100 120", "75 80 86 90 100 120", "75 80 90 90a 100a", "90a",
					    NULL};
	static const char *const ptx[] = {"75 p90", "75 100f p120", NULL};
	struct lib_make m;

	if (argc != 2) {
		fprintf(stderr, "usage: make_fatbin_seeds FOLDER\n");
		return 2;
	}
	lib_of(&m, usual);
	save(argv[1], "usual", &m);
	lib_of(&m, ptx);
	save(argv[1], "ptx", &m);
	lib_of(&m, usual);
	m.len -= m.len / 3;
	save(argv[1], "cut", &m);
	lib_of(&m, usual);
	lib_header(&m)->e_shoff = 0;
	lib_header(&m)->e_shnum = 0;
	save(argv[1], "stripped", &m);
	lib_begin(&m);
	lib_section(&m, NAME_RELFATBIN);
	lib_binary_of(&m, "70 80");
	lib_section_end(&m);
	lib_section(&m, NAME_FATBIN);
	lib_bytes(&m, NULL, 40);
	lib_binary_of(&m, "70 80");
	lib_section_end(&m);
	lib_end(&m);
	save(argv[1], "linked", &m);
	return 0;
}
