/* SPDX-License-Identifier: Apache-2.0
 * The values of names (see private_parts.h): in code, configurations, commands and logs.
 *
 *	password = "…"   os.environ["HF_TOKEN"] = "…"   {"password" : "…"}   f(token: str = "…")   --wandb-key …   HF_TOKEN=…   password: …
 *
 * Behind a name, `operator_at` finds what makes the following its value. A word without quotes is the value itself, unless it reads
 * like code. Otherwise the value is an expression, and every literal in it may be the secret: `value or "…"`, `str("…")`, `("…" "…")`.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/private.h"
#include "base/private_parts.h"

#define LOOK_BACK     256	/* bytes */
#define LINE_BACK     1024
#define LOOK_AHEAD    256
#define FALLBACK_FAR  400	/* from an option's name to its default= */
#define OWN_MOST      512	/* of a literal: what follows changes nothing */
#define LINES_MOST    50	/* of an expression */
#define NAME_LONGEST  256
#define COUNT(list)   (sizeof(list) / sizeof((list)[0]))
#define BARE_ENDS     " \t\r\n\"'`,;&()[]{}<>|"

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* strspn and strcspn that do not look further than LOOK_AHEAD. */
static size_t span(const char *s, const char *of)
{
	size_t n = 0;

	while (n < LOOK_AHEAD && s[n] && strchr(of, s[n]))
		n++;
	return n;
}

static size_t span_to(const char *s, const char *ends)
{
	size_t n = 0;

	while (n < LOOK_AHEAD && s[n] && !strchr(ends, s[n]))
		n++;
	return n;
}

static size_t blanks(const char *s)
{
	return span(s, " \t");
}

/* Back over blanks, but not over the beginning. */
static const char *before_blanks(const struct scan *c, const char *s)
{
	while (s > c->text && (s[-1] == ' ' || s[-1] == '\t'))
		s--;
	return s;
}

static bool stands_before(const struct scan *c, const char *s, const char *word)
{
	size_t n = strlen(word);

	return (size_t)(s - c->text) >= n && !strncmp(s - n, word, n);
}

struct literal {
	const char *from, *after;	/* what is in it, and what stands behind it */
	size_t len;
	bool format;	/* what is in braces is code */
};

/* Length of a quote; inside other texts it has backslashes. */
static size_t quote_at(const char *s)
{
	size_t n = 0;

	while (s[n] == '\\' && n < 8)
		n++;
	return s[n] == '"' || s[n] == '\'' || s[n] == '`' ? n + 1 : 0;
}

static const char *literal_end(const char *s, const char *quote, size_t n)
{
	bool triple = n == 3 && *quote != '\\';
	size_t slashes = triple ? 0 : n - 1, run;

	while (*s && (triple || *s != '\n')) {
		for (run = 0; s[run] == '\\'; run++)
			;
		if (!slashes && run) {
			s += run;
			s += run % 2 && *s;	/* this one is not the end */
			continue;
		}
		if (triple ? !strncmp(s, quote, 3) : s[run] == quote[slashes] && run <= slashes)
			return s;
		s += run + !!s[run];
	}
	return s;
}

static bool literal_at(const struct scan *c, const char *s, struct literal *l)
{
	size_t prefix = 0, n;

	while (prefix < 3 && s[prefix] && strchr("rRbBfFuUtTLB@", s[prefix]))
		prefix++;
	n = quote_at(s + prefix);
	if (!n || (s > c->text && (isalnum((unsigned char)s[-1]) || strchr(")]}", s[-1]))))
		return false;	/* "don't", and the end of "{token}" */
	if (n == 1 && !strncmp(s + prefix, "\"\"\"", 3))
		n = 3;
	if (n == 1 && !strncmp(s + prefix, "'''", 3))
		n = 3;
	l->format = memchr(s, 'f', prefix) || memchr(s, 'F', prefix);
	l->from = s + prefix + n;
	l->after = literal_end(l->from, s + prefix, n);
	l->len = (size_t)(l->after - l->from);
	l->after += strncmp(l->after, s + prefix, n) ? 0 : n;
	return true;
}

