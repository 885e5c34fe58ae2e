/* SPDX-License-Identifier: Apache-2.0
 * Judges a process: which incident ended it, and which ones it handled.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "case/message.h"
#include "compat/cuda_errors.h"
#include "formats/xid.h"
#include "find/input.h"
#include "read/recording/damage.h"
#include "find/failure/ending.h"
#include "find/failure/incident.h"
#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "find/failure/printed.h"
#include "read/recording/trace.h"
#include "find/fault/fault.h"
#include "verdict/process.h"
#include "verdict/verdict.h"
#include "verdict/words.h"
#include "probe/ram.h"
#include "probe/usage.h"

#define NOTES_MAX 16

static struct verdict *verdict_of_incident(const struct incident *i, struct trace *t, const struct culprit *k,
					   const struct inputs_beside *beside)
{
	struct verdict *v = verdict_new("unknown");
	struct casefile *c = &v->c;
	uint32_t no_dump = trace_header(t)->dump_reason;
	struct scene s;

	fact_set_flag(c, FACT_dump_missing, !k && i->sticky && trace_header(t)->dump_path[0]);
	incident_scene(i, t, &s);
	if (k)
		join_dump(c, i, t, k, &s);
	else if (i->sticky)
		recording_observe_suspects(c, i, t, &s);
	recording_observe(c, i, t, &s);
	words_add(c, incident_printed(i, t, c->pool));
	if (beside)
		inputs_observe(c, beside);
	verdict_judge(v);
	if (!k && i->sticky && no_dump && no_dump != CW_REASON_ASKED)
		verdict_evidence(v, "recorder",
				 pool_printf(&v->pool, "there is no GPU core dump: %s", reason_text(no_dump)));
	if (i->doubt)
		verdict_doubt_end(v, pool_strdup(&v->pool, i->doubt));
	v->time_ns = i->lead->mono_ns;
	v->own = !i->python_only && !i->check_only;
	return v;
}

static void fill_end(struct verdict *v, struct trace *t, const struct process_end *end)
{
	const struct cw_header *h = t ? trace_header(t) : NULL;

	v->pid = end->pid ? end->pid : h ? h->pid : 0;
	v->ppid = end->ppid ? end->ppid : h ? h->ppid : 0;
	v->rank = h ? h->rank : CW_UNKNOWN;
	v->began_ns = h ? h->clock0.mono_ns : 0;
	v->used_ns = t ? ending_last_use(t) : 0;
	v->ended_ns = h && h->exit_known ? h->exit_mono_ns : end->ended_ns;
	v->alive_ns = h && h->exit_known ? h->exit_mono_ns : end->alive_ns;
	v->exit_known = end->status_known;
	v->exit = end->status_known ? end->exit : -1;
	v->signal = end->status_known ? end->signal : 0;
	if (!end->status_known && h && h->exit_known) {
		v->exit_known = true;
		v->exit = (int)(h->exit_status & 0xff);
	}
	if (end->command)
		v->command = pool_strdup(&v->pool, end->command);
	else if (h && h->cmdline[0])
		v->command = pool_strdup(&v->pool, h->cmdline);
}

/* The uncaught exception, its causes and what it carries; copied, because the verdict outlives the recording. */
static void fill_end_exception(struct verdict *v, const struct incidents *all, const struct trace *t)
{
	if (!all->n_python)
		return;
	v->end_type = pool_strdup(&v->pool, all->python[0]->what);
	v->end_text = pool_strdup(&v->pool, trace_failure_text(t, all->python[0]));
	v->end_words = v->end_text;
	for (size_t d = 1; d < all->n_python; d++)
		v->end_words = pool_printf(&v->pool, "%s\n%s", v->end_words, trace_failure_text(t, all->python[d]));
}

/* The dump was written when the kernel faulted, maybe long before the program noticed. */
static void fill_time(struct verdict *v, const struct trace *t, const struct process_end *end)
{
	const struct cw_header *h = trace_header(t);
	uint64_t since = end->fault_real_ns - h->start_realtime_ns;

	if (end->fault_real_ns > h->start_realtime_ns && h->clock0.mono_ns + since < v->time_ns)
		v->time_ns = h->clock0.mono_ns + since;
}

/* An exception alone is a CUDA failure only if a rule knows its message or it names CUDA. */
static bool is_ours(const struct incident *i, const struct verdict *v)
{
	if (!i->python_only && !i->check_only)
		return true;
	return v->n_candidates > 0 || message_is_cuda(fact_text(&v->c, FACT_error_text));
}

/* An error from PyTorch that the program survived is not a CUDA failure, unless its message says CUDA; nor is a machine
 * without a GPU, if the program runs without one. */
static bool is_note(const struct incident *i, const struct trace *t)
{
	if (incident_no_gpu(i, t))
		return false;
	if (i->check_only)
		return message_is_cuda(i->lead->text);
	return !i->benign && !i->python_only;
}

#define SAMPLE_NS 2000000000u	/* samples are at most a second apart, and take a moment */

