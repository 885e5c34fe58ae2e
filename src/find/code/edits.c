/* SPDX-License-Identifier: Apache-2.0
 * Makes changes to a user's file (see edits.h).
 */
#include "find/code/edits.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"

#define EDIT_MAX 4096
#define CHANGES_MAX 10

/* `new` replaces the statement, or comes before it, indented like it; NULL: the statement goes. */
struct change { int statement; bool replaces; const char *new; };

static bool has_secret(const char *text)
{
	char *hidden = private_hide_secrets(xstrdup(text), NULL);
	bool secret = strcmp(hidden, text) != 0;

	free(hidden);
	return secret;
}

static int by_statement(const void *a, const void *b)
{
	return ((const struct change *)a)->statement - ((const struct change *)b)->statement;
}

/* train.py:27 / - total += loss / + total += loss.detach() */
static const char *print_changes(const struct code *c, struct change *list, size_t n, const char *shown, struct pool *pool)
{
	const char *text = "";

	xsort(list, n, sizeof(*list), by_statement);
	for (size_t i = 0; i < n; i++) {
		const struct statement *s = &c->statement[list[i].statement];

		if (!s->alone && list[i].replaces)
			return NULL;
		text = pool_printf(pool, "%s%s%s:%u", text, str_if(i, "\n"), shown, s->line);
		if (list[i].replaces)
			text = pool_printf(pool, "%s\n- %s", text, s->raw);
		for (const char *p = list[i].new; p && *p;) {
			size_t len = strcspn(p, "\n");

			text = pool_printf(pool, "%s\n+ %.*s", text, (int)len, p);
			p += len + (p[len] == '\n');
		}
		if (!list[i].replaces)
			text = pool_printf(pool, "%s\n  %s", text, s->raw);
	}
	return has_secret(text) || strlen(text) > EDIT_MAX ? NULL : text;
}