/* What a literal has of its own: of f"{prefix}-{token}", "-". */
static size_t own_text(const struct literal *l, char *out, size_t room)
{
	size_t n = 0;
	unsigned depth = 0;

	for (size_t i = 0; i < l->len && n < room; i++) {
		depth += l->format && l->from[i] == '{';
		if (!depth && l->from[i] == '%' && i + 1 < l->len && strchr("srd", l->from[i + 1]))
			i++;	/* "%s" */
		else if (!depth)
			out[n++] = l->from[i];
		depth -= depth && l->from[i] == '}';
	}
	return n;
}

static bool is_secret_literal(enum secrecy how, const struct literal *l)
{
	char own[OWN_MOST + 1] = "";

	return private_value(how, own, own_text(l, own, OWN_MOST), true);
}

/* get_param("Password") */
static bool is_name_of_one(const struct literal *l)
{
	for (size_t i = 0; i < l->len; i++)
		if (!isalpha((unsigned char)l->from[i]))
			return false;
	return private_name(l->from, l->len, false) != SECRECY_NEVER;
}

/* The name that ends here; its length. */
static size_t name_before(const struct scan *c, const char *s)
{
	size_t n = 0;

	while (n < NAME_LONGEST && s - n > c->text && is_name(s[-1 - (ptrdiff_t)n]))
		n++;
	return n;
}

static bool named_one_of(const char *name, size_t n, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(list[i]) == n && !strncmp(name, list[i], n))
			return true;
	return false;
}

/* What a function looks up, asks or compares with is not the secret. */
static bool is_question(const struct scan *c, const char *bracket)
{
	static const char *const functions[] = {
		"get",	   "getenv",   "pop",	  "getattr",	"input",	"getpass",    "prompt",
		"ask",	   "environ",  "open",	  "read",	"load",		"find",	      "split",
		"rsplit",  "join",     "replace", "strip",	"startswith",	"endswith",   "encode",
		"decode",  "format",   "print",	  "isinstance", "hasattr",	"lstrip",     "rstrip",
		"require", "from_env", "lookup",  "partition",	"removeprefix", "get_secret", "read_secret"};
	const char *end = before_blanks(c, bracket);
	size_t n = name_before(c, end);

	return n && named_one_of(end - n, n, functions, COUNT(functions));
}

/* Arguments that describe a value */
static bool is_description(const struct scan *c, const char *is)
{
	static const char *const names[] = {"help",   "description", "title",  "doc",	  "name",     "type", "dtype",
					    "alias",  "env",	     "prompt", "message", "encoding", "dest", "metavar",
					    "format", "errors",	     "group",  "mode",	  "safe"};
	const char *end = before_blanks(c, is);
	size_t n = name_before(c, end);

	return n && named_one_of(end - n, n, names, COUNT(names));
}

static bool is_compared(const struct scan *c, const char *before)
{
	return stands_before(c, before, "==") || stands_before(c, before, "!=") || stands_before(c, before, " in");
}

/* A literal in the value of a name that is only something about it. `s`: where it begins, with its prefix. */
static bool is_about(const struct scan *c, const char *s, const struct literal *l)
{
	const char *before = before_blanks(c, s), *after = l->after + blanks(l->after);

	if (s == c->value.start)
		return c->value.annotated && *after == '=' && after[1] != '=';	/* name: "type" = */
	if (before == c->text)
		return false;
	if (before[-1] == '[' && before - 1 > c->text && (is_name(before[-2]) || before[-2] == ']' || before[-2] == ')'))
		return !c->value.annotated || *after != '=';	/* a subscript */
	if (c->value.depth && before[-1] == '=' && is_description(c, before - 1))
		return true;
	if (c->value.depth && *after == ':' && (before[-1] == '{' || before[-1] == ',' || before[-1] == '\n'))
		return true;	/* {"alice": "…"} */
	return is_compared(c, before) || (before[-1] == '(' && is_question(c, before - 1));
}

static void close_value(struct scan *c)
{
	c->value.open = false;
}

/* "Bearer …": how many bytes come before the secret */
static size_t scheme_of(const struct literal *l)
{
	static const char *const schemes[] = {"Bearer ", "Basic ", "Token ", "Digest "};

	for (size_t i = 0; i < COUNT(schemes); i++)
		if (l->len > strlen(schemes[i]) && !strncasecmp(l->from, schemes[i], strlen(schemes[i])))
			return strlen(schemes[i]);
	return 0;
}

