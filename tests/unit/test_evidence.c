/* SPDX-License-Identifier: Apache-2.0
 * All evidence meets in one case: for each two sources of it, one decides what the other leaves open, and where they contradict each other, both are
 * told and nothing is certain.
 *
 * A row says what each source has. It is judged with one of the two, with the other, and with both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "case/process.h"
#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"
#include "find/failure/observe.h"
#include "find/input.h"
#include "find/input_text.h"
#include "formats/xid.h"
#include "memory_make.h"
#include "probe/ram.h"
#include "probe/usage.h"
#include "read/machine/machine.h"
#include "verdict/doctor.h"
#include "verdict/process.h"
#include "verdict/source.h"
#include "verdict/text.h"
#include "verdict/words.h"

#define SOURCES(X) X(EXCEPTION) X(PRINTED) X(KERNEL_LOG) X(DUMP) X(CALL) X(MEMORY) X(MACHINE) X(LOG)
enum source_id {
#define X(name) name,
	SOURCES(X)
#undef X
	N_SOURCES
};

struct evidence {
	const char *type, *text, *cause_type, *cause_text;	/* the exception and its __cause__ */
	const char *printed;
	const char *klog;	/* lines; "" = it was read, and there are none */
	enum culprit_fault dump;	/* 0 = none */
	char *condition;
	uint32_t call;		/* what a call of the driver returned */
	uint64_t request;	/* and what it was asked for */
	uint64_t others;	/* bytes that another process held */
	const char *machine;	/* of tests/doctor/machines */
	const char *log;	/* a file that was given together with the recording: output, settings */
};

static bool has(const struct evidence *e, enum source_id s)
{
	const bool any[] = {
		[EXCEPTION] = e->type != NULL, [PRINTED] = e->printed != NULL, [KERNEL_LOG] = e->klog != NULL,
		[DUMP] = e->dump != 0,		[CALL] = e->call != 0,		[MEMORY] = e->others != 0,
		[MACHINE] = e->machine != NULL, [LOG] = e->log != NULL,
	};

	return any[s];
}

static struct evidence without(struct evidence e, enum source_id s)
{
	switch (s) {
	case EXCEPTION: e.type = e.text = e.cause_type = e.cause_text = NULL; break;
	case PRINTED: e.printed = NULL; break;
	case KERNEL_LOG: e.klog = NULL; break;
	case DUMP: e.dump = 0; break;
	case CALL: e.call = 0; break;
	case MEMORY: e.others = 0; break;
	case MACHINE: e.machine = NULL; break;
	default: e.log = NULL; break;
	}
	return e;
}

#define CARD 150110011392ull
#define OWN  (20 * GIB + 600 * MIB)

static struct gpu_usage *usage_of(uint64_t others)
{
	struct gpu_card card = {.total = CARD, .used = OWN + others, .free = CARD - OWN - others,
				.uuid = "GPU-01020304-0506-0708-090a-0b0c0d0e0f10"};
	struct gpu_holder h = {.pid = 100, .instance = UINT32_MAX, .kind = HOLDER_COMPUTE, .state = HOLDER_RUNNING, .bytes = OWN,
			       .command = "python train.py"};
	struct gpu_usage *u = usage_new();
	struct gpu_state *g = usage_add_gpu(u, &card);

	g->holders_known = true;
	usage_add_holder(g, &h);
	h.pid = 4711;
	h.bytes = others;
	snprintf(h.command, sizeof(h.command), "python other.py");
	usage_add_holder(g, &h);
	return u;
}

static void read_lines(struct xid_log *log, const char *lines)
{
	char *copy = strdup(lines), *rest = copy, *line;

	*log = (struct xid_log){.readable = true};
	while ((line = strsep(&rest, "\n")) != NULL)
		xid_line(log, line, false);
	free(copy);
}

static struct culprit dump_of(const struct evidence *e)
{
	return (struct culprit){.fault = e->dump, .kernel_text = "gather(float*, long*)", .kernel = "gather", .n_lanes = 1,
				.assertion = {.condition = e->condition}};
}

