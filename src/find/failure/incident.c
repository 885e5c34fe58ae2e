/* SPDX-License-Identifier: Apache-2.0
 * Groups the failures that one mistake leaves into incidents (see incident.h).
 */
#include "find/failure/incident.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "case/process.h"
#include "case/message.h"
#include "compat/cuda_errors.h"
#include "find/failure/ending.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define NEAR_NS 1000000000ull	/* PyTorch notices a failed driver call within this time */

static bool is_capture_code(uint32_t code)
{
	return code == CODE_STREAM_CAPTURE_INVALIDATED || cuda_error_in(code, SET_STREAM_CAPTURE);
}

/* One mistake may have one code in the driver, another in the runtime. */
static uint32_t code_family(uint32_t code)
{
	if (code == CODE_INVALID_CONFIGURATION)
		return CODE_INVALID_VALUE;
	if (code == CODE_INVALID_DEVICE_FUNCTION || code == CODE_INVALID_IMAGE)
		return CODE_NO_BINARY_FOR_GPU;
	return is_capture_code(code) ? (uint32_t)CODE_STREAM_CAPTURE_UNSUPPORTED : code;
}

static uint32_t failure_code(const struct cw_failure *f)
{
	return f->source == CW_SRC_TORCH_OOM && !f->code ? (uint32_t)CODE_OUT_OF_MEMORY : f->code;
}

static bool is_sticky(uint32_t code)
{
	return code != CODE_DEINITIALIZED && cuda_error_sticky(code);	/* that one comes at exit, when the driver shuts down */
}

static bool is_probe(const struct cw_failure *f)
{
	return api_does(f->api, DOES_PROBE);
}

/* Codes that healthy programs see. */
static bool is_harmless(const struct cw_failure *f)
{
	if (f->code == CODE_NOT_READY)
		return true;
	if (f->source != CW_SRC_DRIVER && f->source != CW_SRC_RUNTIME)
		return false;
	return cuda_error_in(f->code, SET_HARMLESS) || (f->code == CODE_INVALID_VALUE && is_probe(f));
}

