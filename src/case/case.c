/* SPDX-License-Identifier: Apache-2.0
 * The dictionary of facts (see facts.h). What fills it is in fact_*.c.
 */
#include "case/case.h"

#include <string.h>

static const struct {
	const char *name;
	enum value_type type;
	const char *text;
} table[FACT_COUNT] = {
#define FACT(id, name, type, text) { name, TYPE_##type, text },
#include "case/case.def"
#undef FACT
};

void case_init(struct casefile *f, struct pool *pool)
{
	f->pool = pool;
	f->says = NULL;
	f->says_arg = NULL;
	for (int i = 0; i < FACT_COUNT; i++)
		f->value[i] = value_unknown(table[i].type);
	f->value[FACT_machine_is] = value_flag(false);
	f->value[FACT_text_is] = value_flag(false);
}

void fact_set_number(struct casefile *f, enum fact_id id, double number)
{
	f->value[id] = value_number(number);
}

void fact_set_flag(struct casefile *f, enum fact_id id, bool flag)
{
	f->value[id] = value_flag(flag);
}

void fact_set_text(struct casefile *f, enum fact_id id, const char *text)
{
	f->value[id] = text ? value_text(pool_strdup(f->pool, text)) : value_unknown(TYPE_TEXT);
}

int fact_find(const char *name, size_t len)
{
	for (int i = 0; i < FACT_COUNT; i++)
		if (strlen(table[i].name) == len && !memcmp(table[i].name, name, len))
			return i;
	return -1;
}

const char *fact_name(enum fact_id id)
{
	return table[id].name;
}

enum value_type fact_type(enum fact_id id)
{
	return table[id].type;
}

bool fact_known(const struct casefile *f, enum fact_id id)
{
	return f->value[id].known;
}

double fact_number(const struct casefile *f, enum fact_id id, double otherwise)
{
	return f->value[id].known ? f->value[id].number : otherwise;
}

const char *fact_text(const struct casefile *f, enum fact_id id)
{
	return f->value[id].known ? f->value[id].text : "";
}

bool fact_true(const struct casefile *f, enum fact_id id)
{
	return f->value[id].known && f->value[id].number != 0;
}

void case_memory_parts(struct casefile *f)
{
	double total = fact_number(f, FACT_oom_total, -1), free = fact_number(f, FACT_oom_free, -1);
	double reserved = fact_number(f, FACT_oom_torch_reserved, -1);
	double allocated = fact_number(f, FACT_oom_torch_allocated, -1);
	double live = fact_number(f, FACT_oom_live, -1);

	if (reserved >= 0 && allocated >= 0 && reserved >= allocated)
		fact_set_number(f, FACT_oom_cache, reserved - allocated);
	if (live >= 0 && reserved >= 0)
		fact_set_number(f, FACT_oom_not_torch, live > reserved ? live - reserved : 0);
	if (live < reserved)
		live = reserved;
	if (total >= 0 && free >= 0 && live >= 0)
		fact_set_number(f, FACT_oom_outside, total - free > live ? total - free - live : 0);
}

void facts_document(FILE *out)
{
	static const char *const kinds[] = { "number", "text", "flag" };

	fputs("<!-- SPDX-License-Identifier: Apache-2.0 -->\n# Facts\n\n"
	      "What a cause file (`kb/causes/*.md`) may ask for in its expressions. Every fact is known or\n"
	      "unknown; an expression over an unknown fact is unknown, and a rule that needs it does not "
	      "fire.\n"
	      "This page is made from `src/case/case.def`: `build/tests/test_facts --write "
	      "docs/facts.md`.\n\n"
	      "| fact | type | what it says |\n| --- | --- | --- |\n",
	      out);
	for (int i = 0; i < FACT_COUNT; i++)
		fprintf(out, "| `%s` | %s | %s |\n", table[i].name, kinds[table[i].type], table[i].text);
}

void facts_print(FILE *out, const struct casefile *f)
{
	for (int i = 0; i < FACT_COUNT; i++) {
		const struct value *v = &f->value[i];

		if (!v->known)
			continue;
		if (v->type == TYPE_TEXT)
			fprintf(out, "%s = \"%s\"\n", table[i].name, v->text);
		else if (v->type == TYPE_FLAG)
			fprintf(out, "%s = %s\n", table[i].name, v->number != 0 ? "yes" : "no");
		else
			fprintf(out, "%s = %.15g\n", table[i].name, v->number);
	}
}
