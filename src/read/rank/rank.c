/* SPDX-License-Identifier: Apache-2.0
 * A rank as JSON (see rank.h).
 */
#include "read/rank/rank.h"

#include <signal.h>
#include <string.h>

#include "base/json.h"
#include "base/private.h"

#define RANK_MAX	(1u << 24)	/* more ranks than any machine has: beyond, the file is damaged */
#define READ_COMMS	64
#define READ_MARKS	256
#define READ_CALLS	4096		/* PyTorch's flight recorder keeps 2000 */

const char *const job_states[] = {"running", "ended", "left", NULL};

static const struct field mark_fields[] = {
	F_NUMBER(struct job_mark, seq, 0), F_NUMBER(struct job_mark, in_ns, 0), F_NUMBER(struct job_mark, out_ns, 0),
	F_IF_KNOWN(HEX, "digest", struct job_mark, digest, 0), F_END,
};
static const struct fields marks = {mark_fields, sizeof(struct job_mark), NULL};

static const struct field call_fields[] = {
	F_NUMBER(struct job_call, seq, 0), F_LINE(struct job_call, op), F_LINE(struct job_call, type),
	F_NUMBER(struct job_call, count, 0), F_LINE(struct job_call, line), F_END,
};
static const struct fields calls = {call_fields, sizeof(struct job_call), NULL};

static const struct field comm_fields[] = {
	F_LINE(struct job_comm, id), F_LINE(struct job_comm, parent), F_NUMBER(struct job_comm, color, -1),
	F_NUMBER(struct job_comm, order, -1), F_NUMBER(struct job_comm, rank, JOB_UNKNOWN),
	F_NUMBER(struct job_comm, size, 0), F_NUMBER(struct job_comm, called, 0), F_NUMBER(struct job_comm, done, 0),
	F_NUMBER(struct job_comm, called_ns, 0),
	F_NUMBER(struct job_comm, captured, 0), F_BOOL(struct job_comm, aborted),
	F_LIST(struct job_comm, "marks", mark, n_marks, marks), F_LIST(struct job_comm, "calls", call, n_calls, calls),
	F_END,
};
static const struct fields comms = {comm_fields, sizeof(struct job_comm), NULL};

static const struct field rank_fields[] = {
	F_IF_KNOWN(NUMBER, "cuwhy_job", struct job_rank, format, 0),
	F_LINE(struct job_rank, job),
	F_NUMBER(struct job_rank, requeue, 0),
	F_ALWAYS(NUMBER, "attempt", struct job_rank, attempt),
	F_NUMBER(struct job_rank, rank, JOB_UNKNOWN),
	F_NUMBER(struct job_rank, world, JOB_UNKNOWN),
	F_NUMBER(struct job_rank, local, JOB_UNKNOWN),
	F_BOOL(struct job_rank, launcher),
	F_LINE(struct job_rank, node),
	F_LINE(struct job_rank, boot),
	F_LINE(struct job_rank, command),
	F_NUMBER(struct job_rank, pid, 0),
	F_NUMBER(struct job_rank, ppid, 0),
	F_NUMBER(struct job_rank, started_ns, 0),
	F_NUMBER(struct job_rank, written_ns, 0),
	F_NUMBER(struct job_rank, real_ns, 0),
	F_NUMBER(struct job_rank, ended_ns, 0),
	F_NUMBER(struct job_rank, alive_ns, 0),
	F_WORD(struct job_rank, state, job_states, -1),
	F_BOOL(struct job_rank, exit_known),
	F_NUMBER(struct job_rank, exit, -1),
	F_NUMBER(struct job_rank, signal, 0),
	F_LINE(struct job_rank, cause),
	F_LINE(struct job_rank, sure),
	F_LINE(struct job_rank, title),
	F_LINE(struct job_rank, where),
	F_LINE(struct job_rank, because),
	F_BOOL(struct job_rank, own),
	F_NUMBER(struct job_rank, failed_ns, 0),
	F_LINE(struct job_rank, exception),
	F_LINE(struct job_rank, message),
	F_LINE(struct job_rank, of_peers),
	F_NUMBER(struct job_rank, victim_of, 0),
	F_LINE(struct job_rank, doing),
	F_LINE(struct job_rank, verdict),
	F_LIST(struct job_rank, "comms", comm, n_comms, comms),
	F_END,
};
static const struct fields ranks = {rank_fields, sizeof(struct job_rank), NULL};

void job_rank_init(struct job_rank *r)
{
	fields_init(&ranks, r);
	r->format = JOB_FORMAT;
	r->state = JOB_RUNNING;
	r->path = NULL;
	r->node_known = false;
}

json_t *job_rank_json(const struct job_rank *r)
{
	json_t *o = fields_write(&ranks, r);

	private_hide_in(o, false);
	return o;
}

static bool ascending(const struct job_comm *c)
{
	for (size_t i = 1; i < c->n_marks; i++)
		if (c->mark[i].seq <= c->mark[i - 1].seq)
			return false;
	for (size_t i = 1; i < c->n_calls; i++)
		if (c->call[i].seq <= c->call[i - 1].seq)
			return false;
	return true;
}

/* A file that contradicts itself was damaged or made up: nothing in it is believed. */
static bool comm_is_sane(const struct job_comm *c)
{
	if (!c->id || !*c->id || c->n_marks > READ_MARKS || c->n_calls > READ_CALLS || c->done > c->called ||
	    c->called_ns > INT64_MAX || !ascending(c))
		return false;
	if (c->n_calls && c->call[c->n_calls - 1].seq > c->called)
		return false;
	for (size_t i = 0; i < c->n_marks; i++)
		if (c->mark[i].in_ns > c->mark[i].out_ns || c->mark[i].seq > c->called || c->mark[i].out_ns > INT64_MAX)
			return false;
	return true;
}

bool job_rank_is_snapshot(const struct job_rank *r)
{
	return r->state == JOB_RUNNING && r->node_known;
}

/* A shell whose program was ended by a signal says so with its own status. Other numbers above 128 are a program's own. */
static int signal_of_status(int status)
{
	switch (status - 128) {
	case SIGHUP:
	case SIGINT:
	case SIGABRT:
	case SIGKILL:
	case SIGSEGV:
	case SIGTERM:
		return status - 128;
	default:
		return 0;
	}
}

bool job_rank_read(struct job_rank *r, const json_t *o, struct pool *pool)
{
	size_t kept = 0;

	job_rank_init(r);
	if (!json_is_object(o) || !json_is_integer(json_object_get(o, "cuwhy_job")))
		return false;
	r->format = 0;
	fields_read_fitting(&ranks, o, r, pool);
	if (r->format != JOB_FORMAT || (int)r->state < 0)
		return false;
	if (r->rank != JOB_UNKNOWN && r->rank >= RANK_MAX)
		r->rank = JOB_UNKNOWN;
	if (r->world != JOB_UNKNOWN && (!r->world || r->world > RANK_MAX))
		r->world = JOB_UNKNOWN;
	if (r->signal < 0 || r->signal > 127)
		r->signal = 0;
	if (!r->signal && !r->exception && !r->cause && r->exit_known)
		r->signal = signal_of_status(r->exit);
	for (size_t i = 0; i < r->n_comms && i < READ_COMMS; i++)
		if (comm_is_sane(&r->comm[i]))
			r->comm[kept++] = r->comm[i];
	r->n_comms = kept;
	r->node_known = r->node != NULL;
	if (!r->node)
		r->node = "?";
	if (!r->boot)
		r->boot = r->node;
	return true;
}
