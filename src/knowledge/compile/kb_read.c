/* SPDX-License-Identifier: Apache-2.0
 * Reads the knowledge base: first the signs (kb/signs), then the cause files, which use them (docs/develop/cause-files.md).
 * Reads line by line and compiles every expression and template immediately, into the form that is linked into cuwhy.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "knowledge/compile/kb_reader.h"

int reader_complain(struct reader *r, const char *why)
{
	char reason[200];

	str_copy(reason, sizeof(reason), why);
	return err_set(r->e, -EINVAL, "%s line %d: %s", r->file, r->line, reason);
}

int reader_complain_inner(struct reader *r)
{
	char reason[240];

	str_copy(reason, sizeof(reason), r->e ? r->e->msg : "");
	return reader_complain(r, reason);
}

const char *reader_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

const struct expr *reader_flag(struct reader *r, const char *text, const char *what)
{
	const struct expr *x;

	r->scope.place = r->cause ? EXPR_RULE : EXPR_FREE;
	x = expr_parse(&r->scope, r->a, text, strlen(text), r->e);
	if (!x)
		reader_complain_inner(r);
	else if (expr_type(x) != TYPE_FLAG)
		reader_complain(r, what);
	return x && expr_type(x) == TYPE_FLAG ? x : NULL;
}

static const struct template *reader_template(struct reader *r, const char *text)
{
	const struct template *t;

	r->scope.place = EXPR_SENTENCE;
	t = template_parse(&r->scope, r->a, text, strlen(text), r->e);
	if (!t)
		reader_complain_inner(r);
	return t;
}

static bool parse_sureness(const char *word, enum sureness *sure)
{
	static const char *const words[] = {"possible", "likely", "certain"};

	for (int i = 0; i < 3; i++) {
		if (!strcmp(word, words[i])) {
			*sure = (enum sureness)i;
			return true;
		}
	}
	return false;
}

static bool rule_exists(const struct when *list, const char *id)
{
	while (list && strcmp(AT(list->id), id) != 0)
		list = AT(list->next);
	return list != NULL;
}

static int reader_when_end(struct reader *r)
{
	struct when *w = r->when;
	const struct expr *x;

	r->when = NULL;
	r->in_because = false;
	if (!w)
		return 0;
	x = reader_flag(r, r->when_text, "a when must be true or false");
	if (!x)
		return -EINVAL;
	if (expr_asks_in_vain(x))
		return reader_complain(r, "'text.is' beside words: they count wherever they come from");
	REF_SET(w->expr, x);
	REF_SET(w->text, reader_spell_out(r, r->when_text));
	if (!AT(w->because) && rule_exists(AT(r->cause->evidence), AT(w->id)))
		return reader_complain(r, "evidence needs its reason (because: ...)");
	return 0;
}

/* Lower-case words joined by dashes, as the ids of causes are. */
static bool is_rule_id(const char *id)
{
	return islower((unsigned char)id[0]) && id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Appends a rule or evidence. */
static int append_when(struct reader *r, void *list, struct when *w, const char *id, const char *text)
{
	if (!id || !is_rule_id(id))
		return reader_complain(r,
				       "a rule needs an id of its own: when likely some-id: ..., against some-id: ...");
	if (rule_exists(AT(r->cause->when), id) || rule_exists(AT(r->cause->evidence), id))
		return reader_complain(r, "two rules of this cause have the same id");
	REF_SET(w->id, arena_text(r->a, id));
	REF_SET(w->place.name, arena_text(r->a, pool_printf(r->pool, "%s/%s", AT(r->cause->id), id)));
	r->when_text = pool_strdup(r->pool, text);
	r->when = w;
	list_append(list, w);
	return 0;
}

/* "likely some-id" */
static int add_when(struct reader *r, const char *key, const char *text)
{
	struct when *w = arena_alloc(r->a, sizeof(*w));
	char *next = pool_strdup(r->pool, key);
	const char *word = strsep(&next, " ");
	enum sureness sure;

	if (!parse_sureness(word, &sure))
		return reader_complain(r, "when needs certain, likely or possible");
	w->sure = (uint8_t)sure;
	return append_when(r, &r->cause->when, w, next, text);
}

/* "for some-id", "against some-id", "excluded some-id". */
static bool is_evidence(const char *key, enum grade *grade, const char **id)
{
	static const char *const words[] = {"for", "against", "excluded"};

	for (int i = 0; i < 3; i++) {
		if (!str_starts(key, words[i]) || (key[strlen(words[i])] != ' ' && key[strlen(words[i])]))
			continue;
		*grade = (enum grade)i;
		*id = key + strlen(words[i]);
		*id += strspn(*id, " ");
		return true;
	}
	return false;
}

static int add_evidence(struct reader *r, enum grade grade, const char *id, const char *text)
{
	struct when *w = arena_alloc(r->a, sizeof(*w));

	w->grade = (uint8_t)grade;
	return append_when(r, &r->cause->evidence, w, id, text);
}

/* "cause, cause/rule": resolved once all files are read. */
static int add_over(struct reader *r, void *list, const char *names)
{
	char *next = pool_strdup(r->pool, names), *name;

	while ((name = strsep(&next, ",")) != NULL) {
		struct over *o = arena_alloc(r->a, sizeof(*o));

		REF_SET(o->name, arena_text(r->a, reader_trim(name)));
		REF_SET(o->file, arena_text(r->a, r->file));
		o->line = (uint32_t)r->line;
		if (!AT(o->name)[0])
			return reader_complain(r, "a name is missing (cause, other-cause, third-cause/rule)");
		list_append(list, o);
	}
	return 0;
}

/* An indented header line continues the `when` above it, says why it is convincing, or what it is over. */
static int continue_when(struct reader *r, const char *text)
{
	if (!r->when)
		return reader_complain(r, "an indented line belongs to a when");
	if (str_starts(text, "because:")) {
		const struct template *because;

		text += strlen("because:");
		while (*text == ' ')
			text++;
		because = reader_template(r, text);
		REF_SET(r->when->because, because);
		r->in_because = true;
		return because ? 0 : -EINVAL;
	}
	if (str_starts(text, "over:")) {
		if (rule_exists(AT(r->cause->evidence), AT(r->when->id)))
			return reader_complain(
				r, "evidence has no place in the order: only causes and rules are over others");
		r->in_because = true;
		return add_over(r, &r->when->place.over, text + strlen("over:"));
	}
	if (r->in_because)
		return reader_complain(r, "because and over have one line each");
	r->when_text = pool_printf(r->pool, "%s %s", r->when_text, text);
	return 0;
}

/* The end of a guard "[…]", skipping quoted texts. */
static const char *guard_end(const char *s)
{
	bool quoted = false;

	for (; *s; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (*s == ']' && !quoted)
			return s;
	}
	return NULL;
}

static int reader_guard(struct reader *r, struct advice *a, const char **text)
{
	const char *end, *guard;
	const struct expr *x;

	if (**text != '[')
		return 0;
	end = guard_end(*text + 1);
	if (!end)
		return reader_complain(r, "[ without ]");
	guard = pool_copy(r->pool, *text + 1, (size_t)(end - *text - 1));
	x = reader_flag(r, guard, "a guard must be true or false");
	if (!x)
		return -EINVAL;
	REF_SET(a->guard, x);
	REF_SET(a->guard_text, reader_spell_out(r, guard));
	*text = end + 1;
	while (**text == ' ')
		(*text)++;
	return 0;
}

/* "[guard] sentence", with its command or "". */
static int add_advice(struct reader *r, void *list, const char *text, const char *command)
{
	struct advice *a = arena_alloc(r->a, sizeof(*a));
	const struct template *said, *done;

	if (reader_guard(r, a, &text))
		return -EINVAL;
	said = reader_template(r, text);
	done = said && command[0] ? reader_template(r, command) : NULL;
	if (!said || (command[0] && !done))
		return -EINVAL;
	REF_SET(a->text, said);
	REF_SET(a->command, done);
	list_append(list, a);
	return 0;
}

static int set_blames(struct reader *r, const char *whom)
{
	static const char *const names[BLAMED_COUNT] = {
#define X(name) #name,
		BLAMED(X)
#undef X
	};

	for (int i = 0; i < BLAMED_COUNT; i++)
		if (!strcmp(whom, names[i]))
			return r->cause->blames = i, 0;
	return reader_complain(r, "unknown line to blame (src/case/case.h lists them)");
}

/* Keys whose value is a text. */
static bool header_text(struct reader *r, const char *key, const char *value)
{
	if (!strcmp(key, "title"))
		REF_SET(r->cause->title, arena_text(r->a, value));
	else if (!strcmp(key, "check"))
		REF_SET(r->cause->check, arena_text(r->a, value));
	else if (!strcmp(key, "program"))
		REF_SET(r->cause->program, arena_text(r->a, value));
	else
		return false;
	return true;
}

static int header_key(struct reader *r, const char *key, const char *value)
{
	enum grade grade;
	const char *id;

	if (!strcmp(key, "id"))
		return strcmp(value, AT(r->cause->id)) ? reader_complain(r, "the id differs from the file's name") : 0;
	if (header_text(r, key, value))
		return 0;
	if (!strcmp(key, "blames"))
		return set_blames(r, value);
	if (!strcmp(key, "over"))
		return add_over(r, &r->cause->place.over, value);
	if (!strcmp(key, "explains"))
		return add_over(r, &r->cause->explains, value);
	if (!strcmp(key, "headline"))
		return add_advice(r, &r->cause->headline, value, "");
	if (str_starts(key, "when "))
		return add_when(r, key + strlen("when "), value);
	if (is_evidence(key, &grade, &id))
		return add_evidence(r, grade, id, value);
	return reader_complain(r, "unknown key (id, title, headline, over, explains, blames, check, program, "
				  "when certain|likely|possible ID, for|against|excluded ID)");
}

static int reader_header(struct reader *r, char *line)
{
	char *colon;

	if (!line[0])
		return 0;
	if (isspace((unsigned char)line[0]))
		return continue_when(r, reader_trim(line));
	if (reader_when_end(r))
		return r->e ? r->e->code : -EINVAL;
	colon = strchr(line, ':');
	if (!colon)
		return reader_complain(r, "a header line is 'key: value'");
	*colon = '\0';
	return header_key(r, reader_trim(line), reader_trim(colon + 1));
}

static const char *collected_text(struct reader *r, struct buf *b)
{
	const char *copy = arena_text(r->a, reader_trim(b->data ? b->data : (char[1]){0}));

	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
	return copy;
}

/* The sentence collected so far is complete. */
static int finish_advice(struct reader *r)
{
	const char *text = collected_text(r, &r->text), *command = collected_text(r, &r->command);

	if (!text[0])
		return command[0] ? reader_complain(r, "a command without a sentence") : 0;
	if (r->section == SECTION_WHY)
		return add_advice(r, &r->cause->why, text, command);
	return add_advice(r, &r->cause->fix, text, command);
}

static int read_advice(struct reader *r, char *line)
{
	if (str_starts(line, "- ")) {
		if (finish_advice(r))
			return -EINVAL;
		buf_adds(&r->text, line + 2);
		return 0;
	}
	if (str_starts(line, "    ")) {
		buf_adds(&r->command, r->command.len ? "\n" : "");
		buf_adds(&r->command, line + 4);
		return 0;
	}
	if (line[0] && !str_starts(line, "  "))
		return reader_complain(
			r, "a sentence begins with '- ', goes on with two spaces, its command with four");
	if (line[0]) {
		buf_adds(&r->text, " ");
		buf_adds(&r->text, reader_trim(line));
	}
	return 0;
}

static int finish_section(struct reader *r)
{
	switch (r->section) {
	case SECTION_WHY:
	case SECTION_FIX:
		return finish_advice(r);
	case SECTION_TEXT:
		REF_SET(r->cause->definition, collected_text(r, &r->text));
		return 0;
	case SECTION_CONFUSED:
		REF_SET(r->cause->confused, collected_text(r, &r->text));
		return 0;
	case SECTION_SETTLE:
		REF_SET(r->cause->settle, collected_text(r, &r->text));
		return 0;
	case SECTION_EXAMPLE:
		REF_SET(r->cause->example, collected_text(r, &r->text));
		return 0;
	case SECTION_PROGRAM:
		REF_SET(r->cause->program_text, collected_text(r, &r->text));
		return 0;
	default:
		return 0;
	}
}

static int start_section(struct reader *r, const char *name)
{
	if (finish_section(r))
		return -EINVAL;
	if (!strcmp(name, "Why"))
		r->section = SECTION_WHY;
	else if (!strcmp(name, "Fix"))
		r->section = SECTION_FIX;
	else if (!strcmp(name, "Not to be confused with"))
		r->section = SECTION_CONFUSED;
	else if (!strcmp(name, "What would settle it"))
		r->section = SECTION_SETTLE;
	else if (!strcmp(name, "Example"))
		r->section = SECTION_EXAMPLE;
	else if (!strcmp(name, "Program") && AT(r->cause->program))
		r->section = SECTION_PROGRAM;
	else
		return reader_complain(
			r, "unknown section (Why, Fix, Not to be confused with, What would settle it, Example)");
	return 0;
}

static int cause_line(struct reader *r, char *line)
{
	r->line++;
	if (!strcmp(line, "---") && r->section <= SECTION_HEADER) {
		if (reader_when_end(r))
			return -EINVAL;
		r->section++;
		return 0;
	}
	if (r->section == SECTION_BEFORE)
		return 0;	/* the license line */
	if (r->section == SECTION_HEADER)
		return reader_header(r, line);
	if (str_starts(line, "## "))
		return start_section(r, line + 3);
	if (r->section == SECTION_WHY || r->section == SECTION_FIX)
		return read_advice(r, line);
	if (r->section >= SECTION_EXAMPLE) {
		if (line[0] && !str_starts(line, "    "))
			return reader_complain(r, "an example or program is indented by four spaces");
		line += line[0] ? 4 : 0;
	}
	buf_adds(&r->text, line);
	buf_adds(&r->text, "\n");
	return 0;
}

static int by_id(const void *a, const void *b)
{
	const struct cause *x = a, *y = b;

	return strcmp(AT(x->id), AT(y->id));
}

static int finish_cause(struct reader *r)
{
	const char *definition, *program;

	if (!r->cause)
		return 0;
	if (r->section < SECTION_TEXT)
		return reader_complain(r, "the header does not end");
	if (finish_section(r))
		return -EINVAL;
	definition = AT(r->cause->definition);
	if (!AT(r->cause->title) || !definition || !definition[0])
		return reader_complain(r, "a cause needs a title and a definition");
	program = AT(r->cause->program_text);
	if (AT(r->cause->program) && (!program || !program[0]))
		return reader_complain(r, "the program named in the header is missing (tools/make_kb.sh inserts it)");
	r->kb->n++;
	return list_insert(&r->kb->first, r->cause, by_id) ? 0 : reader_complain(r, "there is already a cause with that id");
}

static int start_cause(struct reader *r, const char *id)
{
	if (finish_cause(r))
		return -EINVAL;
	r->cause = arena_alloc(r->a, sizeof(*r->cause));
	r->cause->blames = -1;
	REF_SET(r->cause->id, arena_text(r->a, id));
	REF_SET(r->cause->place.name, AT(r->cause->id));
	r->file = pool_printf(r->pool, "kb/causes/%s.md", id);
	r->section = SECTION_BEFORE;
	r->line = 0;
	return 0;
}

static int blob_causes(struct reader *r, char *blob)
{
	char *line, *next = blob;
	bool in_cause = false;
	int rc = 0;

	while (!rc && (line = strsep(&next, "\n")) != NULL) {
		if (str_starts(line, "%%% ")) {
			in_cause = !str_starts(line, "%%% signs/");
			rc = in_cause ? start_cause(r, line + 4) : 0;
		} else if (in_cause) {
			rc = cause_line(r, line);
		}
	}
	return rc ? rc : finish_cause(r);
}

static int read_all(struct reader *r, const char *blob, size_t len)
{
	int rc = blob_signs(r, pool_copy(r->pool, blob, len));

	if (!rc)
		rc = blob_causes(r, pool_copy(r->pool, blob, len));
	if (!rc)
		rc = order_resolve(r->a, r->kb, r->e);
	return rc ? rc : checks_parse(r->a, r->kb, r->e);
}

struct kb *kb_parse(const char *blob, size_t len, struct err *e)
{
	struct err own = {0};
	struct pool pool = {0};
	struct kb *kb = NULL;
	struct arena a;
	struct reader r = {.a = &a, .pool = &pool, .e = e ? e : &own};

	arena_init(&a);
	r.kb = arena_alloc(&a, sizeof(*r.kb));
	r.scope = (struct expr_scope){.sign = sign_look_up, .arg = &r};
	buf_init(&r.text, SECTION_MAX);
	buf_init(&r.command, SECTION_MAX);
	if (!read_all(&r, blob, len)) {
		questions_put(&a, r.kb);
		words_make(&a, r.kb);
		likeness_put(&a, r.kb);
		r.kb->size = (uint32_t)a.used;
		kb = arena_give(&a);
	}
	arena_release(&a);
	buf_release(&r.text);
	buf_release(&r.command);
	pool_release(&pool);
	free(r.sign_named);
	return kb;
}