static void take_literal(struct scan *c, struct literal *l)
{
	/* a call makes something else of a literal, unless its value is a secret whatever it is */
	enum secrecy how = c->value.calls && c->value.how < SECRECY_ALWAYS ? SECRECY_LONG : c->value.how;
	size_t skip = scheme_of(l);
	bool stays = is_about(c, c->s, l);

	l->from += skip;
	l->len -= skip;
	stays = stays || !is_secret_literal(how, l) || (c->value.depth && is_name_of_one(l));
	if (!stays || c->value.one)
		c->value.open = !c->value.one;
	if (stays) {
		c->value.kept = l->after;
		c->s = l->from;
		return;
	}
	private_remove(c, l->from, l->len);
	c->s = l->after;
}

static void end_line(struct scan *c)
{
	bool goes_on =
		c->s > c->text && (c->s[-1] == '\\' || (c->s[-1] == '\r' && c->s - c->text > 1 && c->s[-2] == '\\'));

	c->value.comment = false;
	if ((!c->value.depth && !goes_on) || ++c->value.lines > LINES_MOST)
		close_value(c);
}

/* str("…"), b64decode("…"): the literal is still the value. */
static bool is_wrapper(const struct scan *c, const char *bracket)
{
	static const char *const functions[] = {"str",	     "bytes",	  "bytearray", "SecretStr", "Secret",
						"b64decode", "unhexlify", "fromhex",   "quote"};
	size_t n = name_before(c, bracket);

	return !n || named_one_of(bracket - n, n, functions, COUNT(functions)) || is_question(c, bracket);
}

static void begin_bracket(struct scan *c)
{
	if (c->value.depth < 64 && (*c->s == '{' || !is_wrapper(c, c->s)))
		c->value.calls |= 1ull << c->value.depth;
	c->value.depth++;
}

static void end_bracket(struct scan *c)
{
	if (!c->value.depth || (--c->value.depth == 0 && c->value.group))
		close_value(c);
	if (c->value.depth < 64)
		c->value.calls &= ~(1ull << c->value.depth);
}

bool private_in_value(struct scan *c)
{
	const char *s = c->s;
	struct literal l;

	if (s < c->value.kept || (c->value.comment && *s != '\n'))
		return false;
	if (c->value.inside && *s == c->value.inside && (s == c->text || s[-1] != '\\')) {
		close_value(c);
		return false;
	}
	if (literal_at(c, s, &l)) {
		take_literal(c, &l);
		return true;
	}
	switch (*s) {
	case '\n':
		end_line(c);
		break;
	case '(':
	case '[':
	case '{':
		begin_bracket(c);
		break;
	case ')':
	case ']':
	case '}':
		end_bracket(c);
		break;
	case ',':
	case ';':
		if (!c->value.depth && (*s == ';' || !c->value.list))
			close_value(c);
		break;
	case '#':
		c->value.comment = s == c->text || isspace((unsigned char)s[-1]);
		break;
	default:
		return false;
	}
	c->s++;
	return true;
}

static void open_value(struct scan *c, enum secrecy how, const char *at)
{
	c->value = (struct expression){.open = true, .how = how, .start = at, .kept = at};
	c->s = at;
}

enum operator{
	NOTHING,
	ASSIGNS,	/* = := += => :- */
	SAYS,		/* name: */
	FOLLOWS,	/* --name value */
	COMPARES,	/* == != in */
	PAIRS,		/* "name", value */
	CALLS,		/* name("value") */
	ELSES,		/* get("name") or value */
	TELLS,		/* the name is value */
};

struct name {
	const char *at;
	size_t n;
	bool quoted, option;
	char inside;	/* the quote of the text in which it stands, or 0 */
	enum secrecy how;
};

/* d["NAME"]["value"] =, char name[] = */
static const char *behind_subscripts(const char *s)
{
	for (unsigned i = 0; i < 3; i++) {
		const char *at = s + blanks(s);
		size_t n = *at == '[' ? span_to(at, "]\n=") : 0;

		if (at[n] != ']' || !n)
			break;
		s = at + n + 1;
	}
	return s;
}

/* "name": "HF_TOKEN", "value": "…" and the same as YAML and XML */
static const char *behind_value_word(const char *s)
{
	size_t n = span(s, " \t\r\n,\"'\\-");

	if (n == 0 || n > 40 || strncmp(s + n, "value", 5) != 0 || private_in_word(s[n + 5]))
		return NULL;
	s += n + 5;
	s += quote_at(s);
	s += blanks(s);
	return *s == ':' || *s == '=' ? s + 1 : NULL;
}

