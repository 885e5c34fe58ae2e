/* SPDX-License-Identifier: Apache-2.0
 * Reads the knowledge base: first the signs (kb/signs), then the cause files, which use them (docs/cause-files.md).
 * Reads line by line and compiles every expression and template immediately.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "verdict/rules/kb.h"

#define SECTION_MAX (16 << 10)
#define SIGN_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

enum section {
	SECTION_BEFORE,
	SECTION_HEADER,
	SECTION_TEXT,
	SECTION_WHY,
	SECTION_FIX,
	SECTION_CONFUSED,
	SECTION_SETTLE,
	SECTION_EXAMPLE,
	SECTION_PROGRAM
};

struct reader {
	struct kb *kb;
	struct cause *cause;
	struct err *e;
	enum section section;
	const char *file;
	int line;
	struct buf text;		/* the prose or the sentence being read */
	struct buf command;
	struct when *when;		/* whose expression may continue */
	bool in_because;		/* its expression is complete */
	struct kb_sign *sign;		/* likewise */
	struct expr_scope scope;	/* of what is being read */
};

static int reader_complain(struct reader *r, const char *why)
{
	char reason[200];

	str_copy(reason, sizeof(reason), why);
	return err_set(r->e, -EINVAL, "%s line %d: %s", r->file, r->line, reason);
}

/* The reason is already in r->e: prepend the file and line. */
static int reader_complain_inner(struct reader *r)
{
	char reason[240];

	str_copy(reason, sizeof(reason), r->e ? r->e->msg : "");
	return reader_complain(r, reason);
}

static const char *reader_trim(char *s)
{
	size_t n;

	while (isspace((unsigned char)*s))
		s++;
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]); n--)
		s[n - 1] = '\0';
	return s;
}

static const struct expr *reader_flag(struct reader *r, const char *text, const char *what)
{
	const struct expr *x;

	r->scope.place = r->cause ? EXPR_RULE : EXPR_FREE;
	x = expr_parse_in(&r->scope, &r->kb->pool, text, strlen(text), r->e);
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
	t = template_parse_in(&r->scope, &r->kb->pool, text, strlen(text), r->e);
	if (!t)
		reader_complain_inner(r);
	return t;
}

/* Does the expression contain the operator (&& or ||) outside parentheses and quotes? */
static bool has_operator(const char *s, const char *operator)
{
	int depth = 0;
	bool quoted = false;

	for (; *s; s++) {
		if (quoted && *s == '\\' && s[1])
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted && (*s == '(' || *s == ')'))
			depth += *s == '(' ? 1 : -1;
		else if (!quoted && !depth && str_starts(s, operator))
			return true;
	}
	return false;
}

/* Would precedence break the expression apart between what comes before and after it? */
static bool needs_parentheses(const char *expression, const struct buf *before, const char *behind)
{
	size_t n = before->len;
	bool negated, joined;

	while (n && before->data[n - 1] == ' ')
		n--;
	negated = n && before->data[n - 1] == '!';
	joined = negated || (n > 1 && before->data[n - 1] == '&') || str_starts(behind + strspn(behind, " "), "&&");
	return (joined && has_operator(expression, "||")) || (negated && has_operator(expression, "&&"));
}

/* Where the next sign name begins, skipping quoted texts; the end of the expression if there is none. */
static const char *next_sign_name(const char *s)
{
	bool quoted = false;

	for (; *s; s++) {
		if (*s == '"')
			quoted = !quoted;
		else if (quoted && *s == '\\' && s[1])
			s++;
		else if (!quoted && *s == 's' && str_starts(s, "sign."))
			break;
		else if (!quoted && islower((unsigned char)*s))	/* no name begins inside another word */
			s += strspn(s, SIGN_LETTERS ".") - 1;
	}
	return s;
}

/* The expression as people read it: sign names are replaced by their expressions. */
static const char *spell_out(struct reader *r, const char *text)
{
	const size_t prefix = strlen("sign.");
	const char *at, *spelled;
	struct buf out;

	if (!*next_sign_name(text))
		return text;
	buf_init(&out, SECTION_MAX);
	while (at = next_sign_name(text), buf_add(&out, text, (size_t)(at - text)), *at) {
		size_t len = strspn(at + prefix, SIGN_LETTERS);
		const struct kb_sign *sign = kb_find_sign(r->kb, at + prefix, len);
		bool apart = needs_parentheses(sign->text, &out, at + prefix + len);

		buf_adds(&out, apart ? "(" : "");
		buf_adds(&out, sign->text);
		buf_adds(&out, apart ? ")" : "");
		text = at + prefix + len;
	}
	spelled = pool_strdup(&r->kb->pool, out.data);
	buf_release(&out);
	return spelled;
}