static bool is_lookup(const struct cw_failure *f)
{
	return f->source == CW_SRC_DRIVER && api_does(f->api, DOES_LOOKUP);
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

enum owner_of_library { BY_OTHERS, BY_TORCH, BY_NVIDIA };

static enum owner_of_library owner_of_library(const char *file)
{
	static const struct { const char *name; enum owner_of_library owner; } rows[] = {
#define STOCK(name, owner) {name, BY_##owner},
#include "kb/stock_libraries.def"
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		if (begins_with(file, rows[k].name))
			return rows[k].owner;
	return BY_OTHERS;
}

/* The name of the library that made the call; "" = not known. */
static const char *library_of(const struct cw_failure *f)
{
	const char *slash = strrchr(f->library, '/');

	return slash ? slash + 1 : f->library;
}

#define TAKES_STOCK 2	/* one may be prepared for its launch while the next is asked for */

/* Is a lookup that failed a mere question? NVIDIA's libraries report what they cannot do without. The shared runtime asks outside
 * of a launch (in a launch, the failure has the name of the library that launches). Other code takes stock of its kernels. The
 * rest may be a launch whose result is not checked. */
static bool is_question(const struct cw_failure *f)
{
	const char *file = library_of(f);

	return owner_of_library(file) == BY_NVIDIA || begins_with(file, "libcudart") || f->found_beside >= TAKES_STOCK;
}

/* PyTorch's allocator, directly or through the runtime? Others that run out of memory beside it have no cache to empty. */
static bool may_be_torchs(const struct cw_failure *f)
{
	const char *file = library_of(f);

	return !file[0] || begins_with(file, "libcudart") || owner_of_library(file) != BY_OTHERS;
}

/* Failures that a library provokes and survives: PyTorch's allocator tries, frees its cache and
 * tries again; a kernel is looked up by several names; a feature is tried before it is used. */
static bool is_benign(const struct cw_failure *f, const struct trace *t)
{
	if (f->source != CW_SRC_DRIVER && f->source != CW_SRC_RUNTIME)
		return false;
	if (f->code == CODE_OUT_OF_MEMORY)
		return trace_header(t)->torch_path[0] && f->request_bytes && may_be_torchs(f);
	return cuda_error_in(f->code, SET_TRIED_FIRST) || is_probe(f) || (is_lookup(f) && is_question(f));
}

const struct cw_failure *incident_from(const struct incident *i, uint32_t source)
{
	for (size_t k = 0; k < i->n; k++)
		if (i->failure[k]->source == source)
			return i->failure[k];
	return NULL;
}

static bool same_top(const struct trace *t, uint32_t a, uint32_t b)
{
	return a == b || (stack_top_within(t, a, b) && stack_top_within(t, b, a));
}

static bool is_near(const struct trace *t, const struct incident *i, const struct cw_failure *f)
{
	const struct cw_failure *last = i->failure[i->n - 1];
	uint64_t end = trace_ns(t, last->last_ticks > last->ticks ? last->last_ticks : last->ticks);

	return trace_ns(t, f->ticks) <= end + NEAR_NS;
}

/* A type as PyTorch's C++ names it, where `s` begins: "CUDAFloatType", "SparseCPULongType". Its length; 0: there is none. */
static size_t type_at(const char *s, bool *sparse, bool *cuda, const char **name, size_t *len)
{
	const char *at = s;
	size_t n;

	*sparse = str_starts(at, "Sparse");
	at += *sparse ? strlen("Sparse") : 0;
	*cuda = str_starts(at, "CUDA");
	if (!*cuda && !str_starts(at, "CPU"))
		return 0;
	at += *cuda ? strlen("CUDA") : strlen("CPU");
	for (n = 0; isalnum((unsigned char)at[n]); n++)
		;
	if (n <= strlen("Type") || strncmp(at + n - strlen("Type"), "Type", strlen("Type")) != 0)
		return 0;
	*name = at;
	*len = n - strlen("Type");
	return (size_t)(at - s) + n;
}

/* The first line of a check's message, as the exception has it: PyTorch gives types their names in Python then. */
static void line_in_python(char *to, size_t room, const char *check)
{
	size_t used = 0;

	while (*check && *check != '\n' && used + 1 < room) {
		bool sparse, cuda;
		const char *name;
		size_t len, n = type_at(check, &sparse, &cuda, &name, &len);

		if (n) {
			int k = snprintf(to + used, room - used, "torch.%s%s%.*sTensor", cuda ? "cuda." : "",
					 sparse ? "sparse." : "", (int)len, name);

			used = k > 0 && (size_t)k < room - used ? used + (size_t)k : room - 1;
			check += n;
		} else {
			to[used++] = *check++;
		}
	}
	to[used] = '\0';
}

static bool first_line_within(const char *needle, const char *text)
{
	char line[160];

	str_copy(line, sizeof(line), needle);
	line[strcspn(line, "\n")] = '\0';
	if (strlen(line) >= 8 && strstr(text, line))
		return true;
	line_in_python(line, sizeof(line), needle);
	return strlen(line) >= 8 && strstr(text, line);
}

/* PyTorch's check failed without a code of its own: a library call failed just before, or it was reported already. */
static bool check_belongs(const struct trace *t, const struct incident *i, const struct cw_failure *f)
{
	const struct cw_failure *check = incident_from(i, CW_SRC_TORCH_CHECK);

	if (i->lead->tid != f->tid)
		return false;
	if (check)	/* one failure may pass through two checks on its way up */
		return same_top(t, check->stack, f->stack) &&
		       (!strcmp(check->text, f->text) || is_near(t, i, f));
	if (i->lead->source == CW_SRC_FORK)
		return strstr(f->text, "forked subprocess") != NULL;
	return !i->benign && !i->raised && is_near(t, i, f) && i->code &&
	       (message_has_code(f->text, i->code) || same_top(t, i->lead->stack, f->stack));
}

/* Memory had run out before, and that was reported already, or another request went on trying. PyTorch tries each a second time,
 * from the same place, when it has emptied its cache. */
static bool is_over(const struct incident *i, const struct cw_failure *f)
{
	const struct cw_failure *last = i->failure[i->n - 1];

	return i->raised || last->request_bytes != f->request_bytes ||
	       (last->stack && f->stack && last->stack != f->stack);
}

static bool belongs(const struct trace *t, const struct incident *i, const struct cw_failure *f)
{
	uint32_t code = failure_code(f);

	if (f->source == CW_SRC_TORCH_CHECK && !code)
		return check_belongs(t, i, f);
	if (f->source == CW_SRC_FORK || i->lead->source == CW_SRC_FORK)
		return f->source == i->lead->source || code == CODE_NOT_INITIALIZED || i->code == CODE_NOT_INITIALIZED;
	if (!code || code_family(code) != code_family(i->code))
		return false;
	if (i->sticky)
		return true;
	if (code == CODE_OUT_OF_MEMORY && f->source == CW_SRC_DRIVER && is_over(i, f))
		return false;	/* memory has run out again */
	if (api_does(f->api, DOES_START) || api_does(i->lead->api, DOES_START))
		return !f->stack || !i->lead->stack || same_top(t, i->lead->stack, f->stack) ||
		       (f->source != CW_SRC_DRIVER && is_near(t, i, f));
	if (is_capture_code(code))
		return !f->capturing || code == CODE_STREAM_CAPTURE_INVALIDATED ||
		       i->lead->capture_stack == f->capture_stack;
	if (i->lead->tid != f->tid)
		return false;
	if (same_top(t, i->failure[i->n - 1]->stack, f->stack) && (f->stack || is_near(t, i, f)))
		return true;
	return f->source != CW_SRC_DRIVER && !incident_from(i, f->source) && is_near(t, i, f);
}

/* Each time that memory runs out is another one: what does not belong to the thread's last time belongs to no earlier one. */
static bool is_later_time(const struct incident *i, const struct cw_failure *f)
{
	return i->code == CODE_OUT_OF_MEMORY && failure_code(f) == CODE_OUT_OF_MEMORY && i->lead->tid == f->tid;
}

static void incident_add(struct incident *i, const struct cw_failure *f, const struct trace *t)
{
	if (!i->n) {
		i->lead = f;
		i->code = failure_code(f);
		i->sticky = is_sticky(i->code);
		i->benign = is_benign(f, t);
		i->lookup = is_lookup(f) && !cuda_error_in(f->code, SET_TRIED_FIRST);
		i->python_only = f->source == CW_SRC_PYTHON;
		i->check_only = f->source == CW_SRC_TORCH_CHECK;
	} else if (f->source != CW_SRC_PYTHON && f->source != CW_SRC_TORCH_CHECK) {
		i->check_only = false;
	}
	if (f->source != CW_SRC_DRIVER && f->source != CW_SRC_RUNTIME) {
		i->raised = true;
		i->benign = false;
	}
	if (f->source == CW_SRC_FORK)
		i->lead = f;
	if (i->n < INCIDENT_FAILURES)
		i->failure[i->n++] = f;
}

/* The exception that reached the top, followed by its causes. */
static void collect_python(struct incidents *all, const struct cw_failure *const *f, size_t n,
			   struct pool *pool)
{
	const struct cw_failure **chain = pool_alloc(pool, (n + 1) * sizeof(*chain));
	size_t last = n;

	for (size_t k = 0; k < n; k++)
		if (f[k]->source == CW_SRC_PYTHON && f[k]->python_chain == 0)
			last = k;
	all->python = chain;
	if (last == n)
		return;
	chain[all->n_python++] = f[last];
	for (uint32_t depth = 1; depth < 16; depth++)
		for (size_t k = 0; k < n; k++)
			if (f[k]->source == CW_SRC_PYTHON && f[k]->python_chain == depth)
				chain[all->n_python++] = f[k];
}

void incidents_collect(struct incidents *all, const struct trace *t, struct pool *pool)
{
	const struct cw_failure *const *f;
	size_t n = trace_failures(t, &f);

	*all = (struct incidents){.list = pool_alloc(pool, (n + 2) * sizeof(*all->list))};
	for (size_t k = 0; k < n; k++) {
		size_t i = all->n;

		if (f[k]->source == CW_SRC_PYTHON || is_harmless(f[k]))
			continue;
		while (i > 0 && !belongs(t, &all->list[i - 1], f[k]))
			i = is_later_time(&all->list[i - 1], f[k]) ? 0 : i - 1;
		incident_add(&all->list[i > 0 ? i - 1 : all->n++], f[k], t);
	}
	collect_python(all, f, n, pool);
}

/* The exception's message matches the incident. */
static bool exception_tells(const struct cw_failure *p, const struct incident *i, const struct trace *t)
{
	const char *text = trace_failure_text(t, p);

	for (size_t k = 0; k < i->n; k++) {
		const struct cw_failure *f = i->failure[k];
		uint32_t code = failure_code(f);

		if (code && message_has_code(text, code))
			return true;
		if (code_family(code) == CODE_INVALID_VALUE && (message_has_code(text, CODE_INVALID_VALUE) ||
								message_has_code(text, CODE_INVALID_CONFIGURATION)))
			return true;
		if (code == CODE_OUT_OF_MEMORY && strstr(p->what, "OutOfMemory"))
			return true;
		if (f->source == CW_SRC_FORK && strstr(text, "forked subprocess"))
			return true;
		if (f->source == CW_SRC_TORCH_CHECK && first_line_within(f->text, text))
			return true;
	}
	return !text[0] && i->raised && strstr(p->what, "AcceleratorError");
}

/* The exception has a printed traceback in which the incident's line does not occur, and it was not raised on that line
 * either: it was raised again for a failure of another process, which may be of the same kind. */
static bool told_from_elsewhere(const struct incidents *all, const struct incident *i, const struct trace *t)
{
	bool printed = false;
	struct place p;

	if (!place_of_stack(t, i->lead->stack, &p))
		return false;
	for (size_t d = 0; d < all->n_python; d++) {
		const char *text = trace_failure_text(t, all->python[d]);

		if (message_has_line(text, p.file, p.line) || stack_top_within(t, i->lead->stack, all->python[d]->stack))
			return false;
		printed = printed || message_has_traceback(text);
	}
	return printed;
}

/* Was the exception raised on another line? A thread of backward has no line to compare with. */
static bool is_off_line(const struct cw_failure *p, const struct incident *i, const struct trace *t)
{
	return p->stack && i->lead->stack && !stack_top_within(t, i->lead->stack, p->stack);
}

/* Of several that an exception may be about, the one that was seen last on its line. Others may have failed on other lines since
 * then: tasks of an event loop that were not stopped, other threads. */
static struct incident *find_told(struct incidents *all, const struct trace *t)
{
	struct incident *found = NULL;
	bool off = false;

	for (size_t d = 0; d < all->n_python && !found; d++)
		for (size_t i = all->n; i > 0; i--) {
			struct incident *x = &all->list[i - 1];
			bool x_off = is_off_line(all->python[d], x, t);

			if (!exception_tells(all->python[d], x, t) || told_from_elsewhere(all, x, t) ||
			    (found && (x_off != off ? x_off : ending_last_seen(x) <= ending_last_seen(found))))
				continue;
			found = x;
			off = x_off;
		}
	return found;
}

/* It was raised elsewhere, when the program had caught the failure and used the GPU again: its words may be about something else. */
static void doubt_words(struct incident *i, const struct incidents *all, struct trace *t, struct pool *pool)
{
	if (!ending_is_over(i, t))
		return;
	for (size_t d = 0; d < all->n_python; d++)
		if (!is_off_line(all->python[d], i, t))
			return;
	i->doubt = pool_printf(
		pool,
		"the program had caught this failure and used the GPU again when the %s that ended it was raised elsewhere",
		all->python[0]->what);
}

static bool launched_since(const struct incident *i, struct trace *t)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l);

	for (size_t k = n; k > 0; k--)
		if (l[k - 1]->tid == i->lead->tid && l[k - 1]->ticks > i->lead->last_ticks)
			return true;
	return false;
}

