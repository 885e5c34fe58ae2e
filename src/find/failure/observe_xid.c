/* SPDX-License-Identifier: Apache-2.0
 * What the kernel log says about the time of an incident: Xids distinguish a defective GPU from a faulty program.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "find/failure/observe.h"
#include "formats/xid.h"
#include "compat/cuda_errors.h"
#include "read/recording/trace.h"

bool xid_matters(uint32_t code)
{
	return !code || code == CODE_ECC_UNCORRECTABLE || code == CODE_NVLINK_UNCORRECTABLE || cuda_error_sticky(code);
}

/* The GPU that the incident happened on, NULL when that is not known. */
static const uint8_t *uuid_of(const struct incident *i, const struct cw_header *h)
{
	static const uint8_t none[16];
	uint32_t n = h->device_count < CW_MAX_DEVICES ? h->device_count : 0;
	int32_t d = n == 1 ? 0 : i->lead->device;

	if (d < 0 || (uint32_t)d >= n || memcmp(h->device[d].uuid, none, sizeof(none)) == 0)
		return NULL;
	return h->device[d].uuid;
}

const struct xid *incident_xid(const struct incident *i, const struct trace *t, int *about)
{
	const struct xid_log *log = i->xids;
	const struct cw_header *h = trace_header(t);
	const struct xid *found = NULL;

	/* the simulated GPU has no Xids, and those of a real GPU have nothing to do with the program */
	for (size_t k = 0; log && log->readable && !h->sim && k < log->n; k++) {
		const struct xid *x = &log->line[k];
		int ours = xid_is_about(log, x, h->pid, uuid_of(i, h));

		if (ours == 0 || (found && xid_class(x->number) <= xid_class(found->number)))
			continue;
		found = x;
		*about = ours;
	}
	return found;
}

/* Is the number in the text, by itself? */
static bool has_number(const char *text, uint32_t number)
{
	char digits[16];
	size_t n = (size_t)snprintf(digits, sizeof(digits), "%u", number);

	for (const char *s = text; (s = strstr(s, digits)) != NULL; s += n)
		if ((s == text || !isdigit((unsigned char)s[-1])) && !isdigit((unsigned char)s[n]))
			return true;
	return false;
}

/* A process that the messages name, a worker for instance, was killed by the kernel. Numbers in a container are others than the kernel's: only a
 * log without any says that it killed none. */
static void fill_kill(struct casefile *f, const struct incident *i)
{
	if (i->xids && !i->code && i->xids->readable && !i->xids->lost && !i->xids->n_kills)
		fact_set_text(f, FACT_ram_killed, "");
	for (size_t k = 0; i->xids && !i->code && k < i->xids->n_kills; k++)
		if (has_number(fact_text(f, FACT_error_text), i->xids->kill[k].pid))
			fact_set_text(f, FACT_ram_killed, i->xids->kill[k].text);
}

void fill_xid(struct casefile *f, const struct incident *i, const struct trace *t)
{
	int about = -1;
	const struct xid *x = incident_xid(i, t, &about);

	fill_kill(f, i);
	if (!x && !trace_header(t)->sim && (!i->xids || !i->xids->readable || i->xids->lost))
		return;
	fact_set_number(f, FACT_xid_number, x ? x->number : 0);
	fact_set_text(f, FACT_xid_class, x ? xid_class_id(xid_class(x->number)) : "");
	fact_set_text(f, FACT_xid_text, x ? x->text : "");
	fact_set_text(f, FACT_xid_meaning, x ? xid_meaning(x->number) : "");
	fact_set_flag(f, FACT_xid_ours, about == 1);
}
