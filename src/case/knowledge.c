/* SPDX-License-Identifier: Apache-2.0
 * Pieces of knowledge that are used or withheld (see knowledge.h).
 */
#include "case/knowledge.h"

static knowledge_fn *watcher;

void knowledge_watch(knowledge_fn *fn)
{
	watcher = fn;
}

bool knowledge_use(const char *kind, const char *of, const char *name)
{
	return !watcher || watcher(kind, of, name);
}