/* Calls that only clean up are not among them. */
static bool built_since(const struct incident *i, struct trace *t)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(t, &c);

	for (size_t k = n; k > 0; k--)
		if (c[k - 1]->tid == i->lead->tid && c[k - 1]->ticks > ending_last_seen(i) && !c[k - 1]->result &&
		    api_does(c[k - 1]->api, DOES_LOAD | DOES_GIVE | DOES_REQUEST))
			return true;
	return false;
}

/* PyTorch's checks also fail internally, with a fallback: then its thread kept working. */
static bool went_on(const struct incident *i, struct trace *t)
{
	return i->check_only && launched_since(i, t);
}

/* Normal in a healthy program; but a library that asked for its code may have done nothing since. */
static bool is_beside_the_point(const struct incident *i, struct trace *t)
{
	return i->benign && (!i->lookup || launched_since(i, t) || built_since(i, t));
}

/* No words in common, but the exception was raised on the very line of the failure. */
static struct incident *find_on_line(struct incidents *all, struct trace *t)
{
	for (size_t d = 0; d < all->n_python; d++) {
		for (size_t i = all->n; i > 0; i--) {
			struct incident *c = &all->list[i - 1];

			if (!c->check_only && stack_top_within(t, c->lead->stack, all->python[d]->stack) &&
			    !is_beside_the_point(c, t) && !ending_is_over(c, t))
				return c;
		}
	}
	return NULL;
}