/* "ENV NAME value", "setenv NAME value" */
static bool command_sets(const struct scan *c, const char *name)
{
	static const char *const words[] = {"ENV", "setenv", "set", "define"};
	const char *end = before_blanks(c, name);
	size_t n = name_before(c, end);

	return end < name && n && named_one_of(end - n, n, words, COUNT(words));
}

static enum operator sign_at(const char *s, const char **value)
{
	static const struct {
		const char *sign;
		enum operator is;
	} signs[] = {{"===", COMPARES},	    {"!==", COMPARES}, {"==", COMPARES}, {"!=", COMPARES}, {"in ", COMPARES},
		     {"not in ", COMPARES}, {"||=", ASSIGNS},  {"=>", ASSIGNS},	 {"=~", NOTHING},  {"=", ASSIGNS},
		     {":=", ASSIGNS},	    {":-", ASSIGNS},   {"+=", ASSIGNS},	 {"|=", ASSIGNS},  {"?=", ASSIGNS},
		     {".=", ASSIGNS},	    {"::", NOTHING},   {":", SAYS},	 {"or ", ELSES},   {"?? ", ELSES},
		     {"|| ", ELSES},	    {"is ", TELLS}};

	for (size_t i = 0; i < COUNT(signs); i++)
		if (!strncmp(s, signs[i].sign, strlen(signs[i].sign))) {
			*value = s + strlen(signs[i].sign);
			return signs[i].is;
		}
	return NOTHING;
}

/* name("…"), name.append("…") */
static bool is_called(const char *s, const char **value)
{
	if (*s == '.')
		s += 1 + span(s + 1, "abcdefghijklmnopqrstuvwxyz_");
	*value = s + 1;
	return (*s == '(' || *s == '{') && quote_at(s + 1);
}

/* The quote of the text in which a name stands, as in "your password: "; 0 if it stands in none, or is all of it. */
static char enclosing_quote(const struct scan *c, const struct name *m)
{
	const char *end = m->at - (m->option ? 2 : 0) - m->quoted, *at;
	char inside = '\0';

	while (m->quoted && end > c->text && end[-1] == '\\')
		end--;
	for (at = end; at > c->text && at[-1] != '\n' && end - at < LINE_BACK;)
		at--;
	for (; at < end; at++) {
		if (*at == '\\' && at + 1 < end)
			at++;
		else if (inside ? *at == inside
				: (*at == '"' || *at == '\'') &&
					  (at == c->text || !isalnum((unsigned char)at[-1]) || at[-1] == 'f'))
			inside = inside ? '\0' : *at;
	}
	return inside;
}

static enum operator operator_at(const struct scan *c, const struct name *m, const char **value)
{
	const char *end = m->at + m->n, *s = end;
	enum operator is;

	if (m->quoted || *s == '\\' || *s == '"' || *s == '\'')
		s += quote_at(s);
	if ((*value = behind_value_word(s)))
		return ASSIGNS;
	if (s == end && is_called(s, value))
		return CALLS;
	if (s == end && *s == '>' && m->at > c->text && m->at[-1] == '<') {
		*value = s + 1;
		return ASSIGNS;
	}
	if (s > end)
		s += span(s + blanks(s), "])") ? blanks(s) + span(s + blanks(s), "])") : 0;
	s = behind_subscripts(s);
	if (m->option && s == end && *s == ' ') {
		*value = s + span(s, " \\\r\n\t");
		return **value == '-' ? NOTHING : FOLLOWS;
	}
	s += blanks(s);
	is = sign_at(s, value);
	if (is == NOTHING && s > end && *s == ',' && m->quoted) {
		*value = s + 1;
		return PAIRS;
	}
	if (is == NOTHING && s > end && !m->quoted && command_sets(c, m->at)) {
		*value = s;
		return FOLLOWS;
	}
	if (is == SAYS && !m->quoted && m->at > c->text &&
	    (m->at[-1] == ':' || stands_before(c, m->at, ":param ") || stands_before(c, m->at, ":type ")))
		return NOTHING;	/* arn:aws:secret:x */
	return is == ELSES && !m->quoted ? NOTHING : is;
}

