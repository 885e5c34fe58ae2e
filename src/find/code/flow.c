/* SPDX-License-Identifier: Apache-2.0
 * Follows a value through a file (see flow.h).
 */
#include "find/code/flow.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define ROUNDS_MAX 50
#define NAMES_MAX 100		/* a value that is everywhere is not understood */

static const char *const detaching[] = {"item",	  "detach", "tolist",	"numpy", "shape",	  "size",    "dtype",
					"device", "dim",    "ndim",	"numel", "requires_grad", "grad_fn", "argmax",
					"argmin", "keys",   "bincount", "any",	 "all",		  NULL};
static const char *const plain_result[] = {"float", "int",	  "len", "print", "str",   "bool",
					   "type",  "isinstance", "id",	 "repr",  "range", NULL};
static const char *const putting[] = {"append", "extend", "add",	"insert",     "appendleft", "push",
				      "put",	"update", "setdefault", "put_nowait", NULL};
/* Words in the name of a function that is defined elsewhere and may run backward over its arguments. */
static const char *const suspicious[] = {"backward", "grad",	"optim",    "step",    "train", "learn",
					 "fit",	     "closure", "minimize", "update_", NULL};
static const char *const harmless[] = {"torch",	     "F",	"nn",	  "np",	    "numpy", "math", "plt",
				       "statistics", "logging", "logger", "writer", "wandb", "json", NULL};

