/* SPDX-License-Identifier: Apache-2.0
 * Finds what keeps the tensors of a process alive, while that waits in its last exception (see run.h).
 *
 * The answer goes into the recording. If it takes too long the process has gone on, and what was read may be wrong: it is dropped.
 */
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "base/pool.h"
#include "base/proc.h"
#include "cuwhy/format.h"
#include "find/memory/holders.h"
#include "read/recording/trace.h"
#include "run/run.h"

#define SEARCH_NS	700000000u	/* of the second that it waits: what was found is read again, and written */

static bool find_chunk(const struct process *p, uint64_t *off)
{
	struct cw_header h;

	if (!process_header(p, &h))
		return false;
	for (uint32_t i = 0; i < h.n_chunks && i < CW_MAX_CHUNKS; i++)
		if (h.chunk[i].kind == CW_CHUNK_HOLDERS && h.chunk[i].len >= sizeof(struct cw_holders)) {
			*off = h.chunk[i].off;
			return true;
		}
	return false;
}

static bool still_waits(const struct process *p, uint64_t off)
{
	uint32_t state = CW_HOLDERS_TOO_LATE;

	return process_read(p, off + offsetof(struct cw_holders, state), &state, sizeof(state)) &&
	       state == CW_HOLDERS_ASKED && proc_pidfd_ended(p->pidfd) == false;
}

static void search(const struct process *p, struct cw_holders *to)
{
	struct holders_ask ask = {
		.pid = p->pid, .exception = to->exception, .for_ns = SEARCH_NS, .until_ns = proc_mono_ns() + SEARCH_NS};
	struct holders found;
	struct pool pool = {0};
	struct trace *t;
	size_t len;
	void *bytes;

	if (to->asked_ns + SEARCH_NS < ask.until_ns)
		ask.until_ns = to->asked_ns + SEARCH_NS;
	bytes = process_bytes(p, &len);
	t = bytes ? trace_from_bytes(bytes, len, NULL) : NULL;
	if (t) {
		holders_ask_of(&ask, t);
		holders_find(&found, &ask, &pool);
		holders_keep(to, &found);
	}
	trace_free(t);
	pool_release(&pool);
}

static void answer(const struct process *p)
{
	const size_t asked = offsetof(struct cw_holders, state), rest = offsetof(struct cw_holders, n);
	struct cw_holders h;
	uint64_t off;

	if (!find_chunk(p, &off) || !process_read(p, off, &h, sizeof(h)) || !still_waits(p, off))
		return;
	h.n = 0;
	search(p, &h);
	h.took_ns = proc_mono_ns() - h.asked_ns;
	log_line("holders", 1, "process %d: %u of them, %llu objects, %llu ms %s", (int)p->pid, h.n,
		 (unsigned long long)h.objects, (unsigned long long)(h.took_ns / 1000000), h.why);
	h.state = CW_HOLDERS_DONE;
	if (still_waits(p, off) && process_write(p, off + rest, (char *)&h + rest, sizeof(h) - rest))
		process_write(p, off + asked, &h.state, sizeof(h.state));
}

void holders_step(struct server *s)
{
	for (size_t i = 0; i < s->n_processes; i++) {
		if (!s->process[i]->holders_asked)
			continue;
		s->process[i]->holders_asked = false;
		answer(s->process[i]);
	}
}
