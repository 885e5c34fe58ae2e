/* SPDX-License-Identifier: Apache-2.0
 * What an event of a Chrome trace knows: lines, stacks, parameters, arguments.
 */
#include "write/chrometrace_priv.h"

#include <stdio.h>
#include <string.h>

#include "input/recording/place.h"
#include "base/json_text.h"
#include "compat/cuda_errors.h"
#include "input/recording/trace.h"

#define FRAMES_MAX	32	/* of a stack */
#define TEXT_BYTES	1000

json_t *chrome_hex(uint64_t n)
{
	return json_sprintf("0x%llx", (unsigned long long)n);
}

json_t *chrome_place(const struct trace *t, const char *file, uint32_t line, const char *function)
{
	char text[TEXT_BYTES];

	snprintf(text, sizeof(text), "%s:%u%s%s", file_shown(file, trace_header(t)->cwd), line,
		 function && function[0] ? " in " : "", function ? function : "");
	return json_text(text);
}

void chrome_add_line(struct trace *t, json_t *args, const char *key, uint32_t stack)
{
	struct place p = {0};

	if (stack && place_of_stack(t, stack, &p) && p.file)
		json_object_set_new(args, key, chrome_place(t, p.file, p.line, p.function));
}

void chrome_add_stack(struct trace *t, json_t *args, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	json_t *list;

	if (!s || s->n < 2)
		return;
	list = json_array();
	for (uint32_t i = 0; i < s->n && i < FRAMES_MAX; i++)
		json_array_append_new(list, chrome_place(t, trace_string(t, s->frame[i].file), s->frame[i].line,
						       trace_string(t, s->frame[i].function)));
	json_object_set_new(args, "stack", list);
}

static json_t *json_parameter(const struct cw_launch *l, uint32_t off, uint32_t size)
{
	uint64_t value = 0;

	if (size > sizeof(value))
		return json_sprintf("%u bytes", size);
	memcpy(&value, l->params + off, size);
	return chrome_hex(value);
}

void chrome_add_parameters(struct trace *t, json_t *args, const struct cw_launch *l)
{
	const struct cw_function *f = trace_function(t, l->func);
	const struct cw_layout *layout = f ? trace_layout(t, f) : NULL;
	json_t *list;

	if (!layout || !l->n_param)
		return;
	list = json_array();
	for (uint32_t i = 0; i < layout->n && layout->param[i].off + layout->param[i].size <= l->n_param; i++)
		json_array_append_new(list, json_parameter(l, layout->param[i].off, layout->param[i].size));
	json_object_set_new(args, "parameters", list);
}

void chrome_add_result(json_t *args, uint32_t code)
{
	if (code)
		json_object_set_new(args, "error", json_sprintf("%u %s", code, cuda_error_name(code)));
}

/* "address:d size:z": names for the numbers. */
void chrome_add_arguments(json_t *args, const struct cw_call *c)
{
	const char *at = api_args(c->api);
	char name[48];

	for (int i = 0; i < 6 && *at; i++) {
		size_t n = strcspn(at, ": ");

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		json_object_set_new(args, name, chrome_hex(c->arg[i]));
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
}