/* A file beside the recording; NULL: there is none. */
static struct text_source *file_of(const struct evidence *e)
{
	struct text_source *s;

	if (!e->log)
		return NULL;
	s = text_source_new();
	log_read_text(s->log, "train.log", e->log, strlen(e->log));
	log_finish(s->log);
	verdict_free(verdict_of_text_beside(s->log, NULL, &s->about));
	return s;
}

/* What was printed is not in these recordings: it is added to the case as it would be. */
static struct verdict *judge_printed(const struct evidence *e, const struct inputs_beside *beside)
{
	struct verdict *v = verdict_new("unknown");
	struct casefile *c = &v->c;
	struct culprit k = dump_of(e);
	const char *raised = NULL;

	case_observer(c, RECORDING_OBSERVER);
	case_observe(c, GROUP_python);
	fact_set_text(c, FACT_printed_text, e->printed);
	fact_set_number(c, FACT_printed_asserts, strstr(e->printed, "Assertion `") != NULL);
	if (e->type)
		raised = pool_printf(
			&v->pool,
			"Traceback (most recent call last):\n  File \"train.py\", line 32, in step\n    step(x)\n%s: %s\n",
			e->type, e->text);
	fact_set_text(c, FACT_error_text, e->type ? e->text : "");
	fact_set_number(c, FACT_error_code, e->call);
	if (e->dump)
		dump_observe_fault(c, &k);
	words_add(c, raised);
	case_observer(c, NULL);
	if (beside)
		inputs_observe(c, beside);
	verdict_judge(v);
	return v;
}

static void fail_call(struct mm *m, const struct evidence *e)
{
	if (e->request) {
		mm_segment(m, 20 * GIB);
		mm_block(m, 20 * GIB, tb_stack(&m->b, "train.py:12:keep", NULL), 0, 0);
		mm_oom(m, e->request, CARD - OWN - 118 * GIB, tb_stack(&m->b, USER, NULL));
	} else if (e->call) {
		tb_fail(&m->b, CW_SRC_DRIVER, e->call, tb_stack(&m->b, USER, NULL));
	}
}

static struct verdict *judge_recorded(const struct evidence *e, const struct inputs_beside *beside)
{
	struct gpu_usage *usage = e->others ? usage_of(e->others) : NULL;
	struct culprit k = dump_of(e);
	struct process_end end = {
		.pid = 100, .status_known = true, .exit = 1, .usage = usage, .fault = e->dump ? &k : NULL};
	struct xid_log log;
	struct verdict *v;
	struct trace *t;
	struct mm m;

	mm_init(&m);
	fail_call(&m, e);
	if (e->type)
		tb_fail_text(&m.b, CW_SRC_PYTHON, tb_stack(&m.b, USER, NULL), e->type, e->text);
	if (e->cause_type)
		tb_fail_text(&m.b, CW_SRC_PYTHON, tb_stack(&m.b, USER, NULL), e->cause_type, e->cause_text)->python_chain = 1;
	end_with_exception(&m.b);
	if (e->klog) {
		read_lines(&log, e->klog);
		end.xids = &log;
	}
	t = tb_trace(&m.b);
	v = verdict_of_process_beside(t, &end, beside);
	trace_free(t);
	usage_free(usage);
	return v;
}

static void ask_machine(struct verdict *v, const char *name)
{
	char path[200];
	struct machine m;
	struct err e = {0};
	struct doctor *d;

	snprintf(path, sizeof(path), "tests/doctor/machines/%s.json", name);
	if (machine_load(&m, path, &e))
		fail_msg("%s", e.msg);
	d = doctor_judge(&m);
	if (verdict_wants_machine(v))
		verdict_adopt(v, d);
	doctor_free(d);
	machine_release(&m);
}