/* The signals of a bug in the program's own code. abort() is not one: that is how C++ ends for an error. */
static bool is_crash(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGFPE || signal == SIGILL;
}

/* Neither in words nor by its line: the program's own code saw that the call had failed, and raised an exception of its own. */
static struct incident *find_behind(struct incidents *all, struct trace *t, struct pool *pool)
{
	for (size_t i = all->n; i > 0; i--) {
		struct incident *c = &all->list[i - 1];
		const char *where;

		if (c->check_only || is_beside_the_point(c, t))
			continue;
		where = ending_raised_behind(c, t, all->python[0]);
		if (!where)
			continue;
		c->doubt = pool_printf(
			pool,
			"the %s that ended the program was raised behind the failed call, %s, and does not say why",
			all->python[0]->what, where);
		return c;
	}
	return NULL;
}

/* The program was killed from outside: not because of its failure. */
static bool is_killed(int signal)
{
	return signal == SIGHUP || signal == SIGINT || signal == SIGKILL || signal == SIGTERM;
}

/* Could it be why a process ended of which no exception is known? What was raised for it comes before what was only returned. */
static bool may_have_ended(const struct incident *i, struct trace *t, bool raised)
{
	if (raised)
		return i->raised && (!went_on(i, t) || (message_is_cuda(i->lead->text) && ending_of_test(i, t)));
	return !i->raised && !i->check_only && !is_beside_the_point(i, t);
}

