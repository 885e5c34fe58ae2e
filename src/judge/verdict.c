/* SPDX-License-Identifier: Apache-2.0
 * Judges a process: which of its incidents ended it, which were handled; and joins the verdicts of a run.
 */
#include <stdlib.h>
#include <string.h>

#include "case/message.h"
#include "formats/xid.h"
#include "probe/ram.h"
#include "probe/usage.h"
#include "judge/verdict_priv.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

#define NOTES_MAX 16

const char *certainty_word(enum certainty c)
{
	static const char *const words[] = { "possible", "likely", "certain" };

	return words[c];
}

static void free_list(struct verdict *v)
{
	while (v) {
		struct verdict *next = v->next;

		v->next = NULL;
		verdict_free(v);
		v = next;
	}
}

void verdict_free(struct verdict *v)
{
	if (!v)
		return;
	free_list(v->notes);
	free_list(v->others);
	pool_release(&v->pool);
	free(v);
}

static void fill_process(struct verdict *v, const struct trace *t, const struct process_end *end)
{
	const struct cw_header *h = t ? trace_header(t) : NULL;

	v->pid = end->pid ? end->pid : h ? h->pid : 0;
	v->ppid = end->ppid ? end->ppid : h ? h->ppid : 0;
	v->rank = h ? h->rank : CW_UNKNOWN;
	v->ended_ns = h && h->exit_known ? h->exit_mono_ns : end->ended_ns;
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

/* The exception that reached the top; the recording does not live as long as the verdict. */
static void fill_exception(struct verdict *v, const struct incidents *all)
{
	if (!all->n_python)
		return;
	v->end_type = pool_strdup(&v->pool, all->python[0]->what);
	v->end_text = pool_strdup(&v->pool, all->python[0]->text);
}

/* The dump was written when the kernel faulted, which may be long before the program noticed. */
static void fill_time(struct verdict *v, const struct trace *t, const struct process_end *end)
{
	const struct cw_header *h = trace_header(t);
	uint64_t since = end->fault_real_ns - h->start_realtime_ns;

	if (end->fault_real_ns > h->start_realtime_ns && h->clock0.mono_ns + since < v->time_ns)
		v->time_ns = h->clock0.mono_ns + since;
}

static bool ended_well(const struct verdict *v)
{
	return v->exit_known && v->exit == 0 && !v->signal;
}

/* Words of PyTorch or Python alone are a CUDA failure only when a rule knows them or they name CUDA. */
static bool is_ours(const struct incident *i, const struct verdict *v)
{
	if (!i->python_only && !i->check_only)
		return true;
	return v->n_candidates > 0 || (v->text && message_is_cuda(v->text));
}

/* What PyTorch refused and the program survived is no CUDA failure, unless its words say CUDA; nor is a machine without
 * GPU, where the program does without. */
static bool is_note(const struct incident *i, const struct trace *t)
{
	if (incident_no_gpu(i, t))
		return false;
	if (i->check_only)
		return message_is_cuda(i->lead->text);
	return !i->benign && !i->python_only;
}

#define SAMPLE_NS 2000000000u	/* samples are a second apart at most, and take a moment */

static bool is_of(uint64_t sampled, const struct incident *i, const struct trace *t)
{
	uint64_t last = trace_header(t)->clock0.mono_ns + trace_ns(t, i->lead->last_ticks), first = i->lead->mono_ns;

	return sampled >= first && sampled <= (last > first ? last : first) + SAMPLE_NS;
}

/* The newest sample is kept: an earlier failure has it only when it was taken then. */
static void add_samples(struct incident *i, const struct trace *t, const struct process_end *end)
{
	if (end->usage && is_of(end->usage->mono_ns, i, t))
		i->usage = end->usage;
	if (end->ram && is_of(end->ram->mono_ns, i, t))
		i->ram = end->ram;
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
		note = verdict_of_incident(i, t, i->hang || i->sticky ? end->fault : NULL);
		if (!is_ours(i, note)) {
			verdict_free(note);
			continue;
		}
		fill_process(note, t, end);
		verdict_append(&main->notes, note);
		n++;
	}
}

/* The simulated GPU has no Xids, and those of a real one beside it are no business of the program. */
static const struct xid_log *log_of(const struct trace *t, const struct process_end *end)
{
	static const struct xid_log nothing = {.readable = true};

	return trace_header(t)->sim ? &nothing : end->xids;
}

static void add_xid(struct verdict *v, const struct incident *i, const struct trace *t)
{
	int about = -1;
	const struct xid *x = incident_xid(i, t, &about);

	if (x)
		verdict_evidence(v, "kernel-log", pool_strdup(&v->pool, x->text));
	else if (i->xids && i->xids->readable && i->xids->lost)
		verdict_evidence(v, "kernel-log", "parts of the kernel log were overwritten before they could be read");
	else if (i->xids && !i->xids->readable)
		verdict_evidence(v, "kernel-log", "the kernel log could not be read: a hardware error would not be seen");
}

/* --- programs that found no CUDA --------------------------------------------------------------- */