static int sign_parse(struct reader *r, struct kb_sign *s);

/* For the expression parser. A rule, a sentence or another sign may use the sign. */
static const struct expr *sign_look_up(void *arg, const char *name, size_t len, struct err *e)
{
	struct reader *r = arg;
	struct kb_sign *s = (struct kb_sign *)kb_find_sign(r->kb, name, len);	/* we own it while reading */

	if (!s) {
		err_set(e, -ENOENT, "there is no sign '%.*s' in kb/signs", (int)len, name);
		return NULL;
	}
	s->used = true;
	return sign_parse(r, s) ? NULL : s->expr;
}

static int sign_parse(struct reader *r, struct kb_sign *s)
{
	struct reader inner = *r;

	if (s->expr)
		return 0;
	if (s->being_parsed)
		return err_set(r->e, -ELOOP, "the sign '%s' refers to itself", s->name);
	inner.file = s->file;
	inner.line = s->line;
	inner.scope = (struct expr_scope){.sign = sign_look_up, .arg = &inner};
	s->being_parsed = true;
	s->expr = reader_flag(&inner, s->text, "a sign must be true or false");
	if (!s->expr)
		return -EINVAL;
	s->text = spell_out(r, s->text);
	return 0;
}

/* Rules name them thousands of times. */
static void index_signs(struct kb *kb)
{
	size_t n = 0;

	for (const struct kb_sign *s = kb->signs; s; s = s->next)
		kb->n_signs++;
	kb->sign = pool_alloc(&kb->pool, (kb->n_signs + 1) * sizeof(*kb->sign));
	for (const struct kb_sign *s = kb->signs; s; s = s->next)
		kb->sign[n++] = s;
}

static int sign_end(struct reader *r)
{
	const struct kb_sign *s = r->sign;

	r->sign = NULL;
	return s && !s->source ? reader_complain(r, "a sign needs its source: where the words were found") : 0;
}

static int sign_begin(struct reader *r, char *line)
{
	struct kb_sign **at = &r->kb->signs, *s = pool_alloc(&r->kb->pool, sizeof(*s));
	char *colon = strchr(line, ':');

	if (sign_end(r))
		return -EINVAL;
	if (!colon || !colon[1] || strspn(line, SIGN_LETTERS) != (size_t)(colon - line))
		return reader_complain(r, "a sign is 'some_name: expression'");
	*colon = '\0';
	s->name = pool_strdup(&r->kb->pool, line);
	s->text = pool_strdup(&r->kb->pool, reader_trim(colon + 1));
	s->file = r->file;
	s->line = r->line;
	while (*at && strcmp((*at)->name, s->name) < 0)
		at = &(*at)->next;
	if (*at && !strcmp((*at)->name, s->name))
		return reader_complain(r, "there is already a sign with that name");
	s->next = *at;
	*at = r->sign = s;
	return 0;
}

/* An indented line: where the words were found, or more of the expression. */
static int sign_continue(struct reader *r, const char *text)
{
	if (!r->sign)
		return reader_complain(r, "an indented line belongs to a sign");
	if (str_starts(text, "source:")) {
		text += strlen("source:") + strspn(text + strlen("source:"), " ");
		r->sign->source = text[0] ? pool_strdup(&r->kb->pool, text) : NULL;
		return 0;
	}
	if (r->sign->source)
		return reader_complain(r, "the source of a sign has one line");
	r->sign->text = pool_printf(&r->kb->pool, "%s %s", r->sign->text, text);
	return 0;
}

static int sign_line(struct reader *r, char *line)
{
	r->line++;
	if (!line[0] || line[0] == '#')
		return 0;
	return isspace((unsigned char)line[0]) ? sign_continue(r, reader_trim(line)) : sign_begin(r, line);
}

/* Collects all of them before parsing any: they may be in any order. */
static int blob_signs(struct reader *r, char *blob)
{
	char *line, *next = blob;
	bool in_signs = false;
	int rc = 0;

	while (!rc && (line = strsep(&next, "\n")) != NULL) {
		if (str_starts(line, "%%% ")) {
			rc = sign_end(r);
			in_signs = str_starts(line, "%%% signs/");
			r->file = pool_printf(&r->kb->pool, "kb/%s", line + 4);
			r->line = 0;
		} else if (in_signs) {
			rc = sign_line(r, line);
		}
	}
	if (!rc)
		rc = sign_end(r);
	index_signs(r->kb);
	for (struct kb_sign *s = r->kb->signs; !rc && s; s = s->next)
		rc = sign_parse(r, s);
	return rc;
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
	while (list && strcmp(list->id, id) != 0)
		list = list->next;
	return list != NULL;
}

