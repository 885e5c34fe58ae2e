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
#include "find/code/layers.h"

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

static bool runs_layers(const char *text)
{
	struct pool pool = {0};
	struct code c;
	bool found;

	assert_true(code_read(&c, "model.py", text, strlen(text), &pool));
	found = code_runs_layers(&c, code_at(&c, 1), &pool);
	pool_release(&pool);
	return found;
}

/* Each turn calls another layer with what the turn before has made. */
static void code__a_loop_over_layers_is_one_pass(void **state)
{
	static const char *const loops[] = {
		"for layer in self.layers:\n    x = layer(x)\n",
		"for layer in self.layers: x = layer(x)\n",
		"for i, (fc, norm) in enumerate(zip(self.fc, self.norm)):\n    y = norm(x)\n    x = x + fc(y)\n",
		"for blk, c in zip(self.blocks, caches):\n    x, new = blk(x, mask=mask, cache=c)\n    out.append(new)\n",
		"for i in range(len(self.fc)):\n    h = torch.relu(self.fc[i](h))\n",
		"for i in range(n):\n    h = getattr(self, f'fc{i}')(h)\n",
		"for i in range(n):\n    layer = self.layers[i]\n    h = layer(h)\n",
		"for block in blocks:\n    x = checkpoint(block, x, use_reentrant=False)\n",
		"for layer in model.layers:\n    h = h + layer.attend(layer.norm(h), pos)\n",
		"for stage in stages:\n    for block in stage:\n        x = block(x)\n",
		"for attn, ff in self.layers:\n    if attn is not None:\n        x = attn(x) + x\n    x = ff(x) + x\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		assert_true(runs_layers(loops[i]));
}

/* The same model with other data, or others with the same: a turn is a pass of its own. */
static void code__other_loops_are_not_over_layers(void **state)
{
	static const char *const loops[] = {
		"for x in loader:\n    losses.append(model(x))\n",
		"for t in range(horizon):\n    h, r = model.step(h, policy(h))\n    total = total + r\n",
		"for t in steps:\n    x = model(x, t)\n",
		"for net in ensemble:\n    x = augment(batch)\n    outs.append(net(x))\n",
		"for net in nets:\n    loss = loss + net(x).mean()\n",
		"for batch in loader:\n    state = update(batch, state)\n",
		"for epoch in range(3):\n    for x in loader:\n        out = model(x)\n",
		"for name in names:\n    x = model(x, name=name)\n",
		"while i < n:\n    x = layers[i](x)\n    i += 1\n",
		"for trial in trials:\n    model = trial(width)\n    scores.append(fit(model))\n",
		"for x in data:\n    pass\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(loops) / sizeof(loops[0]); i++)
		assert_false(runs_layers(loops[i]));
}

static enum use used(const char *text, bool caller_known)
{
	const char *seed = strstr(text, "# seed");
	struct pool pool = {0};
	struct code c;
	struct flow f;
	uint32_t line = 1;

	for (const char *p = text; p < seed; p++)
		line += *p == '\n';
	assert_true(code_read(&c, "train.py", text, strlen(text), &pool));
	if (caller_known)
		flow_in_function(&f, &c, code_at(&c, line), &pool);
	else
		flow_of_statement(&f, &c, code_at(&c, line), &pool);
	pool_release(&pool);
	return flow_use(&f);
}

/* Others may run backward over what they get from the same function. */
static void code__a_function_whose_caller_is_known_returns_to_no_other(void **state)
{
	static const char text[] = "def step(h):\n"
				   "    return cell(h)  # seed\n"
				   "def learn(x):\n"
				   "    loss = step(x).mean()\n"
				   "    loss.backward()\n"
				   "def imagine(h):\n"
				   "    h = step(h)\n"
				   "    return h.sum().item()\n",
			  within[] = "def step(h):\n"
				     "    y = cell(h)  # seed\n"
				     "    y.mean().backward()\n"
				     "    return y\n";

	(void)state;
	assert_int_equal(used(text, false), USE_BACKWARD);
	assert_int_equal(used(text, true), USE_KEPT);
	assert_int_equal(used(within, true), USE_BACKWARD);
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

		if (!code_read(&c, "t", text, n, &pool) || !c.n)
			continue;
		flow_from(&f, &c, c.n - 1, &pool);
		for (int i = 0; i < c.n; i++)
			code_runs_layers(&c, i, &pool);
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
		cmocka_unit_test(code__a_loop_over_layers_is_one_pass),
		cmocka_unit_test(code__other_loops_are_not_over_layers),
		cmocka_unit_test(code__a_function_whose_caller_is_known_returns_to_no_other),
		cmocka_unit_test(code__strings_and_brackets_may_be_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
