/* SPDX-License-Identifier: Apache-2.0
 * Where a value goes in a program's own source: from name to name, into lists and sums, out of functions, to backward().
 *
 * Names stand for values regardless of when, and whatever is not understood makes the answer unknown: what follows is code that a
 * user pastes into a training. A value ends where it is detached: item(), detach(), float().
 */
#ifndef CUWHY_FLOW_H
#define CUWHY_FLOW_H

#include "find/code/statements.h"

/* A place where values pile up: total += loss, losses.append(loss), answers[i] = out, hidden = f(hidden). */
enum holder_form { HOLDER_SUM, HOLDER_APPEND, HOLDER_ITEM, HOLDER_CARRIED };
struct holder {
	enum holder_form form;
	int statement;
	const char *name;		/* as the source spells it: total, self.losses */
	const char *key;
	size_t from, to;		/* what goes in: this part of the statement */
};

#define HOLDERS_MAX 8
struct flow {
	const struct code *code;
	struct pool *pool;
	const char **key;		/* names that have the value */
	size_t n, cap;
	int seed;			/* a statement whose value is followed, -1: none */
	int apart;			/* a function whose calls are not followed: its caller is known; -1: none */
	bool collect;			/* into `holder`, instead of following it further */
	struct holder holder[HOLDERS_MAX];
	size_t n_holders;
	int backward;			/* a statement that runs backward over it, -1: none is known */
	bool unknown;			/* it goes where this cannot follow */
	bool vague;			/* of several values that were unpacked, all count */
};

/* KEPT: backward never runs over it. */
enum use { USE_UNKNOWN, USE_KEPT, USE_BACKWARD };
enum use flow_use(const struct flow *f);

/* The value of a statement: what holds it. What a function returns is not followed here: its caller is a statement of its own. */
void flow_from(struct flow *f, const struct code *c, int seed, struct pool *pool);

/* Where it goes: the value of a statement, what is in a holder, what a function returns and stores. */
void flow_of_statement(struct flow *f, const struct code *c, int seed, struct pool *pool);

/* The same, but no further than to what the function around it returns: which of its calls this was is known. */
void flow_in_function(struct flow *f, const struct code *c, int seed, struct pool *pool);
void flow_of(struct flow *f, const struct code *c, const char *key, struct pool *pool);
void flow_of_function(struct flow *f, const struct code *c, int function, struct pool *pool);

/* The key of what calls of a function give; that of a name in a statement. */
const char *flow_result(const struct code *c, int function, struct pool *pool);
const char *flow_key(const struct code *c, int function, const char *name, size_t n, struct pool *pool);

bool flow_has(const struct flow *f, const char *key);
bool flow_is_parameter(const struct code *c, int function, const char *name);

/* For what makes edits: does this part of a statement mention a value that is followed, not detached? */
bool flow_mentions(const struct flow *f, int statement, size_t from, size_t to);

/* The end of a bracket that opens at `at`: the index of what closes it, or the text's length. */
size_t flow_closing(const char *text, size_t at);

/* The `=` of an assignment, with the operator before it (`op`: its length, 0: plain); SIZE_MAX when there is none. */
size_t flow_assignment(const char *text, size_t *op);

#endif
