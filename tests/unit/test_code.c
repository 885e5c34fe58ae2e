/* SPDX-License-Identifier: Apache-2.0
 * Where a value goes in Python source, and what may be changed there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/pool.h"
#include "find/code/edits.h"

/* "held use / edit" of what a line makes; the line says `# seed`. */
static void goes(const char *text, const char *expected)
{
	static const char *const words[] = {[USE_UNKNOWN] = "unknown", [USE_KEPT] = "kept", [USE_BACKWARD] = "backward"};
	struct pool pool = {0};
	struct code c;
	struct flow value, held;
	uint32_t line = 1;
	const char *seed = strstr(text, "# seed"), *edit;
	enum use use;
	char all[600];

	for (const char *p = text; p < seed; p++)
		line += *p == '\n';
	assert_true(code_read(&c, "train.py", text, strlen(text), &pool));
	flow_from(&value, &c, code_at(&c, line), &pool);
	if (!value.n_holders) {
		assert_string_equal(expected, "nothing");
		pool_release(&pool);
		return;
	}
	flow_of(&held, &c, value.holder[0].key, &pool);
	use = value.unknown ? USE_UNKNOWN : flow_use(&held);
	const struct seen_frame frame = {8, line};
	const struct code_facts facts = {.pending = &frame, .n_pending = 1, .all = true};

	edit = use == USE_BACKWARD ? edit_spread(&c, &value, &value.holder[0], held.backward, "t", &facts, &pool)
	       : use == USE_KEPT   ? edit_detach(&c, value.holder, value.n_holders, "t", &facts, &pool)
				   : NULL;
	snprintf(all, sizeof(all), "%s %s%s%s", value.holder[0].name, words[use], edit ? "\n" : "", edit ? edit : "");
	assert_string_equal(all, expected);
	pool_release(&pool);
}

static void code__a_sum_that_is_only_printed_is_detached(void **state)
{
	(void)state;
	goes("def run():\n"
	     "    total = 0\n"
	     "    for x in data:\n"
	     "        loss = f(x).mean()  # seed\n"
	     "        loss.backward()\n"
	     "        total += loss\n"
	     "    print('loss', total.item())\n",
	     "total kept\nt:6\n- total += loss\n+ total += loss.detach()");
	goes("history = []\n"
	     "def step(x):\n"
	     "    loss = f(x).mean()  # seed\n"
	     "    loss.backward(retain_graph=True)\n"
	     "    history.append(loss)\n",
	     "history kept\nt:5\n- history.append(loss)\n+ history.append(loss.detach())");
}

static void code__what_a_function_returns_is_kept_by_its_caller(void **state)
{
	(void)state;
	goes("def loss_of(x, y):\n"
	     "    return nn.functional.cross_entropy(model(x).mean(1), y)\n"
	     "for step in range(10):\n"
	     "    optimizer.zero_grad()\n"
	     "    loss_of(*batch()).backward()\n"
	     "    history.append(loss_of(*batch()))  # seed\n",
	     "history kept\nt:6\n- history.append(loss_of(*batch()))\n+ history.append(loss_of(*batch()).detach())");
}

static void code__what_backward_needs_is_never_detached(void **state)
{
	(void)state;
	goes("log_probs = []\n"
	     "for t in range(9):\n"
	     "    log_probs.append(policy(state).log_prob(a))  # seed\n"
	     "loss = -(torch.stack(log_probs) * returns).sum()\n"
	     "loss.backward()\n",
	     "log_probs backward");
	goes("class Trainer:\n"
	     "    def see(self, x):\n"
	     "        self.losses.append(self.model(x).mean())  # seed\n"
	     "    def learn(self):\n"
	     "        loss = sum(self.losses)\n"
	     "        self.scaler.scale(loss).backward()\n",
	     "self.losses backward");
	goes("from torch.autograd import grad\n"
	     "outs = []\n"
	     "for x in data:\n"
	     "    outs.append(model(x).sum())  # seed\n"
	     "gradients = grad(sum(outs), weights)\n",
	     "outs backward");
}