static int reader_when_end(struct reader *r)
{
	struct when *w = r->when;

	r->when = NULL;
	r->in_because = false;
	if (!w)
		return 0;
	w->expr = reader_flag(r, w->text, "a when must be true or false");
	if (!w->expr)
		return -EINVAL;
	w->text = spell_out(r, w->text);
	if (!w->because && rule_exists(r->cause->evidence, w->id))
		return reader_complain(r, "evidence needs its reason (because: ...)");
	return 0;
}

/* Lower-case words joined by dashes, as the ids of causes are. */
static bool is_rule_id(const char *id)
{
	return islower((unsigned char)id[0]) && id[strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-")] == '\0';
}

/* Appends a rule or evidence. */
static int append_when(struct reader *r, struct when **tail, struct when *w, const char *id, const char *text)
{
	if (!id || !is_rule_id(id))
		return reader_complain(r,
				       "a rule needs an id of its own: when likely some-id: ..., against some-id: ...");
	if (rule_exists(r->cause->when, id) || rule_exists(r->cause->evidence, id))
		return reader_complain(r, "two rules of this cause have the same id");
	w->id = pool_strdup(&r->kb->pool, id);
	w->place.name = pool_printf(&r->kb->pool, "%s/%s", r->cause->id, id);
	w->text = pool_strdup(&r->kb->pool, text);
	while (*tail)
		tail = &(*tail)->next;
	*tail = r->when = w;
	return 0;
}

/* "likely some-id" */
static int add_when(struct reader *r, const char *key, const char *text)
{
	struct when *w = pool_alloc(&r->kb->pool, sizeof(*w));
	char *next = pool_strdup(&r->kb->pool, key);
	const char *sure = strsep(&next, " ");

	if (!parse_sureness(sure, &w->sure))
		return reader_complain(r, "when needs certain, likely or possible");
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
	struct when *w = pool_alloc(&r->kb->pool, sizeof(*w));

	w->grade = grade;
	return append_when(r, &r->cause->evidence, w, id, text);
}

/* "cause, cause/rule": resolved once all files are read. */
static int add_over(struct reader *r, struct over **list, const char *names)
{
	char *next = pool_strdup(&r->kb->pool, names), *name;

	while ((name = strsep(&next, ",")) != NULL) {
		struct over *o = pool_alloc(&r->kb->pool, sizeof(*o));

		*o = (struct over){.next = *list, .name = reader_trim(name), .file = r->file, .line = r->line};
		if (!o->name[0])
			return reader_complain(r, "a name is missing (cause, other-cause, third-cause/rule)");
		*list = o;
	}
	return 0;
}

/* An indented header line continues the `when` above it, says why it is convincing, or what it is over. */
static int continue_when(struct reader *r, const char *text)
{
	if (!r->when)
		return reader_complain(r, "an indented line belongs to a when");
	if (str_starts(text, "because:")) {
		struct when *w = r->when;

		text += strlen("because:");
		while (*text == ' ')
			text++;
		w->because = reader_template(r, text);
		r->in_because = true;
		return w->because ? 0 : -EINVAL;
	}
	if (str_starts(text, "over:")) {
		if (rule_exists(r->cause->evidence, r->when->id))
			return reader_complain(
				r, "evidence has no place in the order: only causes and rules are over others");
		r->in_because = true;
		return add_over(r, &r->when->place.over, text + strlen("over:"));
	}
	if (r->in_because)
		return reader_complain(r, "because and over have one line each");
	r->when->text = pool_printf(&r->kb->pool, "%s %s", r->when->text, text);
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
	const char *end;

	if (**text != '[')
		return 0;
	end = guard_end(*text + 1);
	if (!end)
		return reader_complain(r, "[ without ]");
	a->guard_text = pool_copy(&r->kb->pool, *text + 1, (size_t)(end - *text - 1));
	a->guard = reader_flag(r, a->guard_text, "a guard must be true or false");
	if (!a->guard)
		return -EINVAL;
	a->guard_text = spell_out(r, a->guard_text);
	*text = end + 1;
	while (**text == ' ')
		(*text)++;
	return 0;
}

static int add_headline(struct reader *r, const char *text)
{
	struct advice **tail = &r->cause->headline, *a = pool_alloc(&r->kb->pool, sizeof(*a));

	if (reader_guard(r, a, &text))
		return -EINVAL;
	a->text = reader_template(r, text);
	if (!a->text)
		return -EINVAL;
	while (*tail)
		tail = &(*tail)->next;
	*tail = a;
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

static int header_key(struct reader *r, const char *key, const char *value)
{
	struct pool *pool = &r->kb->pool;
	enum grade grade;
	const char *id;

	if (!strcmp(key, "id"))
		return strcmp(value, r->cause->id) ? reader_complain(r, "the id differs from the file's name") : 0;
	if (!strcmp(key, "title"))
		return r->cause->title = pool_strdup(pool, value), 0;
	if (!strcmp(key, "check"))
		return r->cause->check = pool_strdup(pool, value), 0;
	if (!strcmp(key, "blames"))
		return set_blames(r, value);
	if (!strcmp(key, "program"))
		return r->cause->program = pool_strdup(pool, value), 0;
	if (!strcmp(key, "over"))
		return add_over(r, &r->cause->place.over, value);
	if (!strcmp(key, "explains"))
		return add_over(r, &r->cause->explains, value);
	if (!strcmp(key, "headline"))
		return add_headline(r, value);
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

static char *collected_text(struct reader *r, struct buf *b)
{
	char *copy = pool_strdup(&r->kb->pool, reader_trim(b->data ? b->data : (char[1]){0}));

	b->len = 0;
	if (b->data)
		b->data[0] = '\0';
	return copy;
}

/* The sentence collected so far is complete. */
static int finish_advice(struct reader *r)
{
	const char *text = collected_text(r, &r->text), *command = collected_text(r, &r->command);
	struct advice **tail = r->section == SECTION_WHY ? &r->cause->why : &r->cause->fix;
	struct advice *a = pool_alloc(&r->kb->pool, sizeof(*a));

	if (!text[0])
		return command[0] ? reader_complain(r, "a command without a sentence") : 0;
	if (reader_guard(r, a, &text))
		return -EINVAL;
	a->text = reader_template(r, text);
	if (a->text && command[0])
		a->command = reader_template(r, command);
	if (!a->text || (command[0] && !a->command))
		return -EINVAL;
	while (*tail)
		tail = &(*tail)->next;
	*tail = a;
	return 0;
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
		r->cause->definition = collected_text(r, &r->text);
		return 0;
	case SECTION_CONFUSED:
		r->cause->confused = collected_text(r, &r->text);
		return 0;
	case SECTION_SETTLE:
		r->cause->settle = collected_text(r, &r->text);
		return 0;
	case SECTION_EXAMPLE:
		r->cause->example = collected_text(r, &r->text);
		return 0;
	case SECTION_PROGRAM:
		r->cause->program_text = collected_text(r, &r->text);
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
	else if (!strcmp(name, "Program") && r->cause->program)
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

static int finish_cause(struct reader *r)
{
	struct cause **at = &r->kb->first;

	if (!r->cause)
		return 0;
	if (r->section < SECTION_TEXT)
		return reader_complain(r, "the header does not end");
	if (finish_section(r))
		return -EINVAL;
	if (!r->cause->title || !r->cause->definition || !r->cause->definition[0])
		return reader_complain(r, "a cause needs a title and a definition");
	if (r->cause->program && (!r->cause->program_text || !r->cause->program_text[0]))
		return reader_complain(r, "the program named in the header is missing (tools/make_kb.sh inserts it)");
	while (*at && strcmp((*at)->id, r->cause->id) < 0)
		at = &(*at)->next;
	r->cause->next = *at;
	*at = r->cause;
	r->kb->n++;
	return 0;
}

static int start_cause(struct reader *r, const char *id)
{
	if (finish_cause(r))
		return -EINVAL;
	r->cause = pool_alloc(&r->kb->pool, sizeof(*r->cause));
	r->cause->blames = -1;
	r->cause->id = pool_strdup(&r->kb->pool, id);
	r->cause->place.name = r->cause->id;
	r->file = pool_printf(&r->kb->pool, "kb/causes/%s.md", id);
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

struct kb *kb_parse(const char *blob, size_t len, struct err *e)
{
	struct err own = {0};
	struct kb *kb = xcalloc(1, sizeof(*kb));
	struct reader r = {.kb = kb, .e = e ? e : &own};
	int rc;

	r.scope = (struct expr_scope){.sign = sign_look_up, .arg = &r};
	buf_init(&r.text, SECTION_MAX);
	buf_init(&r.command, SECTION_MAX);
	rc = blob_signs(&r, pool_copy(&kb->pool, blob, len));
	if (!rc)
		rc = blob_causes(&r, pool_copy(&kb->pool, blob, len));
	if (!rc)
		rc = order_resolve(kb, r.e);
	buf_release(&r.text);
	buf_release(&r.command);
	if (!rc)
		return kb;
	kb_free(kb);
	return NULL;
}