/* Of those that were raised the last one, of the others the last one of a Python program and the first one of any other. `sure`: only those that
 * ended it for certain. */
static struct incident *find_ending(struct incidents *all, struct trace *t, const struct process_end *end, bool sure,
				    struct pool *pool)
{
	bool python = trace_header(t)->py_version != 0;
	struct incident *found = NULL;

	for (int raised = 1; raised >= 0 && !found; raised--)
		for (size_t k = 0; k < all->n; k++) {
			struct incident *i = &all->list[python || raised ? all->n - 1 - k : k];
			struct ending e;

			if (found || !may_have_ended(i, t, raised))
				continue;
			e = ending_of(i, t, end, pool);
			if (e.fate == FATE_ENDED || (!sure && e.fate == FATE_UNKNOWN))
				found = i;
			if (found)
				found->doubt = e.why;
		}
	return found;
}

static struct incident *find_without_exception(struct incidents *all, struct trace *t, const struct process_end *end,
					       struct pool *pool)
{
	int signal = end->status_known ? end->signal : 0;
	struct incident *found = is_killed(signal) ? NULL : find_ending(all, t, end, true, pool);

	if (!found && !is_killed(signal))
		found = find_ending(all, t, end, false, pool);
	if (!found && !is_killed(signal) && !trace_header(t)->py_version && all->n)
		found = &all->list[0];
	if (found && is_crash(signal))
		found->doubt = "the program survived this failure and crashed later, perhaps because of something else";
	return found;
}