static bool is_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* An expression that ends in a name, a call or an item, without an operator around it. */
static bool is_primary(const char *text, size_t n)
{
	if (!n || !is_name(text[0]) || isdigit((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (strchr("([", text[i])) {
			i = flow_closing(text, i);
			if (i >= n)
				return false;
		} else if (!is_name(text[i]) && text[i] != '.') {
			return false;
		}
	}
	return true;
}

/* Literals of lists and dicts, tuples, comprehensions: there is nothing to detach. Conditions may give something else than a tensor. */
static bool is_collection(const char *text, size_t n)
{
	if (!n || strchr("[{\"'", text[0]) || !strncmp(text, "lambda", 6))
		return true;
	for (size_t i = 0; i < n; i++) {
		if (strchr("([{", text[i]))
			i = flow_closing(text, i);
		else if (text[i] == ',' || !strncmp(text + i, " if ", 4) || !strncmp(text + i, " and ", 5) ||
			 !strncmp(text + i, " or ", 4))
			return true;
	}
	return false;
}

static bool says(const struct code *c, int function, const char *words)
{
	for (int i = 0; i < c->n; i++) {
		const char *found = c->statement[i].function == function ? strstr(c->statement[i].text, words) : NULL;

		if (found && (found == c->statement[i].text || (!is_name(found[-1]) && found[-1] != '.')))
			return true;
	}
	return false;
}

static bool was_tensor(const struct code *c, int function, const struct code_facts *facts, const char *name)
{
	for (size_t i = 0; i < facts->n_tensors; i++) {
		const struct seen_tensor *t = &facts->tensor[i];
		int at = code_at(c, t->line);

		if (!strcmp(t->name, name) && (at < 0 ? -1 : c->statement[at].function) == function)
			return true;
	}
	return false;
}

/* The last method of a chain, or the function: "mean" of model(x).mean(), "F.cross_entropy". */
static bool gives_tensor(const char *text, size_t n)
{
	static const char *const methods[] = {
		"mean",	   "sum",     "square",	   "abs",	"pow",	 "norm", "softmax",  "log_softmax", "view",
		"reshape", "squeeze", "unsqueeze", "flatten",	"float", "half", "bfloat16", "cpu",	    "cuda",
		"to",	   "log",     "exp",	   "sqrt",	"clamp", "relu", "sigmoid",  "tanh",	    "log_prob",
		"clone",   "std",     "var",	   "logsumexp", "div",	 "mul",	 NULL};
	static const char *const roots[] = {"torch.", "F.", "nn.functional.", "functional.", NULL};
	size_t last = n, open;

	if (!n || text[n - 1] != ')')
		return false;
	for (open = 0; open < n; open++)
		if (strchr("([", text[open])) {
			size_t end = flow_closing(text, open);

			if (end + 1 == n)
				break;
			open = end;
		}
	for (last = open; last > 0 && is_name(text[last - 1]); last--)
		;
	for (size_t i = 0; roots[i]; i++)
		if (str_starts(text, roots[i]) && strcspn(text, "(") == open)
			return true;
	for (size_t i = 0; methods[i] && last && text[last - 1] == '.'; i++)
		if (strlen(methods[i]) == open - last && !strncmp(text + last, methods[i], open - last))
			return true;
	return false;
}

/* A call of a function of this file that returns nothing else. */
static bool returns_tensor(const struct code *c, const char *text, size_t n)
{
	size_t name = strcspn(text, "(");
	bool any = false;

	for (int i = 0; i < c->n && name < n && flow_closing(text, name) + 1 == n; i++) {
		const struct statement *s = &c->statement[i];
		const char *of = s->function >= 0 ? c->function[s->function].name : "";

		if (strlen(of) != name || strncmp(of, text, name) || !code_begins(s, "return"))
			continue;
		if (!gives_tensor(s->text + 7, strlen(s->text) > 7 ? strlen(s->text) - 7 : 0))
			return false;
		any = true;
	}
	return any;
}

/* Is it a tensor? In a sum it is: the sum is what autograd has recorded. */
static bool is_tensor(const struct code *c, const struct holder *h, const char *text, size_t n,
		      const struct code_facts *facts, struct pool *pool)
{
	const struct statement *s = &c->statement[h->statement];
	const char *copy = pool_copy(pool, text, n);

	if (h->form == HOLDER_SUM)
		return true;
	if (was_tensor(c, s->function, facts, pool_printf(pool, "%s[0]", h->name)))
		return true;
	if (!is_primary(text, n))
		return strpbrk(copy, "+-*/") != NULL;
	if (gives_tensor(text, n) || returns_tensor(c, text, n))
		return true;
	if (strspn(copy, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != n)
		return false;
	if (was_tensor(c, s->function, facts, copy))
		return true;
	for (int i = 0; i < c->n; i++) {
		const char *found = c->statement[i].function == s->function && str_starts(c->statement[i].text, copy)
					    ? c->statement[i].text + n
					    : NULL;

		if (found && !strncmp(found, " = ", 3) && gives_tensor(found + 3, strlen(found + 3)))
			return true;
	}
	return says(c, s->function, pool_printf(pool, "%s.backward(", copy)) ||
	       says(c, s->function, pool_printf(pool, "%s.item()", copy));
}

static bool detach_one(const struct code *c, const struct holder *h, struct change *to, const struct code_facts *facts,
		       struct pool *pool)
{
	const struct statement *s = &c->statement[h->statement];
	size_t n = h->to - h->from;
	const char *value = s->text + h->from;

	while (n && value[n - 1] == ' ')
		n--;
	if (h->form == HOLDER_CARRIED || is_collection(value, n) || !is_tensor(c, h, value, n, facts, pool))
		return false;
	*to = (struct change){h->statement, true,
			      pool_printf(pool, is_primary(value, n) ? "%.*s%.*s.detach()%s" : "%.*s(%.*s).detach()%s",
					  (int)h->from, s->raw, (int)n, s->raw + h->from, s->raw + h->from + n)};
	return true;
}

const char *edit_detach(const struct code *c, const struct holder *h, size_t n, const char *shown,
			const struct code_facts *facts, struct pool *pool)
{
	struct change change[HOLDERS_MAX];

	for (size_t i = 0; i < n; i++)
		if (!detach_one(c, &h[i], &change[i], facts, pool))
			return NULL;
	return n ? print_changes(c, change, n, shown, pool) : NULL;
}

/* --- backward in each iteration --- */

/* What is added: `loss` of total += loss, total = total + loss. Its length. */
static size_t part_of_sum(const struct code *c, const struct holder *sum, size_t *from)
{
	const struct statement *s = &c->statement[sum->statement];
	size_t op, equals = flow_assignment(s->text, &op), n = strlen(sum->name), end = strlen(s->text);

	*from = sum->from;
	if (op)
		return s->text[equals - 1] == '+' && op == 1 && is_primary(s->text + *from, end - *from) ? end - *from
													 : 0;
	if (strncmp(s->text + *from, sum->name, n) || strncmp(s->text + *from + n, " + ", 3))
		return 0;
	*from += n + 3;
	return is_primary(s->text + *from, end - *from) ? end - *from : 0;
}

/* Is this name, or one in this expression, bound in the loop or between it and backward? */
static bool is_bound_between(const struct code *c, int from, int to, const char *text, size_t n, struct pool *pool)
{
	for (size_t i = 0; i < n; i++) {
		size_t end = i, op;

		if (!is_name(text[i]) || isdigit((unsigned char)text[i]) ||
		    (i && (is_name(text[i - 1]) || text[i - 1] == '.')))
			continue;
		while (end < n && is_name(text[end]))
			end++;
		for (int k = from; k <= to; k++) {
			const char *t = c->statement[k].text;
			size_t equals = code_begins(&c->statement[k], "for")
						? (size_t)(strstr(t, " in ") ? strstr(t, " in ") - t : 0)
						: flow_assignment(t, &op);
			const char *found = equals == SIZE_MAX ? NULL : strstr(t, pool_copy(pool, text + i, end - i));

			if (found && (size_t)(found - t) < equals)
				return true;
		}
		i = end;
	}
	return false;
}

/* "(total / n)", "total / n", "total": what stands after the name, with its operator; NULL: it is something else. */
static const char *scale_of(const char *text, size_t n, const char *name, struct pool *pool)
{
	size_t len = strlen(name);

	if (n > 1 && text[0] == '(' && flow_closing(text, 0) == n - 1) {
		text++;
		n -= 2;
	}
	if (n < len || strncmp(text, name, len))
		return NULL;
	if (n == len)
		return "";
	if (strncmp(text + len, " / ", 3) || n == len + 3)
		return NULL;
	if (!is_primary(text + len + 3, n - len - 3) && strspn(text + len + 3, "0123456789.") != n - len - 3)
		return NULL;
	return pool_copy(pool, text + len, n - len);
}

/* X.backward(), scaler.scale(X).backward(), accelerator.backward(X): X, and what stands around it. */
struct call { size_t from, n; };
static bool backward_call(const char *text, struct call *x)
{
	size_t len = strlen(text);
	const char *dot = strstr(text, ".backward(");

	if (!dot)
		return false;
	if (!strcmp(dot, ".backward()")) {
		*x = (struct call){0, (size_t)(dot - text)};
		if (str_starts(text, "scaler.scale(") && flow_closing(text, 12) + 1 == x->n)
			*x = (struct call){13, x->n - 14};
		return true;
	}
	*x = (struct call){(size_t)(dot - text) + strlen(".backward("), 0};
	x->n = len - x->from - 1;
	return (str_starts(text, "accelerator.") || str_starts(text, "self.manual_") || str_starts(text, "fabric.")) &&
	       flow_closing(text, x->from - 1) == len - 1;
}

static bool pending_only_in(const struct code *c, int loop, const struct code_facts *facts)
{
	uint32_t first = UINT32_MAX, last = 0;

	for (int i = 0; i < c->n; i++)
		if (i != loop && code_within(c, i, loop)) {
			first = c->statement[i].line < first ? c->statement[i].line : first;
			last = c->statement[i].last;
		}
	for (size_t i = 0, end; i < facts->n_pending; i = end) {
		bool in = false;

		for (end = i; end < facts->n_pending && facts->pending[end].stack == facts->pending[i].stack; end++)
			in |= facts->pending[end].line >= first && facts->pending[end].line <= last;
		if (!in)
			return false;
	}
	return facts->all && facts->n_pending;
}

/* Could an iteration's graph reach into that of another one? */
static bool iterations_are_apart(const struct code *c, const struct flow *value, const struct holder *sum, int loop)
{
	for (size_t i = 0; i < value->n_holders; i++)
		if (value->holder[i].statement != sum->statement)
			return false;
	for (size_t i = 0; i < value->n; i++)
		if (value->key[i][0] == '.')
			return false;
	for (int i = loop; i < c->n; i++)
		if (i != loop && code_within(c, i, loop) && strstr(c->statement[i].text, "create_graph"))
			return false;
	return true;
}

/* `loss = total / n` where loss.backward() is said later. */
static bool through_name(const struct code *c, int backward, const char **text, size_t *n)
{
	int function = c->statement[backward].function;
	const char *found = NULL;

	for (int i = 0; i < backward; i++) {
		const struct statement *s = &c->statement[i];

		if (s->function == function && strlen(s->text) > *n + 3 && !strncmp(s->text, *text, *n) &&
		    !strncmp(s->text + *n, " = ", 3))
			found = s->text + *n + 3;
	}
	if (!found)
		return false;
	*text = found;
	*n = strlen(found);
	return true;
}

static const char *free_name(const struct code *c, int function)
{
	static const char *const names[] = {"loss", "part", "term", "one_loss"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!says(c, function, names[i]))
			return names[i];
	return NULL;
}

/* total = 0.0; total, n = 0, 0; total = torch.zeros(…): what was there before the loop has no graph of its own. */
static bool starts_at_zero(const struct code *c, const struct holder *sum)
{
	size_t n = strlen(sum->name), op;

	for (int i = 0; i < c->n; i++) {
		const struct statement *s = &c->statement[i];
		size_t equals = i == sum->statement ? SIZE_MAX : flow_assignment(s->text, &op);
		const char *value = equals == SIZE_MAX ? NULL : s->text + equals + 1 + strspn(s->text + equals + 1, " ");
		const char *found = value && s->function == c->statement[sum->statement].function
					    ? strstr(s->text, sum->name)
					    : NULL;

		if (!found || (size_t)(found - s->text) >= equals || is_name(found[n]) ||
		    (found > s->text && is_name(found[-1])))
			continue;
		if (op || (value[strspn(value, "0123456789., ")] && !str_starts(value, "torch.zeros(") &&
			   !str_starts(value, "torch.tensor(0")))
			return false;
	}
	return true;
}

/* if (step + 1) % 8 == 0: after it, the sum begins again, so that backward runs over each part of it once. */
static bool is_window(const struct code *c, const struct holder *sum, int condition)
{
	size_t n = strlen(sum->name);
	bool again = false;

	for (int i = condition + 1; i < c->n && code_within(c, i, condition); i++)
		again |= c->statement[i].around == condition && !strncmp(c->statement[i].text, sum->name, n) &&
			 !strncmp(c->statement[i].text + n, " = ", 3);
	return again && strchr(c->statement[condition].text, '%');
}

/* What clears gradients where the sum and its backward are: it must not do so between two backwards of one sum. `before`: it comes before
 * backward, after the loop. */
#define CLEARS_MAX 4
struct clears { int statement[CLEARS_MAX]; size_t n; bool before; const char *text; };

static bool find_clears(const struct code *c, struct clears *l, int loop, int backward, struct pool *pool)
{
	bool in_loop = code_within(c, backward, loop);
	int block = c->statement[backward].around;

	*l = (struct clears){.text = ""};
	for (int i = loop + 1; i < c->n; i++) {
		const struct statement *s = &c->statement[i];
		bool clears = strstr(s->text, "zero_grad(") || strstr(s->text, ".grad = None");
		bool inside = code_within(c, i, loop);

		if (!clears && !(inside && strstr(s->text, ".step(")))
			continue;
		if (inside && (!in_loop || s->around != block || i < backward))
			return false;
		if (!clears || (!inside && (in_loop || i > backward)))
			continue;
		if (s->around != block || !s->alone || l->n == CLEARS_MAX || strchr(s->text, '=') ||
		    is_bound_between(c, loop, i, s->text, strcspn(s->text, "."), pool))
			return false;
		l->before |= i < backward;
		l->text = pool_printf(pool, "%s%s%s", l->text, str_if(l->n, "\n"), s->raw);
		l->statement[l->n++] = i;
	}
	return true;
}

const char *edit_spread(const struct code *c, const struct flow *value, const struct holder *sum, int backward,
			const char *shown, const struct code_facts *facts, struct pool *pool)
{
	const struct statement *add = &c->statement[sum->statement], *run = &c->statement[backward];
	int loop = code_loop(c, sum->statement), in_loop = code_within(c, backward, loop);
	struct clears clears;
	struct change change[CHANGES_MAX];
	size_t n = 0, from, length = part_of_sum(c, sum, &from), expr_n;
	const char *expr, *scale, *part, *call;
	struct call x;

	if (sum->form != HOLDER_SUM || !length || loop < 0 || add->around != loop || !add->alone ||
	    run->function != add->function || !run->alone || strchr(sum->name, '.') ||
	    flow_is_parameter(c, add->function, sum->name) || !backward_call(run->text, &x))
		return NULL;
	expr = run->text + x.from;
	expr_n = x.n;
	scale = scale_of(expr, expr_n, sum->name, pool);
	if (!scale && is_primary(expr, expr_n) && through_name(c, backward, &expr, &expr_n))
		scale = scale_of(expr, expr_n, sum->name, pool);
	if (!scale ||
	    (in_loop ? c->statement[run->around].around != loop || !code_begins(&c->statement[run->around], "if")
		     : run->around != c->statement[loop].around) ||
	    is_bound_between(c, loop, backward, scale, strlen(scale), pool) ||
	    !iterations_are_apart(c, value, sum, loop) || !pending_only_in(c, loop, facts))
		return NULL;
	if (!starts_at_zero(c, sum) || value->backward >= 0 || !find_clears(c, &clears, loop, backward, pool) ||
	    (in_loop && (clears.before || !clears.n || !is_window(c, sum, run->around))))
		return NULL;
	part = pool_copy(pool, add->raw + from, length);
	call = scale[0] ? pool_printf(pool, "(%s%s)", part, scale) : part;
	call = pool_printf(pool, "%.*s%s%s", (int)x.from, run->raw,
			   x.from && scale[0] ? pool_printf(pool, "%s%s", part, scale) : call, run->raw + x.from + x.n);
	if (strchr(part, '(')) { /* called once */
		const char *name = free_name(c, add->function);

		if (!name)
			return NULL;
		call = pool_printf(pool, "%.*s%s%s", (int)x.from, run->raw,
				   scale[0] ? pool_printf(pool, x.from ? "%s%s" : "(%s%s)", name, scale) : name,
				   run->raw + x.from + x.n);
		change[n++] = (struct change){sum->statement, true,
			pool_printf(pool, "%s = %s\n%s\n%.*s%s.detach()", name, part, call, (int)from, add->raw, name)};
	} else {
		change[n++] = (struct change){sum->statement, true, pool_printf(pool, "%s\n%.*s%s.detach()", call, (int)from, add->raw, part)};
	}
	change[n++] = (struct change){backward, true, NULL};
	for (size_t i = 0; i < clears.n && !in_loop; i++)
		change[n++] = (struct change){clears.statement[i], true, NULL};
	/* the next window starts without what an incomplete last one left */
	if (clears.n && (!in_loop || c->statement[loop].around >= 0 || add->function >= 0))
		change[n++] = (struct change){loop, false, clears.text};
	return print_changes(c, change, n, shown, pool);
}

const char *edit_no_grad(const struct code *c, int function, const char *shown, struct pool *pool)
{
	bool imported = false;

	for (int i = 0; i < c->n; i++)
		imported |= !strcmp(c->statement[i].text, "import torch");
	return imported ? print_changes(c, &(struct change){c->function[function].def, false, "@torch.no_grad()"}, 1,
					shown, pool)
			: NULL;
}
