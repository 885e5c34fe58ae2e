/* SPDX-License-Identifier: Apache-2.0
 * compile FROM TO: makes the knowledge base that is linked into cuwhy from the output of tools/make_kb.sh. Run by the Makefile; what is
 * wrong with a file of kb is said here, and nothing is built.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "knowledge/compile/compile.h"

#define TEXT_MAX (64u << 20)

static int complain(const struct err *e)
{
	fprintf(stderr, "%s\n", e->msg);
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
	return 1;
}

static int write_file(const char *path, const struct kb *kb)
{
	FILE *out = fopen(path, "wb");
	bool written = out && fwrite(kb, kb->size, 1, out) == 1;

	if (out && fclose(out))
		written = false;
	if (!written)
		fprintf(stderr, "cannot write '%s': %s\n", path, strerror(errno));
	return written ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct err e = {0};
	struct buf text;
	struct kb *kb;
	int fd = argc == 3 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1, rc;

	buf_init(&text, TEXT_MAX);
	if (fd < 0 || buf_read_fd(&text, fd)) {
		fprintf(stderr, "cannot read the knowledge base\n");
		return 1;
	}
	close(fd);
	kb = kb_parse(text.data, text.len, &e);
	rc = kb ? write_file(argv[2], kb) : complain(&e);
	free(kb);
	buf_release(&text);
	return rc;
}
