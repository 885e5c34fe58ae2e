/* SPDX-License-Identifier: Apache-2.0
 * When all is read: what an error is about, and what became of it (see log.h).
 */
#include <string.h>

#include "base/str.h"
#include "find/words/complaint.h"
#include "find/words/log_parts.h"
#include "find/words/observe.h"
#include "read/text/said.h"

/* "got an unexpected keyword argument 'gpus'", "'Namespace' object has no attribute 'gpu'": what a program calls its arguments. */
static bool is_about_argument(const struct text_event *e)
{
	return says_just(e->type, strlen(e->type), SAID_argument_error) || says(e->message, SAID_argument);
}

/* The line that raised it, or one that called it, is about GPUs. */
static bool gpu_in_frames(const struct text_event *e)
{
	for (size_t i = 0; i < e->n_frames; i++)
		if (e->frame[i].source && names_gpu(e->frame[i].source))
			return true;
	return false;
}

/* `import torch.distributed as dist`: no GPU is needed for it. */
static bool is_import(const char *source)
{
	return source && says(source, SAID_import);
}

static bool gpu_package_in_frames(const struct text_event *e)
{
	for (size_t i = 0; i < e->n_frames && !is_import(e->frame[e->n_frames - 1].source); i++) {
		char file[sizeof(((struct raw_frame *)0)->file)];

		str_copy(file, sizeof(file), e->frame[i].file ? e->frame[i].file : "");
		for (char *s = file; *s; s++)
			if (*s == '\\')
				*s = '/';
		if (says(file, SAID_gpu_package))
			return true;
	}
	return false;
}

/* A compiled module, or a library that it needs, cannot be loaded: where GPUs are used it is one of theirs more often than not. */
static bool is_about_library(const struct text_log *l, const struct text_event *e)
{
	bool of_gpu = false;

	for (size_t i = 0; i < said_rows(SAID_of_gpus); i++)
		of_gpu |= text_words_has(&l->in_text, said_words(SAID_of_gpus, i));
	return of_gpu && says_just(e->type, strlen(e->type), SAID_import_error) && says(e->message, SAID_library);
}

/* The line that raised it asks a tool of CUDA's, or a GPU, for what it needs. */
static bool asks_cuda(const struct text_event *e)
{
	const char *source = e->n_frames ? e->frame[e->n_frames - 1].source : NULL;

	return source && says(source, SAID_asks_cuda);
}

/* The libraries did not fit the module, later nvidia-smi answers and something works: whatever it was is over. An answer alone may be
 * that of another machine, the container's host above all. */
static bool is_answered(const struct text_log *l, const struct text_event *e)
{
	return l->machine.answered > e->order && l->runs.progress > l->machine.answered_progress &&
	       says(e->message, SAID_mismatch);
}

void log_finish(struct text_log *l)
{
	for (size_t i = 0; i < l->events.n; i++) {
		struct text_event *e = &l->events.list[i];

		e->gpu = !is_about_argument(e) && (names_gpu(e->type) || names_gpu(e->message));
		e->gpu |= e->cut && (gpu_in_frames(e) || gpu_package_in_frames(e));
		e->gpu |= is_about_library(l, e) || asks_cuda(e);
		e->handled |= is_answered(l, e);
	}
	for (size_t i = 0; i < l->events.n; i++)
		while (str_ends(l->events.list[i].message, "\n"))
			l->events.list[i].message =
				pool_copy(&l->pool, l->events.list[i].message, strlen(l->events.list[i].message) - 1);
	for (size_t i = 0; i < l->input.n_files; i++)
		for (size_t k = 0; k < l->events.n && !l->input.files[i].failed; k++)
			l->input.files[i].failed = l->events.list[k].file == l->input.files[i].name &&
						   !l->events.list[k].peer && !l->events.list[k].warning;
}

/* An exception that nothing caught, of this process itself. */
static bool ended_it(const struct text_event *e)
{
	return e->raised && e->n_frames && !e->warning && !e->peer;
}

/* "terminate called after throwing an instance of 'std::bad_alloc'": a program of C++ ended, and the exception is none of CUDA's. */
static bool is_termination(const struct text_event *e)
{
	return says(e->message, SAID_terminated) && !e->gpu && !text_code(e->message);
}

/* `last` ended the process, and `e` came before it and was survived. A warning that turns CUDA off, and a message that is only cited, are
 * survived by what has nothing to do with GPUs; after anything else the program has to show that it went on. */
static bool outlived(const struct text_event *e, const struct text_event *last)
{
	bool mentioned = e->cited || e->listed;

	if (last->order <= e->order || last->run != e->run || strcmp(last->who, e->who) || strcmp(last->file, e->file))
		return false;
	if (mentioned && is_termination(last))
		return true;
	if (!ended_it(last) && !(mentioned && last->raised && !last->warning && !last->peer))
		return false;
	return last->progress > e->progress ||
	       ((e->warning || mentioned) && !last->gpu && !last->marked && !gpu_in_frames(last));
}

bool log_handled(const struct text_log *l, const struct text_event *e)
{
	if (e->handled)
		return true;
	for (size_t i = 0; i < l->events.n; i++)
		if (outlived(e, &l->events.list[i]))
			return true;
	return false;
}

/* In a few lines, a citation may be all that is said about an error. */
#define FEW_LINES 4

bool log_document(const struct text_log *l)
{
	size_t headings = 0, listed = 0, others = 0;

	for (size_t i = 0; i < l->events.n; i++) {
		const struct text_event *e = &l->events.list[i];

		if (e->n_frames)
			return false;
		if (e->heading)
			headings++;
		else if (e->cited && l->input.order > FEW_LINES)
			continue;
		else if (e->listed)
			listed++;
		else
			others++;
	}
	return l->events.n && (headings + listed >= 2 || (!listed && !others));
}