static void code__a_sum_for_backward_is_spread(void **state)
{
	(void)state;
	goes("total = 0.0\n"
	     "for i in range(N):\n"
	     "    loss = f(i)  # seed\n"
	     "    total = total + loss\n"
	     "(total / N).backward()\n"
	     "optimizer.step()\n",
	     "total backward\nt:4\n- total = total + loss\n+ (loss / N).backward()\n+ total = total + loss.detach()\nt:5\n- (total / N).backward()");
	goes("total = 0.0\n"
	     "for i in range(N):\n"
	     "    loss = f(i)  # seed\n"
	     "    total += loss\n"
	     "optimizer.zero_grad()\n"
	     "scaler.scale(total / N).backward()\n",
	     "total backward\nt:2\n+ optimizer.zero_grad()\n  for i in range(N):\nt:4\n- total += loss\n+ scaler.scale(loss / N).backward()\n"
	     "+ total += loss.detach()\nt:5\n- optimizer.zero_grad()\nt:6\n- scaler.scale(total / N).backward()");
}

/* Each of these would train something else. */
static void code__a_sum_is_not_spread_where_that_changes_the_gradients(void **state)
{
	static const char *const sums[] = {
		"total = 0.0\nfor i in r:\n    optimizer.zero_grad()\n    loss = f(i)  # seed\n    total += loss\ntotal.backward()\n",
		"total = penalty()\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\ntotal.backward()\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\n(total ** 2).backward()\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\n    n = n + 1\n(total / n).backward()\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\nif good:\n    total.backward()\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\n    if i > 3:\n        total.backward()\n        opt.zero_grad()\n        total = 0.0\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\n    if i % 3 == 0:\n        opt.zero_grad()\n        total.backward()\n        total = 0.0\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    loss.backward(retain_graph=True)\n    total += loss\ntotal.backward()\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    if loss > 1:\n        total += loss\ntotal.backward()\n",
		"total = 0.0\nfor i in r:\n    loss = f(i)  # seed\n    total += loss\ntotal.backward(retain_graph=True)\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		goes(sums[i], "total backward");
}

static void code__the_unknown_stays_unknown(void **state)
{
	(void)state;
	goes("def add(x, out):\n    out.append(model(x).mean())  # seed\n",
	     "out kept\nt:2\n- out.append(model(x).mean())\n+ out.append(model(x).mean().detach())");
	goes("outs = []\nfor x in data:\n    outs.append(model(x).mean())  # seed\nlearner.learn(outs)\n",
	     "outs unknown");
	goes("def collect():\n    outs = []\n    for x in data:\n        outs.append(model(x).mean())  # seed\n    return outs\n", "outs unknown");
	goes("outs = []\nfor x in data:\n    outs.append({'a': model(x)})  # seed\n", "outs kept");
	goes("outs = []\nfor x in data:\n    outs.append(model(x))  # seed\n", "outs kept");
	goes("for x in data:\n    y = model(x)  # seed\n    print(y)\n", "nothing");
	goes("losses = []\nfor x in data:\n    losses.append(f(x).item())  # seed\n", "nothing");
}

static void code__strings_and_brackets_may_be_anything(void **state)
{
	struct pool pool = {0};
	struct code c;
	static const char text[] =
		"a = '''x\n# no comment\ny''' ; b = (1,\n  2)  # one\nif a: b = r'\\'\n"
		"def f(x,\n      y): return x\n\tc = {'(': ')'}\n";

	(void)state;
	assert_true(code_read(&c, "t", text, strlen(text), &pool));
	assert_int_equal(c.n, 5);
	assert_string_equal(c.statement[1].text, "b = (1,   2)");
	assert_int_equal(code_at(&c, 2), 0);
	assert_int_equal(c.n_functions, 1);
	for (size_t n = 0; n < sizeof(text); n++) {
		struct flow f;

		if (code_read(&c, "t", text, n, &pool) && c.n)
			flow_from(&f, &c, c.n - 1, &pool);
	}
	pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code__a_sum_that_is_only_printed_is_detached),
		cmocka_unit_test(code__what_a_function_returns_is_kept_by_its_caller),
		cmocka_unit_test(code__what_backward_needs_is_never_detached),
		cmocka_unit_test(code__a_sum_for_backward_is_spread),
		cmocka_unit_test(code__a_sum_is_not_spread_where_that_changes_the_gradients),
		cmocka_unit_test(code__the_unknown_stays_unknown),
		cmocka_unit_test(code__strings_and_brackets_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
