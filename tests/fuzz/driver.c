/* SPDX-License-Identifier: Apache-2.0
 * Runs a fuzz target over files and folders of files, without a fuzzer.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
	struct buf b;

	buf_init(&b, 1u << 30);
	if (fs_read(path, &b, NULL) != 0) {
		printf("not ok - %s cannot be read\n", path);
		buf_release(&b);
		return -1;
	}
	LLVMFuzzerTestOneInput((const uint8_t *)b.data, b.len);
	buf_release(&b);
	return 0;
}

static int run_folder(const char *dir, int *n)
{
	DIR *d = opendir(dir);
	struct dirent *ent;
	char *path;
	int rc = 0;

	while (d && rc == 0 && (ent = readdir(d))) {
		if (ent->d_name[0] == '.')
			continue;
		path = fs_join(dir, ent->d_name);
		rc = run_file(path);
		*n += rc == 0;
		free(path);
	}
	if (d)
		closedir(d);
	return rc;
}

int main(int argc, char **argv)
{
	int i, n = 0, rc = 0;

	for (i = 1; rc == 0 && i < argc; i++) {
		if (fs_is_dir(argv[i]))
			rc = run_folder(argv[i], &n);
		else if (run_file(argv[i]) == 0)
			n++;
		else
			rc = -1;
	}
	/* An empty corpus tests nothing and must not look like success. */
	printf("%d passed, %d failed\n", n, rc != 0 || n == 0);
	return rc != 0 || n == 0;
}