static bool is_in(const char *const *list, const char *word, size_t n)
{
	for (; *list; list++)
		if (strlen(*list) == n && !strncmp(*list, word, n))
			return true;
	return false;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool begins_name(const char *s, size_t at)
{
	return is_name(s[at]) && !isdigit((unsigned char)s[at]) && (!at || !is_name(s[at - 1]));
}

static size_t name_end(const char *s, size_t at)
{
	while (is_name(s[at]))
		at++;
	return at;
}

size_t flow_closing(const char *text, size_t at)
{
	int depth = 0;

	for (; text[at]; at++) {
		depth += strchr("([{", text[at]) != NULL;
		depth -= strchr(")]}", text[at]) != NULL;
		if (!depth)
			return at;
	}
	return at;
}

static size_t opening(const char *text, size_t at)
{
	int depth = 0;

	while (at-- > 0) {
		depth += strchr(")]}", text[at]) != NULL;
		if (strchr("([{", text[at]) && depth-- == 0)
			return at;
	}
	return SIZE_MAX;
}

size_t flow_assignment(const char *text, size_t *op)
{
	*op = 0;
	for (size_t i = 0; text[i]; i++) {
		if (strchr("([{", text[i])) {
			i = flow_closing(text, i);
			if (!text[i])
				break;
			continue;
		}
		if (text[i] != '=' || !i)
			continue;
		if (text[i + 1] == '=' || strchr("<>!:", text[i - 1])) {
			i += text[i + 1] == '=';
			continue;
		}
		while (*op < i && strchr("+-*/%&|^@", text[i - 1 - *op]))
			++*op;
		return i;
	}
	return SIZE_MAX;
}

static bool is_keyword_statement(const struct statement *s)
{
	static const char *const words[] = {"def",     "class", "import",   "from",  "global", "nonlocal",
					    "pass",    "break", "continue", "del",   "try",    "except",
					    "finally", "else",	"async",    "raise", NULL};

	for (size_t i = 0; words[i]; i++)
		if (code_begins(s, words[i]))
			return true;
	return s->text[0] == '@';
}

/* --- names --- */

/* The parameters of a def, as its text between the brackets. */
static const char *parameters(const struct code *c, int function, size_t *n)
{
	const char *text = c->statement[c->function[function].def].text;
	size_t at = strcspn(text, "(");

	*n = text[at] ? flow_closing(text, at) - at - 1 : 0;
	return text[at] ? text + at + 1 : "";
}

/* The name of parameter `want`, counted from 0; NULL: there is none. */
static const char *parameter(const struct code *c, int function, int want, struct pool *pool)
{
	size_t n, at = 0;
	const char *text = parameters(c, function, &n);

	for (int i = 0; at < n; i++) {
		size_t end = at;

		while (end < n && text[end] != ',')
			end = strchr("([{", text[end]) ? flow_closing(text, end) + 1 : end + 1;
		while (at < end && strchr(" *", text[at]))
			at++;
		if (i == want)
			return pool_copy(pool, text + at, name_end(text, at) - at);
		at = end + 1;
	}
	return NULL;
}

bool flow_is_parameter(const struct code *c, int function, const char *name)
{
	size_t n, len = strlen(name);
	const char *text = function >= 0 ? parameters(c, function, &n) : "";

	for (size_t i = 0; function >= 0 && i < n; i++)
		if (begins_name(text, i) && name_end(text, i) - i == len && !strncmp(text + i, name, len))
			return true;
	return false;
}

/* Does this part of a statement, which is assigned to, have the name itself, and not an item or an attribute of it? */
static bool binds(const char *text, size_t from, size_t to, const char *name, size_t n)
{
	for (size_t i = from; i < to; i++) {
		if (text[i] == '[') {
			bool list = i == from || strchr(" ,(", text[i - 1]);

			i = list ? i : flow_closing(text, i);
			continue;
		}
		if (begins_name(text, i) && (!i || text[i - 1] != '.') && name_end(text, i) - i == n &&
		    !strncmp(text + i, name, n) && !strchr(".[(", text[i + n] ? text[i + n] : ' '))
			return true;
	}
	return false;
}

static bool statement_binds(const struct statement *s, const char *name, size_t n)
{
	size_t op, equals;
	const char *word;

	if (code_begins(s, "for") || code_begins(s, "async")) {
		word = strstr(s->text, " in ");
		return word && binds(s->text, 0, (size_t)(word - s->text), name, n);
	}
	if (code_begins(s, "with")) {
		word = strstr(s->text, " as ");
		return word && binds(s->text, (size_t)(word - s->text) + 4, strlen(s->text), name, n);
	}
	if (is_keyword_statement(s) || code_begins(s, "if") || code_begins(s, "while"))
		return false;
	equals = flow_assignment(s->text, &op);
	return equals != SIZE_MAX && binds(s->text, 0, equals - op, name, n);
}

static bool says_global(const struct statement *s, const char *name, size_t n)
{
	for (size_t i = 0; (code_begins(s, "global") || code_begins(s, "nonlocal")) && s->text[i]; i++)
		if (begins_name(s->text, i) && name_end(s->text, i) - i == n && !strncmp(s->text + i, name, n))
			return true;
	return false;
}

static bool is_local(const struct code *c, int function, const char *name, size_t n)
{
	int def = c->function[function].def;
	bool found = false;

	for (int i = def; i < c->n && (i == def || c->statement[i].indent > c->statement[def].indent); i++) {
		if (c->statement[i].function != function)
			continue;
		if (says_global(&c->statement[i], name, n))
			return false;
		found |= statement_binds(&c->statement[i], name, n);
	}
	return found;
}

const char *flow_key(const struct code *c, int function, const char *name, size_t n, struct pool *pool)
{
	char *copy = pool_copy(pool, name, n);

	while (function >= 0 && !flow_is_parameter(c, function, copy) && !is_local(c, function, name, n))
		function = c->function[function].around;
	return pool_printf(pool, "%d:%s", function, copy);
}

static const char *key_of_attribute(const char *name, size_t n, struct pool *pool)
{
	return pool_printf(pool, ".%.*s", (int)n, name);
}

const char *flow_result(const struct code *c, int function, struct pool *pool)
{
	return pool_printf(pool, "%s()", c->function[function].name);
}

/* Does any key end with this name? Which one it is takes longer to find. */
static bool may_have(const struct flow *f, const char *name, size_t n)
{
	for (size_t i = 0; i < f->n; i++) {
		const char *key = f->key[i], *own = strpbrk(key, ":.");

		own = own ? own + 1 : key;
		if (!strncmp(own, name, n) && (!own[n] || own[n] == '('))
			return true;
	}
	return false;
}

bool flow_has(const struct flow *f, const char *key)
{
	for (size_t i = 0; i < f->n; i++)
		if (!strcmp(f->key[i], key))
			return true;
	return false;
}

static bool add_key(struct flow *f, const char *key)
{
	if (flow_has(f, key))
		return false;
	if (f->n == NAMES_MAX) {
		f->unknown = true;
		return false;
	}
	f->key[f->n++] = key;
	return true;
}

/* --- mentions --- */

/* Attributes, calls and items that follow a value. True: one of them detaches it. */
static bool trailer_detaches(const char *text, size_t at)
{
	for (;;) {
		if (text[at] == '.' && is_name(text[at + 1])) {
			size_t end = name_end(text, at + 1);

			if (is_in(detaching, text + at + 1, end - at - 1))
				return true;
			at = end;
		} else if (text[at] == '(' || text[at] == '[') {
			at = flow_closing(text, at);
			at += text[at] != '\0';
		} else {
			return false;
		}
	}
}

/* The value begins at `at`, and what is said about it at `end`. */
static bool is_detached(const char *text, size_t at, size_t end)
{
	for (;;) {
		size_t open, from;

		if (trailer_detaches(text, end))
			return true;
		open = opening(text, at);
		if (open == SIZE_MAX)
			return false;
		for (from = open; from > 0 && is_name(text[from - 1]); from--)
			;
		if (text[open] == '(' && (!from || text[from - 1] != '.') && is_in(plain_result, text + from, open - from))
			return true;
		at = open;
		end = flow_closing(text, open);
		end += text[end] != '\0';
	}
}

static bool is_argument_name(const char *text, size_t end)
{
	end += strspn(text + end, " ");
	return text[end] == '=' && text[end + 1] != '=';
}

/* Is what begins here a value that is followed? Moves on to the end of the whole name. */
static bool has_value(const struct flow *f, int function, const char *text, size_t *at)
{
	const char *apart = f->apart < 0 ? "" : f->code->function[f->apart].name;
	size_t begin = *at;
	bool found = false;

	for (bool first = true;; first = false) {
		size_t end = name_end(text, *at);
		bool may = !found && may_have(f, text + *at, end - *at);

		if (may && text[end] == '(' && !f->collect &&
		    (strlen(apart) != end - *at || strncmp(apart, text + *at, end - *at)))
			found = flow_has(f, pool_printf(f->pool, "%.*s()", (int)(end - *at), text + *at)) &&
				!is_detached(text, begin, end);
		if (may && !found && !(first && opening(text, begin) != SIZE_MAX && is_argument_name(text, end)))
			found = flow_has(f, first ? flow_key(f->code, function, text + *at, end - *at, f->pool)
						  : key_of_attribute(text + *at, end - *at, f->pool)) &&
				!is_detached(text, begin, end);
		*at = end;
		if (text[end] != '.' || !is_name(text[end + 1]))
			return found;
		*at = end + 1;
	}
}

/* What the call of a seed gives: its value is detached at the end, or made a number. */
static bool ends_detached(const char *text, size_t from, size_t to)
{
	static const char *const ends[] = {".item()", ".detach()", ".tolist()", ".numpy()", ".clone().detach()", NULL};

	while (to > from && text[to - 1] == ' ')
		to--;
	for (size_t i = 0; ends[i]; i++)
		if (to - from > strlen(ends[i]) && !strncmp(text + to - strlen(ends[i]), ends[i], strlen(ends[i])))
			return true;
	return (str_starts(text + from, "float(") || str_starts(text + from, "int(")) &&
	       flow_closing(text, from + strcspn(text + from, "(")) + 1 == to;
}

bool flow_mentions(const struct flow *f, int statement, size_t from, size_t to)
{
	const struct statement *s = &f->code->statement[statement];

	if (statement == f->seed)
		return !ends_detached(s->text, from, to);
	for (size_t i = from; i < to; i++) {
		if (!begins_name(s->text, i))
			continue;
		if (has_value(f, s->function, s->text, &i))
			return true;
		i--;
	}
	return false;
}

/* --- statements --- */

/* What is assigned to: "a", "a, b", "self.a", "a[i]". True: something new has the value. */
static bool add_targets(struct flow *f, int statement, size_t from, size_t to)
{
	const struct statement *s = &f->code->statement[statement];
	const char *comma = memchr(s->text + from, ',', to - from);
	bool more = false;

	f->vague |= comma && opening(s->text, (size_t)(comma - s->text)) == SIZE_MAX;

	for (size_t i = from; i < to; i++) {
		size_t end, last;

		if (s->text[i] == '[' && i > from && !strchr(" ,(", s->text[i - 1])) {
			i = flow_closing(s->text, i);
			continue;
		}
		if (!begins_name(s->text, i))
			continue;
		for (last = i, end = name_end(s->text, i);
		     end < to && s->text[end] == '.' && is_name(s->text[end + 1]);
		     end = name_end(s->text, last))
			last = end + 1;
		more |= add_key(f, last == i ? flow_key(f->code, s->function, s->text + i, end - i, f->pool)
					     : key_of_attribute(s->text + last, end - last, f->pool));
		i = end - 1;
	}
	return more;
}

static bool add_holder(struct flow *f, enum holder_form form, int statement, size_t name, size_t name_to, size_t from,
		       size_t to)
{
	const struct statement *s = &f->code->statement[statement];
	size_t last = name_to;

	while (last > name && s->text[last - 1] == ' ')
		last--;
	name_to = last;
	while (last > name && is_name(s->text[last - 1]))
		last--;
	if (f->n_holders == HOLDERS_MAX) {
		f->unknown = true;
		return false;
	}
	for (size_t i = 0; i < f->n_holders; i++)
		if (f->holder[i].statement == statement && f->holder[i].from == from)
			return false;
	f->holder[f->n_holders++] = (struct holder){
		form, statement, pool_copy(f->pool, s->raw + name, name_to - name),
		last > name ? key_of_attribute(s->text + last, name_to - last, f->pool)
			    : flow_key(f->code, s->function, s->text + last, name_to - last, f->pool),
		from, to};
	return true;
}

/* How often a name is mentioned in a part of a statement. */
static unsigned times_named(const char *text, size_t from, size_t to, const char *name, size_t n)
{
	unsigned times = 0;

	for (size_t i = from; i + n <= to; i++)
		times += (!i || (!is_name(text[i - 1]) && text[i - 1] != '.')) && !strncmp(text + i, name, n) &&
			 !is_name(text[i + n]);
	return times;
}

/* total + loss, 0.9 * total + 0.1 * loss: a sum of the name and something else. */
static bool is_sum_with(const char *text, size_t from, size_t to, const char *name, size_t n)
{
	bool plus = false;

	if (times_named(text, from, to, name, n) != 1)
		return false;
	for (size_t i = from; i < to; i++) {
		if (strchr("([{", text[i])) {
			size_t end = flow_closing(text, i);

			if (times_named(text, i, end, name, n))
				return false;
			i = end;
		}
		plus |= text[i] == '+' || (text[i] == '-' && i > from);
	}
	return plus;
}

static bool in_no_grad(const struct code *c, int i)
{
	for (; i >= 0; i = c->statement[i].around)
		if (code_begins(&c->statement[i], "with") &&
		    (strstr(c->statement[i].text, "no_grad") || strstr(c->statement[i].text, "inference_mode")))
			return true;
	return false;
}

static bool follow_assignment(struct flow *f, int statement, size_t equals, size_t op)
{
	const struct statement *s = &f->code->statement[statement];
	size_t to = equals - op, end = strlen(s->text), from = equals + 1 + strspn(s->text + equals + 1, " "), name_to;

	if (!flow_mentions(f, statement, from, end))
		return false;
	while (to && s->text[to - 1] == ' ')
		to--;
	for (name_to = 0; name_to < to && (is_name(s->text[name_to]) || s->text[name_to] == '.'); name_to++)
		;
	if (f->collect && name_to && name_to < to && s->text[name_to] == '[')
		return add_holder(f, HOLDER_ITEM, statement, 0, name_to, from, end);
	if (f->collect && name_to == to && op)
		return !in_no_grad(f->code, statement) && add_holder(f, HOLDER_SUM, statement, 0, to, from, end);
	if (f->collect && name_to == to && is_sum_with(s->text, from, end, s->text, to))
		return !in_no_grad(f->code, statement) && add_holder(f, HOLDER_SUM, statement, 0, to, from, end);
	for (size_t i = 0; f->collect && i < to; i++)
		if (begins_name(s->text, i) && times_named(s->text, from, end, s->text + i, name_end(s->text, i) - i) &&
		    code_loop(f->code, statement) >= 0)
			add_holder(f, HOLDER_CARRIED, statement, i, name_end(s->text, i), from, end);
	return add_targets(f, statement, 0, to);
}

static int function_named(const struct code *c, const char *name, size_t n)
{
	for (int i = 0; i < c->n_functions; i++)
		if (strlen(c->function[i].name) == n && !strncmp(c->function[i].name, name, n))
			return i;
	return -1;
}

static bool is_class(const struct code *c, const char *name, size_t n)
{
	for (int i = 0; i < c->n; i++)
		if (code_begins(&c->statement[i], "class") && !strncmp(c->statement[i].text + 6, name, n) &&
		    !is_name(c->statement[i].text[6 + n]))
			return true;
	return false;
}

/* An argument of a function of this file has the value. */
static bool enter(struct flow *f, int function, bool method, int argument, const char *text, size_t from)
{
	const struct code *c = f->code;
	size_t end = name_end(text, from);
	const char *first = parameter(c, function, 0, f->pool), *name;

	if (is_argument_name(text, end))
		name = pool_copy(f->pool, text + from, end - from);
	else
		name = parameter(c, function, argument + (method && first && !strcmp(first, "self")), f->pool);
	if (name && !flow_is_parameter(c, function, name))
		name = NULL;
	f->unknown |= !name;
	return name && add_key(f, flow_key(c, function, name, strlen(name), f->pool));
}

static bool may_run_backward(const char *path, size_t n)
{
	char word[256];
	size_t root = 0;

	if (n >= sizeof(word))
		return true;
	memcpy(word, path, n);
	word[n] = '\0';
	while (is_name(word[root]))
		root++;
	if (is_in(harmless, word, root) || str_find_case(word, "sched"))
		return false;
	for (size_t i = 0; suspicious[i]; i++)
		if (str_find_case(word, suspicious[i]))
			return true;
	return false;
}

/* Where the calls of a statement take their arguments. */
static bool follow_calls(struct flow *f, int statement)
{
	const struct statement *s = &f->code->statement[statement];
	bool more = false;

	for (size_t open = 1; s->text[open]; open++) {
		size_t path = open, last = open, from = open + 1, close;
		int function;

		if (s->text[open] != '(' || !is_name(s->text[open - 1]))
			continue;
		close = flow_closing(s->text, open);
		while (path > 0 && (is_name(s->text[path - 1]) || s->text[path - 1] == '.' || s->text[path - 1] == ']'))
			path = s->text[path - 1] == ']'
				       ? opening(s->text, path - 1) == SIZE_MAX ? path - 1 : opening(s->text, path - 1)
				       : path - 1;
		while (last > path && is_name(s->text[last - 1]))
			last--;
		function = function_named(f->code, s->text + last, open - last);
		for (int argument = 0; from < close; argument++) {
			size_t to = from + strspn(s->text + from, " ");
			bool has;

			from = to;
			while (to < close && s->text[to] != ',')
				to = strchr("([{", s->text[to]) ? flow_closing(s->text, to) + 1 : to + 1;
			/* what a seed passes on is what it was made from */
			has = statement != f->seed ? flow_mentions(f, statement, from, to)
				      : path == 0 && function >= 0 && memchr(s->text + from, '(', to - from);
			if (last > path && is_in(putting, s->text + last, open - last) && function < 0 &&
			    (has || (statement == f->seed && path == 0 && flow_mentions(f, statement, from, to)))) {
				size_t name_to = last - 1;

				if (f->collect && name_to > path && s->text[name_to] == '.') {
					size_t base_to = path;

					while (base_to < name_to && (is_name(s->text[base_to]) || s->text[base_to] == '.'))
						base_to++;
					more |= add_holder(f, HOLDER_APPEND, statement, path, base_to, from, to);
				} else {
					more |= add_targets(f, statement, path, last - 1);
				}
			} else if (has && function >= 0) {
				more |= enter(f, function, last > path, argument, s->text, from);
			} else if (has && (may_run_backward(s->text + path, open - path) ||
					   is_class(f->code, s->text + last, open - last))) {
				f->unknown |= !strstr(s->text, "backward(");
			}
			from = to + 1;
		}
	}
	return more;
}

static bool follow_return(struct flow *f, int statement)
{
	const struct statement *s = &f->code->statement[statement];

	if (s->function < 0 || !flow_mentions(f, statement, 6, strlen(s->text)))
		return false;
	return add_key(f, flow_result(f->code, s->function, f->pool));
}

/* x.backward(), torch.autograd.grad(x, …), and grad() as it is imported. */
static bool runs_backward(const char *text)
{
	for (const char *p = strstr(text, "grad("); p; p = strstr(p + 1, "grad("))
		if (p == text || !is_name(p[-1]))
			return true;
	return strstr(text, "backward(") != NULL;
}

static bool follow_statement(struct flow *f, int statement)
{
	const struct statement *s = &f->code->statement[statement];
	size_t end = strlen(s->text), op, equals;
	const char *word;
	bool more = false;

	if (is_keyword_statement(s))
		return false;
	if (runs_backward(s->text) && statement != f->seed && flow_mentions(f, statement, 0, end))
		f->backward = statement;
	more = follow_calls(f, statement);
	if (code_begins(s, "return") || code_begins(s, "yield"))
		return follow_return(f, statement) || more;
	if (code_begins(s, "for")) {
		word = strstr(s->text, " in ");
		if (word && statement != f->seed && flow_mentions(f, statement, (size_t)(word - s->text) + 4, end))
			more |= add_targets(f, statement, 4, (size_t)(word - s->text));
		return more;
	}
	if (code_begins(s, "with")) {
		word = strstr(s->text, " as ");
		if (word && flow_mentions(f, statement, 5, (size_t)(word - s->text)))
			more |= add_targets(f, statement, (size_t)(word - s->text) + 4, end);
		return more;
	}
	if (code_begins(s, "if") || code_begins(s, "elif") || code_begins(s, "while") || code_begins(s, "assert"))
		return more;
	equals = flow_assignment(s->text, &op);
	return (equals != SIZE_MAX && follow_assignment(f, statement, equals, op)) || more;
}

static void follow(struct flow *f)
{
	bool more = true;

	for (int round = 0; more && round < ROUNDS_MAX && f->n < NAMES_MAX; round++) {
		more = false;
		for (int i = 0; i < f->code->n && f->n < NAMES_MAX; i++)
			more |= follow_statement(f, i);
	}
	f->unknown |= more || f->n == NAMES_MAX;
}

static void flow_init(struct flow *f, const struct code *c, struct pool *pool)
{
	*f = (struct flow){.code = c, .pool = pool, .key = pool_alloc(pool, NAMES_MAX * sizeof(*f->key)), .seed = -1, .apart = -1,
			   .backward = -1};
}

void flow_from(struct flow *f, const struct code *c, int seed, struct pool *pool)
{
	flow_init(f, c, pool);
	f->seed = seed;
	f->collect = true;
	follow(f);
}

/* What a function returns that nothing in this file calls is used elsewhere. */
static bool returns_to_others(const struct flow *f)
{
	for (int i = 0; i < f->code->n_functions; i++) {
		const char *name = f->code->function[i].name;
		bool called = false;

		if (i == f->apart || !flow_has(f, flow_result(f->code, i, f->pool)))
			continue;
		for (int k = 0; k < f->code->n && !called; k++)
			for (const char *p = strstr(f->code->statement[k].text, name); p && !called;
			     p = strstr(p + 1, name))
				called = k != f->code->function[i].def &&
					 begins_name(f->code->statement[k].text,
						     (size_t)(p - f->code->statement[k].text)) &&
					 p[strlen(name)] == '(';
		if (!called)
			return true;
	}
	return false;
}

/* A name in the function that lives on without it: an attribute, a variable of the module. */
static void add_stores(struct flow *f, int function)
{
	const struct code *c = f->code;

	for (int i = c->function[function].def + 1;
	     i < c->n && c->statement[i].indent > c->statement[c->function[function].def].indent; i++) {
		const struct statement *s = &c->statement[i];
		size_t op, equals = flow_assignment(s->text, &op);
		bool stores = equals != SIZE_MAX && !is_keyword_statement(s);

		for (size_t k = 0; stores && k < equals - op; k++) {
			size_t end = name_end(s->text, k);
			const char *key;

			if (!begins_name(s->text, k))
				continue;
			key = flow_key(c, s->function, s->text + k, end - k, f->pool);
			if (s->text[end] == '.' || str_starts(key, "-1:"))
				add_targets(f, i, k, s->text[end] == '.' ? equals - op : end);
			k = end;
		}
		for (size_t k = 0; putting[k]; k++) {
			const char *found = strstr(s->text, pool_printf(f->pool, ".%s(", putting[k]));
			size_t end = found ? (size_t)(found - s->text) : 0, from = end;

			while (from > 0 && (is_name(s->text[from - 1]) || s->text[from - 1] == '.'))
				from--;
			if (found && (memchr(s->text + from, '.', end - from) ||
				      str_starts(flow_key(c, s->function, s->text + from, end - from, f->pool), "-1:")))
				add_targets(f, i, from, end);
		}
	}
}

void flow_of_function(struct flow *f, const struct code *c, int function, struct pool *pool)
{
	flow_init(f, c, pool);
	add_key(f, flow_result(c, function, pool));
	add_stores(f, function);
	follow(f);
	f->unknown |= returns_to_others(f);
}

void flow_of_statement(struct flow *f, const struct code *c, int seed, struct pool *pool)
{
	flow_init(f, c, pool);
	f->seed = seed;
	follow(f);
	f->unknown |= returns_to_others(f);
}

enum use flow_use(const struct flow *f)
{
	if (f->backward >= 0)
		return f->vague ? USE_UNKNOWN : USE_BACKWARD;
	return f->unknown ? USE_UNKNOWN : USE_KEPT;
}

void flow_in_function(struct flow *f, const struct code *c, int seed, struct pool *pool)
{
	flow_init(f, c, pool);
	f->seed = seed;
	f->apart = c->statement[seed].function;
	follow(f);
	f->unknown |= returns_to_others(f);
}

void flow_of(struct flow *f, const struct code *c, const char *key, struct pool *pool)
{
	flow_init(f, c, pool);
	add_key(f, key);
	follow(f);
	f->unknown |= returns_to_others(f);
}