/* "$VARIABLE", "args.password", "token=token", "self.key": what is in another place */
static bool is_reference(const char *v, size_t n, const struct name *m)
{
	static const char *const roots[] = {"self",    "cls",	  "args", "cfg",   "config", "settings", "opts",
					    "options", "os",	  "conf", "flags", "FLAGS",  "hparams",	 "params",
					    "kwargs",  "request", "env",  "ctx",   "obj",    "secrets",	 "torch"};
	const char *last = v + n;
	size_t root = span_to(v, ".");

	if (v[0] == '$' || v[0] == '%')
		return n == 1 || span(v + 1, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_%") == n - 1;
	for (size_t i = 0; i < n; i++)
		if (!is_name(v[i]) && v[i] != '.')
			return false;
	if (root < n && named_one_of(v, root, roots, COUNT(roots)))
		return true;
	while (last > v && is_name(last[-1]))
		last--;
	n -= (size_t)(last - v);
	if (isdigit((unsigned char)last[n - 1]) || isdigit((unsigned char)*v))
		return false;
	return (n == m->n && !strncmp(last, m->at, n)) ||
	       ((last > v || memchr(last, '_', n)) && private_name(last, n, false));
}

static bool is_word(const char *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_name(v[i]))
			return false;
	return n && !isdigit((unsigned char)*v);
}

/* CamelCase */
static bool is_class(const char *v, size_t n)
{
	unsigned humps = 0;

	for (size_t i = 0; i < n; i++) {
		if (!isalpha((unsigned char)v[i]))
			return false;
		humps += isupper((unsigned char)v[i]) && islower((unsigned char)v[i + 1]);
	}
	return humps >= 2 || (humps && private_name(v, n, false) != SECRECY_NEVER);
}

/* name: type = "…" */
static bool is_type(const char *v, size_t n)
{
	size_t word = 0;
	const char *sign;

	while (is_name(v[word]) || v[word] == '.')
		word++;
	sign = v + word + blanks(v + word);
	if (word == n && *sign && strchr(",)|\n", *sign) && is_class(v, n))
		return true;
	return *sign == '=' && (word == n || quote_at(sign + 1 + blanks(sign + 1)));
}

/* The length of a value without quotes; 0: it is none, or no secret. `apart`: there are blanks around the sign, as in code. */
static size_t bare_secret(const struct name *m, enum operator is, const char *v, bool apart)
{
	size_t n = span_to(v, BARE_ENDS);
	enum secrecy how = apart && m->how > SECRECY_RANDOM ? SECRECY_RANDOM : m->how;

	while (n && v[n - 1] == '\\')
		n--;
	if (v[n] == '(' || v[n] == '[' || (quote_at(v + n) && n <= 3) || is_reference(v, n, m))
		return 0;
	if (is == SAYS && isalpha((unsigned char)*v) && is_type(v, n))
		return 0;
	if (is == SAYS && m->quoted && is_word(v, n))
		return 0;	/* {"password": value} */
	if (apart && strchr(".+-*/%", v[n + blanks(v + n)]) && v[n])
		return 0;
	if (is == TELLS)
		how = m->how == SECRECY_ALWAYS ? SECRECY_MIXED : m->how == SECRECY_LONG ? SECRECY_NEVER : m->how;
	if (m->how == SECRECY_ALWAYS && apart && n >= 4 && span(v, "0123456789") == n)
		return n;
	if (apart && m->how == SECRECY_ALWAYS && private_random(v, n, 12, "+/=.~!@#$%^*?:"))
		return n;
	return private_value(how, v, n, false) ? n : 0;
}