static json_t *judge_evidence(const struct evidence *e)
{
	struct text_source *file = file_of(e);
	struct input_beside log = {.input = &input_text, .it = file, .why = "joined with a text"};
	struct inputs_beside beside = {.list = &log, .n = 1};
	struct verdict *v = (e->printed ? judge_printed : judge_recorded)(e, file ? &beside : NULL);
	json_t *j;

	if (e->machine)
		ask_machine(v, e->machine);
	j = verdict_object(v);
	verdict_free(v);
	text_source_free(file);
	return j;
}

struct row {
	enum source_id a, b;
	const char *cause, *sure;	/* with both */
	const char *told[2];		/* words of the answer; of a contradiction, what each source says */
	struct evidence e;
};

#define LABELS "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], " \
	       "thread: [4,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
#define TRACEBACK(error) \
	"Traceback (most recent call last):\n  File \"train.py\", line 32, in step\n    step(x)\n" error "\n"
#define ASSERTED "RuntimeError", "CUDA error: device-side assert triggered"
#define WORKER "RuntimeError", "DataLoader worker (pid 4242) is killed by signal: Killed. "

#define INDICES "ind < size && \"index out of bounds\""
#define BUS "NVRM: Xid (PCI:0000:10:1c): 79, pid=100, GPU has fallen off the bus."
#define STARTING "CUDA unknown error - this may be due to an incorrectly set up environment"
#define TOO_MUCH "CUDA out of memory. Tried to allocate 10.00 GiB. GPU 0 has a total capacity of 139.80 GiB of which 1.20 GiB is free."

/* With both, the answer is this one; without one of them it is another one, or less certain. */
static const struct row decides[] = {
	{EXCEPTION, PRINTED, "label-out-of-range", "likely", {"n_classes"}, {ASSERTED, .printed = LABELS}},
	{EXCEPTION, KERNEL_LOG, "host-memory", "certain", {"Killed process 4242"},
	 {WORKER, .klog = "Memory cgroup out of memory: Killed process 4242 (pt_data_worker) total-vm:1kB"}},
	{EXCEPTION, DUMP, "misaligned-address", "certain", {"misaligned"},
	 {"RuntimeError", "CUDA error: unspecified launch failure", .dump = FAULT_MISALIGNED}},
	{EXCEPTION, CALL, "launch-config-shared-memory-limit", "certain", {"262144"},
	 {"OutOfResources", "262144, 232448, shared memory", .call = 1}},
	{EXCEPTION, MEMORY, "oom-other-process", "certain", {"4711"},
	 {"OutOfMemoryError", TOO_MUCH, .call = 2, .request = 10 * GIB, .others = 118 * GIB}},
	{EXCEPTION,
	 MACHINE,
	 "uvm-broken-after-suspend",
	 "likely",
	 {"suspend"},
	 {"RuntimeError", STARTING, .machine = "laptop-resumed"}},
	{EXCEPTION, LOG, "label-out-of-range", "certain", {"n_classes"},
	 {ASSERTED, .log = LABELS TRACEBACK("RuntimeError: CUDA error: device-side assert triggered")}},
	{PRINTED, DUMP, "label-out-of-range", "certain", {"n_classes"}, {.printed = LABELS, .dump = FAULT_ASSERT, .call = 710}},
	{PRINTED, CALL, "label-out-of-range", "likely", {"n_classes"}, {.printed = LABELS, .call = 710}},
	{KERNEL_LOG, CALL, "gpu-lost", "likely", {"Xid 79"}, {.call = 719, .klog = BUS}},
	{KERNEL_LOG, LOG, "gpu-lost", "likely", {"Xid 79"},
	 {.call = 719, .klog = BUS, .log = TRACEBACK("RuntimeError: CUDA error: unspecified launch failure")}},
	{DUMP, CALL, "misaligned-address", "certain", {"misaligned"}, {.call = 719, .dump = FAULT_MISALIGNED}},
	{DUMP, LOG, "label-out-of-range", "certain", {"n_classes"},
	 {.call = 710, .dump = FAULT_ASSERT, .log = LABELS TRACEBACK("RuntimeError: CUDA error: device-side assert triggered")}},
	{CALL, LOG, "label-out-of-range", "certain", {"n_classes"},
	 {.call = 710, .log = LABELS TRACEBACK("RuntimeError: CUDA error: device-side assert triggered")}},
	{CALL, MEMORY, "oom-other-process", "certain", {"4711"}, {.call = 2, .request = 10 * GIB, .others = 118 * GIB}},
	{CALL, MACHINE, "uvm-broken-after-suspend", "likely", {"suspend"}, {.call = 999, .machine = "laptop-resumed"}},
	{MEMORY, LOG, "oom-other-process", "certain", {"4711"},
	 {.call = 2,
	  .request = 10 * GIB,
	  .others = 118 * GIB,
	  .log = "python train.py --batch-size 64\n" TRACEBACK("torch.OutOfMemoryError: " TOO_MUCH)}},
};

