/* SPDX-License-Identifier: Apache-2.0
 * The case (see case.h): the facts of one failure, and who observed them.
 */
#include "case/case.h"

#include <math.h>
#include <string.h>

static const struct fact_row {
	const char *name;
	size_t len;		/* of the name: rules look facts up thousands of times */
	enum value_type type;
	const char *json, *text;
	bool head;
} rows[FACT_COUNT] = {
#define GROUP(id, text)
#define FACT(id, name, type, json, text) {name, sizeof(name) - 1, TYPE_##type, json, text, false},
#define HEAD(id, name, type, json, text) {name, sizeof(name) - 1, TYPE_##type, json, text, true},
#define LINE(id, json, text)
#include "case/case.def"
};

static const struct {
	const char *id, *text;
} groups[GROUP_COUNT] = {
#define GROUP(id, text) {#id, text},
#define FACT(id, name, type, json, text)
#define LINE(id, json, text)
#include "case/case.def"
};

static const struct {
	const char *json, *text;
} lines[LINE_COUNT] = {
#define GROUP(id, text)
#define FACT(id, name, type, json, text)
#define LINE(id, json, text) {json, text},
#include "case/case.def"
};

static bool is_in_group(const char *fact, const char *group)
{
	size_t len = strlen(group);

	return strncmp(fact, group, len) == 0 && fact[len] == '.';
}

enum group_id fact_group(enum fact_id id)
{
	static uint8_t known[FACT_COUNT];	/* group + 1; 0 = not looked up yet */

	for (int g = 0; !known[id] && g < GROUP_COUNT; g++)
		if (is_in_group(rows[id].name, groups[g].id))
			known[id] = (uint8_t)(g + 1);
	return (enum group_id)(known[id] - 1);
}

void case_init(struct casefile *c, struct pool *pool)
{
	*c = (struct casefile){.pool = pool};
	for (int i = 0; i < FACT_COUNT; i++)
		c->value[i] = value_unknown(rows[i].type);
}

const char *case_observer(struct casefile *c, const char *name)
{
	const char *before = c->observer;

	c->observer = name;
	return before;
}

void case_observe(struct casefile *c, enum group_id group)
{
	c->observed[group] = true;
}

bool case_observed(const struct casefile *c, enum group_id group)
{
	return c->observed[group];
}

static bool same_observer(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

void case_contradiction(struct casefile *c, const char *told)
{
	for (size_t i = 0; i < c->n_contradictions; i++)
		if (!strcmp(c->contradiction[i], told))
			return;
	if (c->n_contradictions < CONTRADICTIONS_MAX)
		c->contradiction[c->n_contradictions++] = pool_strdup(c->pool, told);
}

static const char *testimony(struct casefile *c, const char *words, const char *who, const struct value *v)
{
	return v->type == TYPE_TEXT ? pool_printf(c->pool, "%s `%s` (%s)", words, v->text, who)
				    : pool_printf(c->pool, "%s %.15g (%s)", words, v->number, who);
}

/* Others differ for a reason: messages round, shorten, and are of another moment. */
static void compare_testimony(struct casefile *c, enum fact_id id, const struct value *v)
{
	static const struct { enum fact_id id; const char *words; double near; } known[] = {
		{FACT_assert_condition, "the condition that failed is", 0},
		{FACT_xid_number, "the driver reported Xid", 0},
		{FACT_oom_request, "the request that failed was of bytes:", 0.01},
	};
	const struct value *first = &c->value[id];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool told = v->known && (v->type == TYPE_TEXT ? v->text[0] && first->text[0] : v->number != 0 && first->number != 0);

		if (known[i].id != id || !told || !c->origin[id] || !c->observer)
			continue;
		if (v->type == TYPE_TEXT ? !strcmp(v->text, first->text)
					 : fabs(v->number - first->number) <= known[i].near * first->number)
			continue;
		case_contradiction(c, pool_printf(c->pool, "%s, but %s",
						  testimony(c, known[i].words, c->origin[id], first),
						  testimony(c, known[i].words, c->observer, v)));
	}
}

