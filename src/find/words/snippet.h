/* SPDX-License-Identifier: Apache-2.0
 * What people typed and what it printed: ">>> torch.cuda.is_available()", "False" on the next line; also "is_available(): False",
 * f"{x=}", IPython's "Out[1]:", and several values of one print.
 */
#ifndef CUWHY_TEXT_SNIPPET_H
#define CUWHY_TEXT_SNIPPET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNIPPETS_MAX	8	/* answers that are kept */
#define SNIPPET_ASKED	4	/* expressions in one line */

/* What can be typed; the order is that of the list in snippet.c. */
enum snippet_id {
	SNIPPET_AVAILABLE, SNIPPET_DEVICE_COUNT, SNIPPET_TORCH_CUDA, SNIPPET_TORCH_HIP, SNIPPET_CAPABILITY, SNIPPET_ARCHS,
	SNIPPET_COUNT
};

struct snippet {
	enum snippet_id id;
	char answer[160];
	uint64_t line;		/* of the answer */
};

struct snippets {
	struct snippet list[SNIPPETS_MAX];
	size_t n;
	enum snippet_id asked[SNIPPET_ASKED];	/* by the line before, in order */
	size_t n_asked;
};

void snippets_line(struct snippets *s, const char *line, uint64_t number);

/* The last answer to it; NULL: none was printed. */
const struct snippet *snippets_find(const struct snippets *s, enum snippet_id id);
const char *snippet_typed(enum snippet_id id);

#endif
