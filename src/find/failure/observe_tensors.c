/* SPDX-License-Identifier: Apache-2.0
 * The tensors that the failing function had: names, types and shapes, as the exception's frames showed them.
 *
 * Only those of the frame that runs the function in question. Of a failure that is noticed later the frame has moved on; if it is still that
 * function, its tensors are reported as those of that moment.
 */
#include <string.h>

#include "base/buf.h"
#include "find/failure/observe.h"
#include "read/recording/trace.h"

static bool is_frame(const struct trace *t, const struct cw_frame *f, const struct place *p)
{
	return p->file && p->function && !strcmp(trace_string(t, f->file), p->file) &&
	       !strcmp(function_base(trace_string(t, f->function)), function_base(p->function)) &&
	       f->first_line <= p->line;
}

static const char *shape_text(struct casefile *c, const struct cw_tensor *x)
{
	struct buf b;
	const char *text;

	buf_init(&b, 1024);
	buf_adds(&b, "[");
	for (uint32_t i = 0; i < x->n_dims && i < CW_TENSOR_DIMS; i++)
		buf_printf(&b, "%s%lld", i ? ", " : "", (long long)x->dim[i]);
	buf_adds(&b, x->n_dims > CW_TENSOR_DIMS ? ", ...]" : "]");
	text = pool_copy(c->pool, b.data, b.len);
	buf_release(&b);
	return text;
}

static bool is_word(char ch)
{
	return ch == '_' || (ch >= '0' && ch <= '9') || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
	       (unsigned char)ch >= 0x80;
}

/* Is the variable (of "batch["x"]": batch) a word of this line, and no attribute of another? */
static bool is_used(struct casefile *c, const char *name, const char *source)
{
	const char *variable = pool_copy(c->pool, name, strcspn(name, "["));
	size_t n = strlen(variable);

	for (const char *s = source; s && n && (s = strstr(s, variable)) != NULL; s++)
		if ((s == source || (!is_word(s[-1]) && s[-1] != '.')) && !is_word(s[n]))
			return true;
	return false;
}

static void tensor_add(struct casefile *c, const struct trace *t, const struct cw_tensor *x)
{
	struct tensor_seen *to = &c->tensors[c->n_tensors++];
	size_t n = x->n_dims < CW_TENSOR_DIMS ? x->n_dims : CW_TENSOR_DIMS;

	*to = (struct tensor_seen){.name = case_keep(c, trace_string(t, x->name)),
				   .dtype = case_keep(c, trace_string(t, x->dtype)),
				   .device = case_keep(c, trace_string(t, x->device)),
				   .shape = shape_text(c, x),
				   .n_dims = n};
	memcpy(to->dim, x->dim, n * sizeof(to->dim[0]));
	if (!to->name || !to->dtype || !to->device) {
		c->n_tensors--;
		return;
	}
	to->used = is_used(c, to->name, c->line[LINE_where].source);
}

void observe_tensors(struct casefile *c, const struct incident *i, const struct trace *t, const struct scene *s)
{
	size_t n = 0;
	const struct cw_tensor *all = trace_chunk(t, CW_CHUNK_TENSORS, &n), *first = NULL;

	n /= sizeof(*all);
	if (!n || !incident_from(i, CW_SRC_PYTHON) || c->tensors)
		return;
	for (size_t k = 0; k < n && !first; k++)
		if (all[k].seq && is_frame(t, &all[k].frame, &s->where))
			first = &all[k];
	if (!first)
		return;
	c->tensors = pool_alloc(c->pool, n * sizeof(*c->tensors));
	c->tensors_late = first->frame.line != s->where.line || fact_true(c, FACT_error_async);
	for (const struct cw_tensor *x = first; x < all + n; x++)
		if (x->seq && x->number == first->number)
			tensor_add(c, t, x);
}
