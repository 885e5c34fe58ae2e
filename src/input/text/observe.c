/* SPDX-License-Identifier: Apache-2.0
 * Facts from a text (see fact_text.h).
 */
#include "input/text/observe.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "case/assert.h"
#include "case/message.h"
#include "case/line.h"
#include "formats/xid.h"
#include "input/text/log.h"
#include "compat/cuda_errors.h"

#define STACK_TEXT_MAX 12000

static const struct { const char *phase, *words; } phases[] = {
#define MARK_PHASE(phase, words) { phase, words },
#include "kb/text_marks.def"
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static bool says(const void *arg, const char *words)
{
	return log_hit(arg, words) != NULL;
}

/* ---- the error -------------------------------------------------------------------------------------- */

static void set_status(struct casefile *f, const char *s)
{
	static const char *const families[] = {"CUBLAS_STATUS_", "CUDNN_STATUS_", "CUSOLVER_STATUS_", "CUSPARSE_STATUS_", "CUFFT_", "NVRTC_ERROR_",
					       "ncclUnhandledCudaError", "ncclSystemError", "ncclInternalError", "ncclInvalidUsage",
					       "ncclInvalidArgument", "ncclRemoteError"};

	fact_set_text(f, FACT_text_status, "");
	for (size_t i = 0; i < COUNT(families); i++) {
		const char *at = strstr(s, families[i]);
		size_t n = 0;

		if (!at)
			continue;
		while (isalnum((unsigned char)at[n]) || at[n] == '_')
			n++;
		fact_set_text(f, FACT_text_status, pool_copy(f->pool, at, n));
		return;
	}
}

/* Statuses that libraries return when they cannot have memory, among other reasons. */
static const char *masked_status(const char *text)
{
	static const char *const statuses[] = {
		"CUBLAS_STATUS_ALLOC_FAILED", "CUDNN_STATUS_ALLOC_FAILED", "CUSOLVER_STATUS_ALLOC_FAILED", "CUSPARSE_STATUS_ALLOC_FAILED",
		"CUFFT_ALLOC_FAILED", "cublas runtime error : resource allocation failed", "CUBLAS_STATUS_NOT_INITIALIZED",
		"CUDNN_STATUS_NOT_INITIALIZED", "CUDNN_STATUS_INTERNAL_ERROR", "CUBLAS_STATUS_INTERNAL_ERROR", "CUSOLVER_STATUS_INTERNAL_ERROR",
		"unable to find an engine to execute this computation", "Unable to find a valid cuDNN algorithm", "No valid engine configs",
	};

	for (size_t i = 0; i < COUNT(statuses); i++)
		if (strcasestr(text, statuses[i]))
			return statuses[i];
	return "";
}

static void fill_error(struct casefile *f, const struct text_event *e, uint32_t code)
{
	const char *type = e ? e->type : "", *message = e ? e->message : "";
	const char *dot = strrchr(type, '.');

	fact_set_number(f, FACT_error_code, code);
	fact_set_text(f, FACT_error_name, code ? cuda_error_name(code) : NULL);
	fact_set_text(f, FACT_error_string, code ? cuda_error_text(code) : pool_copy(f->pool, message, strcspn(message, "\n")));
	fact_set_text(f, FACT_error_text, message);
	fact_set_text(f, FACT_error_source, "text");
	fact_set_flag(f, FACT_error_async, cuda_error_sticky(code) == 1);
	fact_set_flag(f, FACT_error_sticky, cuda_error_sticky(code) == 1);
	fact_set_flag(f, FACT_error_raised, type[0] != '\0');
	fact_set_number(f, FACT_error_count, e ? (double)e->count : 0);
	set_status(f, message);
	fact_set_text(f, FACT_masked_status, masked_status(message));
	fact_set_flag(f, FACT_masked_oom, false);
	if (!e)
		return;
	if (type[0])
		fact_set_text(f, FACT_python_type, dot ? dot + 1 : type);
	fact_set_text(f, FACT_python_message, message);
	fact_set_text(f, FACT_check_message, pool_copy(f->pool, message, strcspn(message, "\n")));
}

/* ---- where ------------------------------------------------------------------------------------------ */

static const char *frame_text(struct casefile *f, const struct text_frame *t)
{
	const char *function = t->function ? t->function : "", *source = t->source ? t->source : "";

	if (!t->file)
		return pool_printf(f->pool, ": %s", source);
	return pool_printf(f->pool, "%s:%u in %s: %s", t->file, t->line, function, source);
}

/* Windows writes its paths with the other slash. */
static enum owner owner_of(const char *file)
{
	char plain[400];

	str_copy(plain, sizeof(plain), file);
	for (char *s = plain; *s; s++)
		if (*s == '\\')
			*s = '/';
	if (str_starts(plain, "torch/") || strstr(plain, "/torch/nn/") || strstr(plain, "/torch/cuda/") || strstr(plain, "/torch/utils/"))
		return OWNER_TORCH;
	if (str_starts(plain, "triton/"))
		return OWNER_TRITON;
	return frame_owner(plain, "");
}

int text_where(const struct text_event *e)
{
	int library = -1;

	for (size_t i = e->n_frames; i-- > 0;) {
		enum owner owner;

		if (!e->frame[i].file)
			continue;
		owner = owner_of(e->frame[i].file);
		if (owner == OWNER_USER)
			return (int)i;
		if (library < 0 && owner == OWNER_LIBRARY)
			library = (int)i;
	}
	return library;
}

static void fill_where(struct casefile *f, const struct text_event *e)
{
	const char *all = "", *top = "";
	int at = e ? text_where(e) : -1;

	for (size_t i = e ? e->n_frames : 0; i-- > 0;) {
		const char *line = frame_text(f, &e->frame[i]);

		top = top[0] ? top : line;
		if (strlen(all) + strlen(line) < STACK_TEXT_MAX)
			all = pool_printf(f->pool, "%s\n%s", line, all);
	}
	fact_set_text(f, FACT_text_stack, all);
	fact_set_text(f, FACT_text_top, top);
	fact_set_text(f, FACT_text_before, e ? e->before : "");
	if (at < 0)
		return;
	fact_set_text(f, FACT_where_line, pool_printf(f->pool, "%s:%u", e->frame[at].file, e->frame[at].line));
	if (e->frame[at].source)
		fact_set_text(f, FACT_where_source, e->frame[at].source);
}

static void fill_phase(struct casefile *f)
{
	const char *stack = fact_text(f, FACT_text_stack), *before = fact_text(f, FACT_text_before);
	const char *last = before;
	size_t n = strlen(before);

	/* only the last few lines before the error: what came earlier is over */
	for (int lines = 0; n > 0 && lines < 5; n--)
		if (before[n - 1] == '\n' && ++lines == 5)
			last = before + n;
	fact_set_text(f, FACT_text_phase, "");
	for (size_t i = 0; i < COUNT(phases); i++)
		if (strcasestr(stack, phases[i].words) || strcasestr(last, phases[i].words) ||
		    strcasestr(fact_text(f, FACT_error_text), phases[i].words))
			fact_set_text(f, FACT_text_phase, phases[i].phase);
}

/* ---- a failed assertion ----------------------------------------------------------------------------- */

/* Embeddings are called by many names; `stack` has a frame a line, innermost last. */
static const char *op_of_stack(const char *stack)
{
	static const char *const names[] = {"embedding", "embed_tokens", "word_emb", "wte(", "embeddings(", "embed("};

	for (size_t i = 0; i < COUNT(names); i++)
		if (strcasestr(stack, names[i]))
			return "embedding";
	return "";
}

static void assert_facts_of_text(struct casefile *f, const char *function, const char *condition, const char *file, uint32_t line,
			  const char *stack)
{
	double bound;

	fact_set_text(f, FACT_assert_kernel, function);
	fact_set_text(f, FACT_assert_function, function);
	fact_set_text(f, FACT_assert_condition, condition);
	fact_set_text(f, FACT_assert_file, file);
	if (line)
		fact_set_number(f, FACT_assert_line, line);
	fact_set_text(f, FACT_assert_about, assert_about_condition(function, condition));
	if (assert_bound_in_text(condition, &bound))
		fact_set_number(f, FACT_assert_bound, bound);
	fact_set_text(f, FACT_assert_op, op_of_stack(stack));
	fact_set_flag(f, FACT_assert_position, assert_names_position(stack));
}

/* ---- memory ----------------------------------------------------------------------------------------- */

static void fill_memory_of_text(struct casefile *f, const struct text_event *e, uint32_t code)
{
	const char *message = e ? e->message : "", *stack = fact_text(f, FACT_text_stack);
	bool oom = code == CODE_OUT_OF_MEMORY || (e && strstr(e->type, "OutOfMemory")) || strstr(message, "CUDA out of memory");
	double request, left;

	fact_set_flag(f, FACT_oom_is, oom);
	fact_set_flag(f, FACT_snapshot_is, false);
	fact_set_flag(f, FACT_grow_is, false);
	fact_set_flag(f, FACT_others_known, false);
	fact_set_flag(f, FACT_load_is, strstr(stack, "torch/serialization.py") || strstr(stack, "safetensors/") || strstr(stack, "torch.load("));
	fact_set_number(f, FACT_graph_nodes, 0);
	/* what PyTorch's own allocator of device memory could not give has numbers */
	fact_set_flag(f, FACT_oom_host, oom && !strstr(message, "Tried to allocate") &&
		      (strstr(stack, "pin_memory") || strstr(message, "pin memory thread") || strstr(message, "cudaHostAlloc") ||
		       strstr(message, "cudaHostRegister") || strstr(message, "pinned")));
	fact_set_number(f, FACT_process_local_rank, e && e->rank >= 0 ? e->rank : -1);
	facts_from_message(f, message);
	if (oom && strstr(message, "already allocated"))
		fact_set_text(f, FACT_error_source, "torch-oom");
	if (oom && strstr(message, "is allocated by PyTorch"))
		fact_set_text(f, FACT_error_source, "torch-oom");
	case_memory_parts(f);
	request = fact_number(f, FACT_oom_request, -1);
	left = fact_number(f, FACT_oom_free, -1);
	if (request >= 0 && left >= 0)
		fact_set_number(f, FACT_oom_missing, request > left ? request - left : 0);
}

/* ---- the kernel log --------------------------------------------------------------------------------- */

static void fill_xids(struct casefile *f, struct text_log *l)
{
	struct xid_log log = {.readable = true};
	const char *const *lines;
	const struct xid *worst = NULL;
	size_t n = log_xids(l, &lines);

	for (size_t i = 0; i < n; i++)
		xid_line(&log, lines[i], false);
	for (size_t i = 0; i < log.n; i++)
		if (!worst || xid_class(log.line[i].number) > xid_class(worst->number))
			worst = &log.line[i];
	if (!worst)
		return;
	fact_set_number(f, FACT_xid_number, worst->number);
	fact_set_text(f, FACT_xid_class, xid_class_id(xid_class(worst->number)));
	fact_set_text(f, FACT_xid_meaning, xid_meaning(worst->number));
	fact_set_text(f, FACT_xid_text, worst->text);
	fact_set_flag(f, FACT_xid_ours, true);
}

/* ---- all of it -------------------------------------------------------------------------------------- */

/* What every cause asks for, so that "could not be checked" names only what might have been it. */
static void fill_rest(struct casefile *f)
{
	fact_set_flag(f, FACT_dump_missing, false);
	fact_set_flag(f, FACT_hang_is, false);
	fact_set_flag(f, FACT_launch_is, false);
	fact_set_text(f, FACT_fault_kind, "");
	fact_set_number(f, FACT_suspects_lines, 0);
	fact_set_number(f, FACT_suspects_launches, 0);
	fact_set_number(f, FACT_fault_lines, 0);
	fact_set_text(f, FACT_address_in, "");
	fact_set_flag(f, FACT_torch_loaded, true);
	fact_set_flag(f, FACT_process_forked, false);
	fact_set_flag(f, FACT_visible_set, false);
	fact_set_flag(f, FACT_visible_changed, false);
	if (!fact_known(f, FACT_shared_by))
		fact_set_text(f, FACT_shared_by, "");
	facts_without_assert(f);
}

void facts_of_text(struct casefile *f, struct text_log *l, const struct text_event *e)
{
	const struct text_assert *a;
	size_t n = log_asserts(l, &a);
	bool first = n && (!e || a[0].line <= e->line);
	uint32_t code = first ? 710 : e ? text_code(e->message) : 0;	/* whatever was noticed later comes from the assertion */

	f->says = says;
	f->says_arg = l;
	fact_set_flag(f, FACT_text_is, true);
	fact_set_flag(f, FACT_text_error, (e && !e->warning) || n);
	fact_set_flag(f, FACT_text_warning, e && e->warning);
	if (e)
		fact_set_number(f, FACT_text_line, (double)e->line);
	fill_error(f, e, code);
	fill_where(f, e);
	fill_phase(f);
	fact_set_flag(f, FACT_text_progress, e ? log_progress_before(l, e->line) : log_progress(l));
	fact_set_number(f, FACT_text_ranks, (double)log_ranks(l));
	fact_set_number(f, FACT_text_asserts, 0);
	fact_set_flag(f, FACT_text_assert_first, first);
	if (n) {
		fact_set_number(f, FACT_text_asserts, (double)a[0].count);
		fact_set_number(f, FACT_fault_threads, (double)a[0].count);
		assert_facts_of_text(f, a[0].function ? a[0].function : "", a[0].condition, a[0].file, a[0].source_line,
				     fact_text(f, FACT_text_stack));
	}
	fill_memory_of_text(f, e, code);
	facts_of_text_machine(f, log_env(l));
	fill_xids(f, l);
	fill_rest(f);
}