/* Both are told, and nothing is certain. */
static const struct row contradicts[] = {
	{EXCEPTION,
	 PRINTED,
	 NULL,
	 NULL,
	 {"716", "n_classes"},
	 {"RuntimeError", "CUDA error: misaligned address", .printed = LABELS}},
	{EXCEPTION, KERNEL_LOG, NULL, NULL, {"does not say that the kernel killed", "DataLoader worker"}, {WORKER, .klog = ""}},
	{EXCEPTION, DUMP, NULL, NULL, {"716", "an illegal memory access"},
	 {"RuntimeError", "CUDA error: misaligned address", .dump = FAULT_ILLEGAL_ADDRESS}},
	{EXCEPTION,
	 CALL,
	 NULL,
	 NULL,
	 {"700", "CUDA_ERROR_MISALIGNED_ADDRESS"},
	 {"RuntimeError", "CUDA error: misaligned address", .call = 700}},
	{EXCEPTION, LOG, NULL, NULL, {"716", "n_classes"},
	 {"RuntimeError", "CUDA error: misaligned address",
	  .log = LABELS TRACEBACK("RuntimeError: CUDA error: misaligned address")}},
	{PRINTED, CALL, NULL, NULL, {"700", "n_classes"}, {.printed = LABELS, .call = 700}},
	{PRINTED,
	 DUMP,
	 NULL,
	 NULL,
	 {"n_classes", "ind < size"},
	 {.printed = LABELS, .call = 710, .dump = FAULT_ASSERT, .condition = INDICES}},
	{PRINTED, LOG, NULL, NULL, {"n_classes", "p <= 1"},
	 {.printed = LABELS,
	  .call = 710,
	  .log = "../a/Distributions.cu:9: bernoulli: block: [0,0,0], thread: [4,0,0] Assertion `0 <= p && p <= 1` failed.\n"}},
	{KERNEL_LOG, DUMP, NULL, NULL, {"Xid (PCI", "an illegal memory access"},
	 {.call = 700, .dump = FAULT_ILLEGAL_ADDRESS, .klog = "NVRM: Xid (PCI:0000:10:1c): 48, pid=100, DBE"}},
	{KERNEL_LOG, LOG, NULL, NULL, {"Xid 94", "Xid 79"},
	 {.call = 719, .klog = "NVRM: Xid (PCI:0000:10:1c): 94, pid=100, Contained",
	  .log = BUS "\n" TRACEBACK("RuntimeError: CUDA error: unspecified launch failure")}},
	{DUMP, CALL, NULL, NULL, {"716", "an illegal memory access"}, {.call = 716, .dump = FAULT_ILLEGAL_ADDRESS}},
	{DUMP, LOG, NULL, NULL, {"n_classes", "ind < size"},
	 {.call = 710,
	  .dump = FAULT_ASSERT,
	  .condition = INDICES,
	  .log = LABELS TRACEBACK("RuntimeError: CUDA error: device-side assert triggered")}},
	{CALL, LOG, NULL, NULL, {"716", "n_classes"},
	 {.call = 716, .log = LABELS TRACEBACK("RuntimeError: CUDA error: device-side assert triggered")}},
	{MEMORY, LOG, NULL, NULL, {"10737418240", "96636764160"},
	 {.call = 2, .request = 10 * GIB, .others = 118 * GIB,
	  .log = TRACEBACK("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 90.00 GiB. GPU 0 has a total capacity of 139.80 GiB")}},
};

