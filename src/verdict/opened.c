/* SPDX-License-Identifier: Apache-2.0
 * Opens a process of a recording (see opened.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "verdict/opened.h"
#include "read/recording/recording.h"
#include "find/fault/culprit.h"
#include "find/fault/fault.h"
#include "verdict/process.h"
#include "verdict/verdict.h"
#include "read/recording/trace.h"

static void read_dump(struct opened *o, struct recorded_process *p)
{
	size_t len = strlen(p->part) - (str_ends(p->part, PART_SUFFIX) ? strlen(PART_SUFFIX) : 0);
	char *core = xasprintf("%.*s" DUMP_SUFFIX, (int)len, p->part);

	if (fs_exists(core) && (o->dump = dump_open(core, NULL)) != NULL) {
		p->end.fault = o->fault = culprit_of_process(o->dump, o->trace);
		p->end.fault_mark = dump_mark(o->dump);
	}
	free(core);
}

int opened_read(struct opened *o, struct recorded_process *p, struct err *e)
{
	*o = (struct opened){0};
	if (!p->part)
		return 0;
	o->trace = trace_open(p->part, e);
	if (!o->trace)
		return e && e->code ? e->code : -EINVAL;
	if (!p->end_known)
		end_from_header(&p->end, trace_header(o->trace));
	read_dump(o, p);
	return 0;
}

void opened_release(struct opened *o, struct recorded_process *p)
{
	p->end.fault = NULL;
	culprit_free(o->fault);
	dump_free(o->dump);
	trace_free(o->trace);
}

struct verdict *opened_judge_beside(const struct opened *o, const struct recorded_process *p,
				    const struct inputs_beside *beside)
{
	struct verdict *v = verdict_of_process_beside(o->trace, &p->end, beside);
	/* what was found at the time is about the recording alone, not about what other inputs add */
	json_t *stored = !beside && strcmp(verdict_cause(v), "none") != 0 ? recording_verdict(p) : NULL;

	if (stored && verdict_restore(v, stored))
		verdict_tell_damage(v);
	json_decref(stored);
	return v;
}

struct verdict *opened_judge(const struct opened *o, const struct recorded_process *p)
{
	return opened_judge_beside(o, p, NULL);
}