static bool is_silence(const struct casefile *c, enum fact_id id)
{
	const struct value *v = &c->value[id];

	return same_observer(c->origin[id], EXCEPTION_OBSERVER) && (v->type == TYPE_TEXT ? !v->text[0] : v->number == 0);
}

/* What an earlier input set stays; an input may correct its own facts. */
static void set_fact(struct casefile *c, enum fact_id id, struct value v)
{
	c->observed[fact_group(id)] = true;
	if (c->value[id].known && !same_observer(c->origin[id], c->observer) && !is_silence(c, id)) {
		compare_testimony(c, id, &v);
		return;
	}
	c->value[id] = v;
	c->origin[id] = v.known ? c->observer : NULL;
}

void fact_set_number(struct casefile *c, enum fact_id id, double number)
{
	set_fact(c, id, value_number(number));
}

void fact_set_flag(struct casefile *c, enum fact_id id, bool flag)
{
	set_fact(c, id, value_flag(flag));
}

void fact_set_text(struct casefile *c, enum fact_id id, const char *text)
{
	set_fact(c, id, text ? value_text(pool_strdup(c->pool, text)) : value_unknown(TYPE_TEXT));
}

void fact_set_triple(struct casefile *c, enum fact_id id, const uint32_t v[3])
{
	set_fact(c, id, (struct value){.known = true, .type = TYPE_TRIPLE, .triple = {v[0], v[1], v[2]}});
}

void fact_set_place(struct casefile *c, enum fact_id id, const char *place)
{
	if (c->value[id].known && same_observer(c->origin[id], c->observer))
		c->place[id] = place;
}

void case_evidence(struct casefile *c, const char *source, const char *text)
{
	struct said **tail = &c->evidence;

	while (*tail)
		tail = &(*tail)->next;
	*tail = pool_alloc(c->pool, sizeof(**tail));
	**tail = (struct said){.source = source, .text = text};
}

const struct text_hit *case_hit(const struct casefile *c, const char *words)
{
	size_t low = 0, high = c->n_hits;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(words, c->hits[mid].words);

		if (!order)
			return &c->hits[mid];
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}

const char *case_keep(struct casefile *c, const char *text)
{
	return text && text[0] ? pool_strdup(c->pool, text) : NULL;
}

void case_blame(struct casefile *c, enum blamed_id whom)
{
	const struct blamed *b = &c->blamed[whom];
	bool same = line_same(&b->line, &c->line[LINE_where]);	/* then its callers tell the two apart */

	if (!b->line.file || (same && (!b->caller.file || line_same(&b->caller, &c->line[LINE_caller]))))
		return;
	c->line[LINE_asked] = c->line[same ? LINE_caller : LINE_where];
	c->line[LINE_where] = b->line;
	c->line[LINE_caller] = b->caller;
	c->stack = b->stack;
	c->n_stack = b->n_stack;
}

const struct line *case_caller(const struct casefile *c, size_t n)
{
	return line_caller(&c->line[LINE_where], c->stack, c->n_stack, n);
}

const struct line *line_caller(const struct line *where, const struct line *stack, size_t n_stack, size_t n)
{
	bool outside = false;

	for (size_t i = 0; i < n_stack; i++) {
		const struct line *l = &stack[i];

		if (!l->file || (!l->typed && frame_owner(l->file, "") != OWNER_USER))
			continue;
		if (outside && n-- == 0)
			return l;
		outside = outside || line_same(l, where);
	}
	return NULL;
}