static const char *const names[] = {
#define X(name) #name,
	SOURCES(X)
#undef X
};

/* Pairs that have nothing to say about each other, and why. */
static const struct {
	enum source_id a, b;
	bool decide, contradict;
	const char *why;
} silent[] = {
	{EXCEPTION, MEMORY, false, true, "the figures of a message are rounded, and of another moment"},
	{EXCEPTION, MACHINE, false, true, "a machine is examined after the failure: it may have been mended"},
	{PRINTED, KERNEL_LOG, true, true, "the kernel log has nothing about assertions"},
	{PRINTED, MEMORY, true, true, "memory is looked at when it has run out, where nothing is printed"},
	{PRINTED, MACHINE, true, true, "what is printed comes from kernels that ran: the machine works"},
	{PRINTED, LOG, true, false, "a log has what the program printed, in the same words"},
	{KERNEL_LOG, DUMP, true, false, "a dump is of a fault of the program, an Xid of that kind adds nothing"},
	{KERNEL_LOG, CALL, false, true, "an error of a call never excludes that hardware caused it"},
	{KERNEL_LOG, MEMORY, true, true, "no Xid is about memory that ran out"},
	{KERNEL_LOG, MACHINE, true, true, "the doctor reads the same log"},
	{DUMP, MEMORY, true, true, "there is no dump when memory runs out"},
	{DUMP, MACHINE, true, true, "a kernel ran: the machine works"},
	{CALL, MEMORY, false, true, "the free memory is the call's own"},
	{CALL, MACHINE, false, true, "a machine is examined after the failure: it may have been mended"},
	{MEMORY, MACHINE, true, true, "memory that ran out is no matter of the doctor's"},
	{MACHINE, LOG, true, true, "they are tied by names and versions: tests/e2e/rules_join.py"},
};

static bool is_in(const struct row *list, size_t n, enum source_id a, enum source_id b)
{
	for (size_t i = 0; i < n; i++)
		if (list[i].a == a && list[i].b == b)
			return true;
	return false;
}

static void each__pair_is_asked_or_has_a_reason_not_to_be(void **state)
{
	(void)state;
	for (int a = 0; a < N_SOURCES; a++)
		for (int b = a + 1; b < N_SOURCES; b++) {
			bool decide = is_in(decides, sizeof(decides) / sizeof(decides[0]), a, b);
			bool contradict = is_in(contradicts, sizeof(contradicts) / sizeof(contradicts[0]), a, b);

			for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++) {
				if ((int)silent[i].a != a || (int)silent[i].b != b)
					continue;
				assert_false((decide && silent[i].decide) || (contradict && silent[i].contradict));
				decide |= silent[i].decide;
				contradict |= silent[i].contradict;
			}
			if (!decide || !contradict)
				fail_msg("%s and %s: no row in which %s", names[a], names[b],
					 decide ? "they contradict each other" : "one decides");
		}
}

static bool tells(const json_t *j, const char *words)
{
	char *all = json_dumps(j, JSON_ENCODE_ANY);
	bool found = strstr(all, words) != NULL;

	free(all);
	return found;
}

static bool same_answer(const json_t *a, const json_t *b)
{
	return !strcmp(field(a, "cause"), field(b, "cause")) && !strcmp(field(a, "certainty"), field(b, "certainty"));
}

static void print_row(const struct row *r, const json_t *j, const json_t *a, const json_t *b)
{
	printf("# %s + %s: %s %s; without %s: %s %s; without %s: %s %s\n", names[r->a], names[r->b], field(j, "cause"),
	       field(j, "certainty"), names[r->a], field(a, "cause"), field(a, "certainty"), names[r->b],
	       field(b, "cause"), field(b, "certainty"));
}

