/* SPDX-License-Identifier: Apache-2.0
 * What the parts of a ledger and the kinds of tensors are called.
 */
#include "facts/ledger.h"

const char *ledger_part_id(enum ledger_part p)
{
#define X(name, id, text) id,
	static const char *const ids[] = { LEDGER_PARTS(X) };
#undef X
	return ids[p];
}

const char *ledger_part_text(enum ledger_part p)
{
#define X(name, id, text) text,
	static const char *const texts[] = { LEDGER_PARTS(X) };
#undef X
	return texts[p];
}

const char *ledger_kind_id(enum ledger_kind k)
{
#define X(name, id, text) id,
	static const char *const ids[] = { LEDGER_KINDS(X) };
#undef X
	return ids[k];
}

const char *ledger_kind_text(enum ledger_kind k)
{
#define X(name, id, text) text,
	static const char *const texts[] = { LEDGER_KINDS(X) };
#undef X
	return texts[k];
}