void case_memory_parts(struct casefile *c)
{
	double total = fact_number(c, FACT_oom_total, -1), free = fact_number(c, FACT_oom_free, -1);
	double reserved = fact_number(c, FACT_oom_torch_reserved, -1);
	double allocated = fact_number(c, FACT_oom_torch_allocated, -1);
	double live = fact_number(c, FACT_oom_live, -1);

	if (reserved >= 0 && allocated >= 0 && reserved >= allocated)
		fact_set_number(c, FACT_oom_cache, reserved - allocated);
	if (live >= 0 && reserved >= 0)
		fact_set_number(c, FACT_oom_not_torch, live > reserved ? live - reserved : 0);
	if (live < reserved)
		live = reserved;
	if (total >= 0 && free >= 0 && live >= 0)
		fact_set_number(c, FACT_oom_outside, total - free > live ? total - free - live : 0);
}

int fact_find(const char *name, size_t len)
{
	for (int i = 0; i < FACT_COUNT; i++)
		if (rows[i].len == len && !memcmp(rows[i].name, name, len))
			return i;
	return -1;
}

const char *fact_name(enum fact_id id)
{
	return rows[id].name;
}

const char *fact_json_key(enum fact_id id)
{
	return rows[id].json;
}

enum value_type fact_type(enum fact_id id)
{
	return rows[id].type;
}

struct value fact_value(const struct casefile *c, enum fact_id id)
{
	if (c->observed[fact_group(id)])
		return c->value[id];
	return rows[id].head ? value_none(rows[id].type) : value_inapplicable(rows[id].type);
}

bool fact_known(const struct casefile *c, enum fact_id id)
{
	return c->value[id].known;
}

double fact_number(const struct casefile *c, enum fact_id id, double otherwise)
{
	return c->value[id].known ? c->value[id].number : otherwise;
}

const char *fact_text(const struct casefile *c, enum fact_id id)
{
	return c->value[id].known ? c->value[id].text : "";
}

const char *fact_text_or_null(const struct casefile *c, enum fact_id id)
{
	return c->value[id].known && c->value[id].text[0] ? c->value[id].text : NULL;
}

bool fact_true(const struct casefile *c, enum fact_id id)
{
	return c->value[id].known && c->value[id].number != 0;
}

const char *fact_origin(const struct casefile *c, enum fact_id id)
{
	return c->origin[id];
}

const char *fact_place(const struct casefile *c, enum fact_id id)
{
	return c->place[id];
}

void facts_document(FILE *out)
{
	static const char *const kinds[] = {"number", "text", "flag", "three numbers"};

	fputs("# Facts\n\n"
	      "What a cause file (`kb/causes/*.md`) can use in its expressions. Every fact is known or unknown; an\n"
	      "expression over an unknown fact is unknown, and a rule that needs it does not fire. A group that no input\n"
	      "observed does not apply: rules that rest on it neither fire nor count as unchecked, sentences that name it are\n"
	      "left out. Only its heads (in bold), which say whether there is any of it, read as none: no, \"\", 0. The last column\n"
	      "is the key in the verdict's JSON.\n",
	      out);
	for (int g = 0; g < GROUP_COUNT; g++) {
		fprintf(out, "\n## %s\n\n%s\n\n| fact | type | what it says | JSON |\n| --- | --- | --- | --- |\n",
			groups[g].id, groups[g].text);
		for (int i = 0; i < FACT_COUNT; i++) {
			const char *bold = rows[i].head ? "**" : "", *tick = rows[i].json[0] ? "`" : "";

			if (fact_group((enum fact_id)i) == (enum group_id)g)
				fprintf(out, "| %s`%s`%s | %s | %s | %s%s%s |\n", bold, rows[i].name, bold,
					kinds[rows[i].type], rows[i].text, tick, rows[i].json, tick);
		}
	}
	fputs("\n## Lines of code\n\nRules do not see them; answers show them.\n\n| what it says | JSON |\n| --- | --- |\n", out);
	for (int i = 0; i < LINE_COUNT; i++)
		fprintf(out, "| %s | %s%s%s |\n", lines[i].text, lines[i].json[0] ? "`" : "", lines[i].json,
			lines[i].json[0] ? "`" : "");
}

bool case_is_from(const struct casefile *c, const char *observer)
{
	return c->origin[FACT_error_code] && strcmp(c->origin[FACT_error_code], observer) == 0;
}