static void each__decides_what_the_other_leaves_open(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(decides) / sizeof(decides[0]); i++) {
		const struct row *r = &decides[i];
		struct evidence one = without(r->e, r->a), other = without(r->e, r->b);
		json_t *j = judge_evidence(&r->e), *a = judge_evidence(&one), *b = judge_evidence(&other);

		assert_true(has(&r->e, r->a) && has(&r->e, r->b));
		print_row(r, j, a, b);
		if ((same_answer(j, a) && same_answer(j, b)) || strcmp(field(j, "cause"), r->cause) ||
		    strcmp(field(j, "certainty"), r->sure) || !tells(j, r->told[0])) {
			printf("# WRONG, expected %s %s and '%s'\n", r->cause, r->sure, r->told[0]);
			wrong++;
		}
		json_decref(j);
		json_decref(a);
		json_decref(b);
	}
	assert_int_equal(wrong, 0);
}

static void each__contradiction_is_told_and_makes_nothing_certain(void **state)
{
	size_t wrong = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(contradicts) / sizeof(contradicts[0]); i++) {
		const struct row *r = &contradicts[i];
		struct evidence one = without(r->e, r->a), other = without(r->e, r->b);
		json_t *j = judge_evidence(&r->e), *a = judge_evidence(&one), *b = judge_evidence(&other);

		assert_true(has(&r->e, r->a) && has(&r->e, r->b));
		print_row(r, j, a, b);
		if (!strcmp(field(j, "certainty"), "certain") || !tells(j, r->told[0]) || !tells(j, r->told[1])) {
			printf("# WRONG: certain, or one side is not told\n");
			wrong++;
		}
		json_decref(j);
		json_decref(a);
		json_decref(b);
	}
	assert_int_equal(wrong, 0);
}

/* Words that no table of conditions knows, but that are a message of PyTorch's: the same wherever they come from. */
static void words__of_an_assertion_are_a_message_wherever_they_are(void **state)
{
	static char condition[] = "t >= 0 && \"Dimension out of range (expected to be in range of [-1, 0], but got 1)\"", plain[] = "n_voxels < capacity";
	static const char line[] =
		"train.cu:9: void loss(long*): block: [0,0,0], thread: [4,0,0] Assertion `%s` failed.\n";
	char printed[2][200];

	(void)state;
	snprintf(printed[0], sizeof(printed[0]), line, condition);
	snprintf(printed[1], sizeof(printed[1]), line, plain);
	for (int i = 0; i < 2; i++) {
		const struct evidence from[] = {
			{.call = 710, .dump = FAULT_ASSERT, .condition = i ? plain : condition},
			{.call = 710, .printed = printed[i]},
			{.call = 710, .log = printed[i]},
			{ASSERTED, .log = printed[i]},
		};

		for (size_t k = 0; k < sizeof(from) / sizeof(from[0]); k++) {
			json_t *j = judge_evidence(&from[k]);

			assert_string_equal(field(j, "cause"), i ? "kernel-assert" : "shape-mismatch");
			assert_string_equal(field(j, "certainty"), i && !k ? "certain" : "likely");
			json_decref(j);
		}
	}
}

/* A code says the same in a recording as in a log. */
static void code__of_the_watchdog_is_no_less_in_a_recording(void **state)
{
	const struct evidence e = {"RuntimeError", "CUDA error: the launch timed out and was terminated",
				   .call = 702};
	json_t *j = judge_evidence(&e);

	(void)state;
	assert_string_equal(field(j, "cause"), "watchdog-tdr");
	assert_string_equal(field(j, "certainty"), "likely");
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each__pair_is_asked_or_has_a_reason_not_to_be),
		cmocka_unit_test(each__decides_what_the_other_leaves_open),
		cmocka_unit_test(each__contradiction_is_told_and_makes_nothing_certain),
		cmocka_unit_test(code__of_the_watchdog_is_no_less_in_a_recording),
		cmocka_unit_test(words__of_an_assertion_are_a_message_wherever_they_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