static bool speaks_of_gpus(const char *text)
{
	return text && (message_is_cuda(text) || strstr(text, "cuda") || strstr(text, "CUDA") || strstr(text, "GPU"));
}

/* The words of the exception that ended it, or the line that raised it; or nothing is known of why it ended. */
static bool ended_for_lack_of_cuda(const struct incidents *all, const struct trace *t, struct pool *pool)
{
	const struct cw_failure *e = all->n_python ? all->python[0] : NULL;
	struct place p;

	if (!e || speaks_of_gpus(e->text))
		return true;
	return e->stack && place_of_stack(t, e->stack, &p) && speaks_of_gpus(place_source(&p, trace_header(t)->cwd, pool));
}

/* CUDA did not start, the program asked for it and ended badly: that is no failure that it handled. */
static struct incident *no_cuda_at_start(struct incidents *all, const struct trace *t, struct pool *pool)
{
	static const uint32_t codes[] = {34, 35, 100, 802, 803, 804, 805, 806, 807, 999};
	const struct cw_header *h = trace_header(t);

	if (h->device_count != CW_UNKNOWN && h->device_count != 0)
		return NULL;
	for (size_t k = 0; k < all->n; k++)
		for (size_t c = 0; c < sizeof(codes) / sizeof(codes[0]); c++)
			if (all->list[k].code == codes[c] && !all->list[k].sticky)
				return ended_for_lack_of_cuda(all, t, pool) ? &all->list[k] : NULL;
	return NULL;
}

struct verdict *verdict_of_process(struct trace *t, const struct process_end *end)
{
	struct verdict *v = verdict_new("none"), *found = NULL;
	struct incidents all = { 0 };
	struct incident *fatal = NULL, *hang;

	fill_process(v, t, end);
	if (!t)
		return v;
	incidents_collect(&all, t, &v->pool);
	hang = incidents_hang(&all, t, &v->pool);
	if (!ended_well(v))
		fatal = hang ? hang : incidents_fatal(&all, t, v->signal);
	if (!ended_well(v) && !v->signal && v->exit_known && (!fatal || fatal->python_only)) {
		struct incident *start = no_cuda_at_start(&all, t, &v->pool);

		fatal = start ? start : fatal;
	}
	if (fatal) {
		fatal->usage = end->usage;
		fatal->ram = end->ram;
		fatal->xids = xid_matters(fatal->code) ? log_of(t, end) : NULL;
		found = verdict_of_incident(fatal, t, fatal->sticky ? end->fault : NULL);
		add_xid(found, fatal, t);
	}
	if (found && !is_ours(fatal, found)) {
		verdict_free(found);
		found = NULL;
	}
	if (found) {
		fill_process(found, t, end);
		found->own = !fatal->python_only && !fatal->check_only;
	}
	if (found && fatal->sticky && end->fault)
		fill_time(found, t, end);
	fill_exception(found ? found : v, &all);
	add_notes(found ? found : v, &all, fatal, t, end);
	if (!found)
		return v;
	verdict_free(v);
	return found;
}

const char *verdict_cause(const struct verdict *v)
{
	return v->cause->id;
}

const char *verdict_title(const struct verdict *v)
{
	return v->title;
}

size_t verdict_notes(const struct verdict *v)
{
	size_t n = 0;

	for (const struct verdict *x = v->notes; x; x = x->next)
		n++;
	return n;
}

uint32_t verdict_pid(const struct verdict *v)
{
	return v->pid;
}

uint64_t verdict_time_ns(const struct verdict *v)
{
	return v->time_ns;
}

static bool failed(const struct verdict *v)
{
	return strcmp(v->cause->id, "none") != 0;
}

/* Failures before none; then those that tell of somebody else's death last; then by time. */
static bool comes_before(const struct verdict *x, const struct verdict *y)
{
	if (failed(x) != failed(y))
		return failed(x);
	if (!failed(x))
		return false;
	if (victim_speaks(x) != victim_speaks(y))
		return victim_speaks(y);
	return x->time_ns < y->time_ns;
}

/* By insertion: equals keep their order (the program that was started comes first), and runs are small. */
static void sort_verdicts(struct verdict **list, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		struct verdict *v = list[i];
		size_t k = i;

		for (; k > 0 && comes_before(v, list[k - 1]); k--)
			list[k] = list[k - 1];
		list[k] = v;
	}
}

static void move_notes(struct verdict *to, struct verdict *from)
{
	verdict_append(&to->notes, from->notes);
	from->notes = NULL;
}

struct verdict *verdict_join(struct verdict **list, size_t n)
{
	struct verdict *first;

	if (!n)
		return verdict_new("none");
	sort_verdicts(list, n);
	first = list[0];
	for (size_t i = 1; i < n; i++)
		verdict_blame(list[i], list, n);
	for (size_t i = 1; i < n; i++) {
		if (failed(list[i]) || list[i]->victim_of) {
			verdict_append(&first->others, list[i]);
		} else {
			move_notes(first, list[i]);
			verdict_free(list[i]);
		}
	}
	return first;
}
