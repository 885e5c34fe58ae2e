/* SPDX-License-Identifier: Apache-2.0
 * Executes the failing threads again with recalled memory (see recall_values.h).
 *
 * The kernel may have been launched several times with the same parameters, and memory was different each time. The first failure ends the
 * context: so it is the oldest launch whose threads fail with what was there at the time. Those whose threads do not are innocent.
 */
#include "find/fault/recall_values.h"

#include "find/fault/culprit.h"
#include "find/fault/fault.h"
#include "read/recording/trace.h"

static size_t listed(const struct fault_launch *m)
{
	return m->n_all < FAULT_LAUNCHES_MAX ? m->n_all : FAULT_LAUNCHES_MAX;
}

static void as_of(struct recall *r, const struct fault_launch *m, size_t i)
{
	recall_launch(r, m->all[i], m->ran ? m->ran : m->all[i]->ticks);
}

static bool is_innocent(const struct values *v)
{
	return v->n_threads && v->n_left == v->n_threads;
}

/* `doubt`: what an older launch did is not known. */
static bool try_launches(struct values *v, struct recall *r, const struct culprit *k, const struct fault_launch *m,
			 bool *doubt)
{
	*doubt = m->n_all > FAULT_LAUNCHES_MAX;
	for (size_t i = listed(m); i > 0; i--) {
		as_of(r, m, i - 1);
		culprit_values_with(k, v, recall_memory, r);
		if (v->answer == VALUES_FOUND)
			return true;
		*doubt = *doubt || !is_innocent(v);
	}
	return false;
}

/* Which of the launches it was is not known: only what is so for all of them is said. */
static void origin_of_all(struct recalled *from, struct recall *r, const struct checked *v, const struct fault_launch *m)
{
	struct recalled one;

	for (size_t i = 0; i < listed(m); i++) {
		as_of(r, m, i);
		recall_origin(r, v->at, v->n, &one);
		if (i == 0)
			*from = one;
		from->made = from->made == one.made ? one.made : 0;
		from->copied = from->copied == one.copied ? one.copied : 0;
	}
}

static bool find(struct culprit *to, struct recalled *from, struct recall *r, const struct culprit *k,
		 const struct fault_launch *m)
{
	bool found = k->values.answer == VALUES_FOUND, doubt = false;
	const struct checked *first = &k->values.value[0];

	if (!found && try_launches(&to->values, r, k, m, &doubt)) {
		first = &to->values.value[0];
		recall_origin(r, first->at, first->n, from);
		from->sure = from->sure && !doubt;
		return true;
	}
	if (k->values.n_kept)
		origin_of_all(from, r, first, m);
	from->contents = false;
	return false;
}

bool recall_values(struct culprit *to, struct recalled *from, struct trace *t, const struct culprit *k,
		   const struct fault_launch *m)
{
	struct recall *r;
	bool found;

	*from = (struct recalled){.contents = false};
	if (k->fault != FAULT_ASSERT || !k->values_at || !m->n_all)
		return false;
	*to = *k;
	r = recall_open(t);
	found = find(to, from, r, k, m);
	recall_close(r);
	return found;
}