static bool is_of(uint64_t sampled, const struct incident *i, const struct trace *t)
{
	uint64_t last = trace_header(t)->clock0.mono_ns + trace_ns(t, i->lead->last_ticks), first = i->lead->mono_ns;

	return sampled >= first && sampled <= (last > first ? last : first) + SAMPLE_NS;
}

/* Only the newest sample is kept: it applies to an earlier failure only if it was taken at that time. */
static void add_samples(struct incident *i, const struct trace *t, const struct process_end *end)
{
	if (end->usage && is_of(end->usage->mono_ns, i, t))
		i->usage = end->usage;
	if (end->ram && is_of(end->ram->mono_ns, i, t))
		i->ram = end->ram;
}

/* An exception that ends a thread does not end the process, and Python does not report it: that the program handled the failure
 * shows only in what it does afterwards. */
static bool is_last(const struct incident *i, struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_launch *const *launch;
	size_t n = trace_launches(t, &launch);

	return h->py_version && i->lead->tid != h->pid && (!n || launch[n - 1]->ticks <= i->lead->last_ticks);
}

/* Has the process' dump to do with it? What it returned is not known where nothing but the exception says that a kernel failed. */
static const struct culprit *dump_of(const struct incident *i, const struct trace *t, const struct process_end *end)
{
	return i->sticky || (i->python_only && cuda_error_sticky(message_code(trace_failure_text(t, i->lead))))
		       ? end->fault
		       : NULL;
}

static void add_notes(struct verdict *main, const struct incidents *all, const struct incident *fatal,
		      struct trace *t, const struct process_end *end)
{
	size_t n = 0;

	for (size_t k = 0; k < all->n && n < NOTES_MAX; k++) {
		struct incident *i = &all->list[k];
		struct verdict *note;

		if (i == fatal || !is_note(i, t))
			continue;
		add_samples(i, t, end);
		note = verdict_of_incident(i, t, i->hang || i->sticky ? end->fault : NULL, NULL);
		if (!is_ours(i, note)) {
			verdict_free(note);
			continue;
		}
		fill_end(note, t, end);
		note->last = is_last(i, t);
		verdict_append(&main->notes, note);
		n++;
	}
}

/* The kernel says that it killed the process for memory: nothing in the program failed. NULL: it does not say so. */
static struct verdict *verdict_of_kill(const struct process_end *end, uint32_t pid)
{
	const struct oom_kill *kill = end->signal == SIGKILL ? xid_oom_kill(end->xids, pid) : NULL;
	struct verdict *v = kill ? verdict_new("unknown") : NULL;

	if (!v)
		return NULL;
	case_observer(&v->c, "kernel-log");
	fact_set_text(&v->c, FACT_ram_killed, kill->text);
	fact_set_number(&v->c, FACT_process_pid, pid);
	case_evidence(&v->c, "kernel-log", pool_strdup(&v->pool, kill->text));
	case_observer(&v->c, NULL);
	verdict_judge(v);
	return v;
}

struct verdict *verdict_unrecorded(const struct process_end *end, const char *why)
{
	struct verdict *v = verdict_new("unknown");

	fact_set_text(&v->c, FACT_process_unrecorded, why);
	verdict_judge(v);
	if (end)
		fill_end(v, NULL, end);
	return v;
}

struct verdict *verdict_without(struct verdict *all, const struct process_end *end, const char *why)
{
	struct verdict *both[] = {NULL, all};

	if (verdict_failed(all))
		return all;
	both[0] = verdict_unrecorded(end, why);
	return verdict_join(both, 2);
}

struct verdict *verdict_of_process_beside(struct trace *t, const struct process_end *end,
					  const struct inputs_beside *beside)
{
	struct verdict *v = verdict_new("none"), *found = NULL;
	struct incidents all = {0};
	struct incident *fatal;

	fill_end(v, t, end);
	if (!t)
		return v;
	incidents_collect(&all, t, &v->pool);
	fatal = incidents_that_ended(
		&all, t, &(struct process_end){.status_known = v->exit_known, .exit = v->exit, .signal = v->signal},
		&v->pool);
	if (fatal) {
		fatal->usage = end->usage;
		fatal->ram = end->ram;
		fatal->xids = xid_matters(fatal->code) ? end->xids : NULL;
		found = verdict_of_incident(fatal, t, dump_of(fatal, t, end), beside);
	}
	if (found && !is_ours(fatal, found)) {
		verdict_free(found);
		found = NULL;
	}
	if (!found)
		found = verdict_of_kill(end, v->pid);
	if (found)
		fill_end(found, t, end);
	if (found && fatal && dump_of(fatal, t, end))
		fill_time(found, t, end);
	fill_end_exception(found ? found : v, &all, t);
	add_notes(found ? found : v, &all, fatal, t, end);
	if (!found)
		return damage_hides_failures(t) ? verdict_without(v, end, damage_words(t, &v->pool)) : v;
	verdict_free(v);
	return found;
}

struct verdict *verdict_of_process(struct trace *t, const struct process_end *end)
{
	return verdict_of_process_beside(t, end, NULL);
}
