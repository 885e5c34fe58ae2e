/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch says about itself (see torch_version.h). From files alone: Python is not asked.
 */
#include "read/recording/torch_version.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"

#define FILE_MAX 65536

void file_value(const char *path, const char *key, const char *ends, char *out, size_t size)
{
	struct buf b;
	char *at;

	buf_init(&b, FILE_MAX);
	if (fs_read(path, &b, NULL) == 0 && b.data && (at = strstr(b.data, key)) != NULL) {
		at += strlen(key);
		at[strcspn(at, ends)] = '\0';
		str_plain(at, at, strlen(at));
		str_copy(out, size, at);
	}
	buf_release(&b);
}

void torch_value(const char *torch_path, const char *key, char *out, size_t size)
{
	const char *folder = strstr(torch_path, "/lib/libc10.so");
	char *file = folder ? xasprintf("%.*s/version.py", (int)(folder - torch_path), torch_path) : NULL;

	if (file)
		file_value(file, key, "'\n", out, size);
	free(file);
}
