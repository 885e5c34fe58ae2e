/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a log, judged and printed. The first byte chooses how it is split into pieces, so that
 * lines cross the end of the reader's buffer.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "show/code.h"
#include "verdict/verdict.h"
#include "show/report.h"
#include "knowledge/kb.h"
#include "find/words/log.h"
#include "read/text/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Repeats the bytes until the reader's buffer is full several times. */
static void read_long(struct text_log *l, const uint8_t *data, size_t size)
{
	size_t all = 2u << 20, n = 0;
	char *text = malloc(all);

	if (!text || !size) {
		free(text);
		return;
	}
	for (; n + size <= all; n += size)
		memcpy(text + n, data, size);
	log_read_text(l, "long", text, n);
	free(text);
}

/* Compressed logs are files. */
static void read_packed(struct text_log *l, const uint8_t *data, size_t size)
{
	int fd = memfd_create("packed", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0)
		log_read_fd(l, "packed", fd, -1);
	if (fd >= 0)
		close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct text_log *l;
	struct verdict *v;
	struct code c;
	char word[64];

	if (!null && !(null = fopen("/dev/null", "w")))
		abort();
	l = log_new();
	if (size && data[0] % 2)
		log_hasty(l);
	if (unpack_kind(data, size))
		read_packed(l, data, size);
	else if (size && data[0] % 16 == 15 && size > 4096)
		read_long(l, data + 1, size - 1);
	else if (size)
		log_read_text(l, "text", (const char *)data, size / 2);
	if (size)
		log_read_text(l, "rest", (const char *)data + size / 2, size - size / 2);
	log_finish(l);
	v = verdict_of_text(l);
	report_json(null, v, false);
	report_text(null, v, NULL);
	report_text(null, v, &(struct text_style){.verbose = true});
	report_unrelated(null, v, NULL);
	verdict_free(v);
	log_free(l);
	memcpy(word, data, size < sizeof(word) - 1 ? size : sizeof(word) - 1);
	word[size < sizeof(word) - 1 ? size : sizeof(word) - 1] = '\0';
	if (code_find(&c, word))
		report_code(null, &c, NULL);
	return 0;
}