static struct incident *join_exception(struct incidents *all, struct incident *i, const struct trace *t)
{
	for (size_t d = 0; i && d < all->n_python; d++)
		incident_add(i, all->python[d], t);
	return i;
}

struct incident *incidents_fatal(struct incidents *all, struct trace *t, const struct process_end *end, struct pool *pool)
{
	struct incident *i;

	/* a communicator whose ranks disagree is as lost as a context: whatever ended the process came from that */
	for (size_t k = 0; k < all->n; k++)
		if (all->list[k].sticky || all->list[k].lead->source == CW_SRC_RANKS)
			return join_exception(all, &all->list[k], t);
	if (!all->n_python)
		return find_without_exception(all, t, end, pool);
	i = find_told(all, t);
	if (i)
		doubt_words(i, all, t, pool);
	if (!i)
		i = find_on_line(all, t);
	if (!i)
		i = find_behind(all, t, pool);
	if (!i)
		i = &all->list[all->n++];	/* collect left room for it */
	return join_exception(all, i, t);
}

static bool speaks_of_gpus(const char *text)
{
	return text && (message_is_cuda(text) || strstr(text, "cuda") || strstr(text, "CUDA") || strstr(text, "GPU"));
}

/* By the message of the exception that ended it, or the line that raised it; or when it is not known why it ended. */
static bool ended_for_lack_of_cuda(const struct incidents *all, const struct trace *t, struct pool *pool)
{
	const struct cw_failure *e = all->n_python ? all->python[0] : NULL;
	struct place p;

	if (!e || speaks_of_gpus(e->text))
		return true;
	return e->stack && place_of_stack(t, e->stack, &p) &&
	       speaks_of_gpus(place_source(&p, trace_sources(t), pool));
}

/* CUDA did not start, the program needed it and ended badly: it did not handle that failure. */
static struct incident *no_cuda_at_start(struct incidents *all, const struct trace *t, struct pool *pool)
{
	const struct cw_header *h = trace_header(t);

	if (h->device_count != CW_UNKNOWN && h->device_count != 0)
		return NULL;
	for (size_t k = 0; k < all->n; k++)
		if (cuda_error_in(all->list[k].code, SET_NO_CUDA_AT_START) && !all->list[k].sticky)
			return ended_for_lack_of_cuda(all, t, pool) ? &all->list[k] : NULL;
	return NULL;
}

/* The run was made to find these: a program that goes on is no reason for silence. */
static struct incident *find_guarded(struct incidents *all)
{
	for (size_t k = 0; k < all->n; k++)
		if (all->list[k].lead->source == CW_SRC_GUARD)
			return &all->list[k];
	return NULL;
}

struct incident *incidents_that_ended(struct incidents *all, struct trace *t, const struct process_end *end,
				      struct pool *pool)
{
	struct incident *hang = incidents_hang(all, t, pool), *fatal, *start;

	if (end->status_known && end->exit == 0 && !end->signal)
		return find_guarded(all);
	fatal = hang ? hang : incidents_fatal(all, t, end, pool);
	if (end->signal || !end->status_known || (fatal && !fatal->python_only))
		return fatal;
	start = no_cuda_at_start(all, t, pool);
	return start ? start : fatal;
}
