/* SPDX-License-Identifier: Apache-2.0
 * Reads the expressions and sentences of the doctor's checks (kb/checks.def).
 */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "knowledge/compile/compile.h"

static const struct { const char *id, *when, *text; } rows[] = {
#define CHECK(id, label, needs, essential)
#define FINE(id, when, text) {#id, when, text},
#define NONE(id, when, text) {#id, when, text},
#define UNKNOWN(id, text) {#id, NULL, text},
#include "kb/checks.def"
};

#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

int checks_parse(struct arena *a, struct kb *kb, struct err *e)
{
	struct kb_check *list = arena_alloc(a, N_ROWS * sizeof(*list));

	kb->n_checks = N_ROWS;
	REF_SET(kb->checks, list);
	for (size_t i = 0; i < N_ROWS; i++) {
		const char *when = rows[i].when, *text = rows[i].text;
		const struct expr *x = when ? expr_parse(NULL, a, when, strlen(when), e) : NULL;
		const struct template *t = when && !x ? NULL : template_parse(NULL, a, text, strlen(text), e);

		if (!t) {
			struct err why = *e;

			return err_set(e, -EINVAL, "kb/checks.def, a row of '%s': %.200s", rows[i].id, why.msg);
		}
		REF_SET(list[i].when, x);
		REF_SET(list[i].text, t);
	}
	return 0;
}