/* Headers are values to the end of the line: "Cookie: a=b; c=d", "Authorization: Bearer …" */
static size_t header_secret(const struct name *m, const char **v)
{
	bool cookie = m->n >= 6 && !strncasecmp(m->at + m->n - 6, "cookie", 6);
	size_t word;

	if (cookie)
		return strcspn(*v, "\"'\n");
	if (m->n < 13 || strncasecmp(m->at + m->n - 13, "authorization", 13) != 0)
		return 0;
	if (is_reference(*v, span_to(*v, BARE_ENDS), m))
		return 0;
	word = span(*v, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
	if (word && (*v)[word] == ' ')
		*v += word + 1;
	return strcspn(*v, " \t\"',;)}\n");
}

static const char *line_start(const struct scan *c, const char *s)
{
	const char *from = s;

	while (s > c->text && s[-1] != '\n' && from - s < LOOK_BACK)
		s--;
	return s;
}

/* YAML: "name: |", and lines that are further in; "name:", and lines with "- ". The first line, or NULL. */
static const char *block_of(const struct scan *c, const struct name *m, const char *value, bool *list)
{
	const char *line = line_start(c, m->at), *s = value + blanks(value);

	if (m->quoted || line + span(line, " \t-") != m->at)
		return NULL;
	*list = *s != '|' && *s != '>';
	s += span(s, "|>+-0123456789 \t\r");
	if (*s != '\n')
		return NULL;
	s++;
	return !*list || s[blanks(s)] == '-' ? s : NULL;
}

static void remove_block(struct scan *c, const struct name *m, const char *s, bool list)
{
	size_t in = blanks(line_start(c, m->at));

	c->s = s;
	for (unsigned i = 0; i < LINES_MOST && *c->s; i++) {
		size_t deep = strspn(c->s, " \t"), n = strcspn(c->s, "\n");

		if (list ? c->s[deep] != '-' || c->s[deep + 1] != ' ' : deep <= in && n > deep)
			break;
		deep += list ? 2 : 0;
		if (n > deep && private_value(m->how, c->s + deep, n - deep, true))
			private_remove(c, c->s + deep, n - deep);
		else
			c->s += n;
		c->s += *c->s == '\n';
	}
}

/* "…" == name: the literal is before it. */
static void remove_compared(struct scan *c, const struct name *m)
{
	const char *s = m->at, *end;

	while (s > c->text && m->at - s < LOOK_BACK && (is_name(s[-1]) || s[-1] == '.'))
		s--;
	s = before_blanks(c, s);
	if (!stands_before(c, s, "==") && !stands_before(c, s, "!="))
		return;
	end = before_blanks(c, s - 2);
	if (end == c->text || !strchr("\"'", end[-1]))
		return;
	for (s = --end; s > c->copied && s > c->text && end - s < LOOK_BACK && s[-1] != *end && s[-1] != '\n'; s--)
		;
	if (s > c->copied && s > c->text && s[-1] == *end && private_value(m->how, s, (size_t)(end - s), true))
		private_remove(c, s, (size_t)(end - s));
}

/* a, name = "…", "…": is the name one of several that begin a statement? Then *value is behind the sign. */
static bool in_list(const struct scan *c, const struct name *m, const char **value)
{
	const char *line = line_start(c, m->at), *s = m->at, *end = m->at + m->n;
	size_t n = span(end, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_., \t)*]");
	bool comma = n < LOOK_AHEAD && memchr(end, ',', n);

	while (s > line && (is_name(s[-1]) || strchr("., \t*([#", s[-1])))
		comma |= *--s == ',';
	if (!comma || (s > line && s[-1] != ';') || m->quoted || n >= LOOK_AHEAD || end[n] != '=' || end[n + 1] == '=')
		return false;
	s += span(s, " \t#");
	if (is_name(s[span(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.")]) ||
			    s[span_to(s, ",(=")] == '('
		    ? *s != '('
		    : false)
		return false;	/* a call */
	*value = end + n + 1;
	return true;
}

/* d.setdefault("NAME", "…"), os.putenv("NAME", "…"): the second argument is the value, whatever it is. */
static bool is_set(const struct scan *c, const struct name *m)
{
	static const char *const functions[] = {"setdefault", "putenv",	     "setenv",	   "setattr", "set",
						"getenv",     "get",	     "pop",	   "put",     "add_header",
						"update",     "setProperty", "set_secret", "environ"};
	const char *s = m->at;
	size_t n;

	while (s > c->text && m->at - s < LOOK_BACK &&
	       strchr("\"'\\(, \tabcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.", s[-1])) {
		s--;
		if (*s != '(')
			continue;
		n = name_before(c, s);
		return n && named_one_of(s - n, n, functions, COUNT(functions));
	}
	return false;
}

static void take_operand(struct scan *c, const struct name *m, enum operator is, const char *value)
{
	enum secrecy how = m->how;
	bool group = strchr("([{", value[blanks(value)]) && value[blanks(value)];
	struct literal l;

	value += blanks(value);
	if (c->value.open && c->value.how >= how && (is == CALLS || is == PAIRS || is == COMPARES || is == ELSES)) {
		c->s = m->at + m->n;	/* SecretStr("…") */
		return;
	}
	if (is == CALLS || (is == PAIRS && !m->option && !is_set(c, m)))
		how = how == SECRECY_ALWAYS ? SECRECY_MIXED : how == SECRECY_MIXED ? SECRECY_RANDOM : how;
	if (is == PAIRS) {
		c->fallback = m->how;
		c->fallback_until = value + FALLBACK_FAR;
		value += span(value, " \t\r\n");
	}
	if (is == COMPARES ? !group && !literal_at(c, value, &l)
			   : is != ASSIGNS && is != SAYS && !literal_at(c, value, &l)) {
		c->s = m->at + m->n;
		return;
	}
	if ((is == ASSIGNS || (is == SAYS && m->quoted)) && literal_at(c, value + span(value, " \t\r\n"), &l))
		value += span(value, " \t\r\n");
	open_value(c, how, value);
	c->value.inside = m->inside;
	c->value.annotated = is == SAYS && !m->quoted;
	c->value.one = is == PAIRS || is == CALLS || is == ELSES || (is == COMPARES && !group) || is == FOLLOWS;
	c->value.group = is == COMPARES && group;
}

/* YAML: "name: !tag value", "name: &anchor value" */
static const char *behind_tag(const char *value)
{
	const char *s = value + blanks(value);
	size_t n = *s == '!' || *s == '&'
			   ? 1 + span(s + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
			   : 0;

	return n > 1 && s[n] == ' ' ? s + n : value;
}

static void take_value(struct scan *c, const struct name *m, enum operator is, const char *value)
{
	const char *bare = value + blanks(value), *block, *listed;
	bool apart = is == ASSIGNS && value[-1] != ':' &&
		     (bare > value || before_blanks(c, value - 1) != value - 1 || value[-2] == ' '),
	     list;
	struct literal l;
	size_t n = 0;

	if (!strncmp(bare, PRIVATE_REMOVED, strlen(PRIVATE_REMOVED))) {
		c->s = bare + strlen(PRIVATE_REMOVED);	/* it was one, before */
		return;
	}
	if (is == SAYS && (block = block_of(c, m, value, &list))) {
		remove_block(c, m, block, list);
		return;
	}
	if (is == ASSIGNS && in_list(c, m, &listed)) {
		open_value(c, m->how, listed);
		c->value.list = true;
		return;
	}
	if (is == SAYS && !literal_at(c, bare, &l))
		n = header_secret(m, &bare);
	if (!n && (is == ASSIGNS || is == SAYS || is == FOLLOWS || is == TELLS) && !literal_at(c, bare, &l))
		n = bare_secret(m, is, bare, apart);
	if (n)
		private_remove(c, bare, n < LOOK_AHEAD ? n : n + strcspn(bare + n, BARE_ENDS));
	else if (is != TELLS)
		take_operand(c, m, is, value);
	else
		c->s = m->at + m->n;
}

static bool name_at(struct scan *c, struct name *m)
{
	const char *s = c->s, *before;
	size_t n = 0;

	*m = (struct name){.at = s};
	m->option = s - c->text >= 2 && s[-1] == '-' && s[-2] == '-';
	if (!isalpha((unsigned char)*s) && *s != '_')
		return false;
	if (!m->option && s > c->text && private_in_word(s[-1]))
		return false;
	while (private_in_word(s[n]))
		n++;
	m->n = n;
	before = s - (m->option ? 2 : 0);
	m->quoted = before > c->text && strchr("\"'`", before[-1]) && quote_at(s + n);
	m->how = private_name(s, n, m->option);
	if (m->how == SECRECY_NEVER && c->fallback && s < c->fallback_until && n == 7 && !strncmp(s, "default", 7))
		m->how = c->fallback;
	return m->how != SECRECY_NEVER;
}

bool private_named(struct scan *c)
{
	const char *value;
	enum operator is;
	struct name m;

	if (!name_at(c, &m) || (c->value.open && c->s < c->value.kept && !m.quoted))
		return false;
	remove_compared(c, &m);
	is = operator_at(c, &m, &value);
	if (is == NOTHING && in_list(c, &m, &value)) {
		open_value(c, m.how, value);
		c->value.list = true;
		return true;
	}
	value = is == SAYS ? behind_tag(value) : value;
	m.inside = is == NOTHING ? '\0' : enclosing_quote(c, &m);
	if (is == NOTHING || (m.inside && value[blanks(value)] == m.inside))
		c->s = m.at + m.n;	/* "your password: " */
	else
		take_value(c, &m, is, value);
	return true;
}
