/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a memory trace, played back as it was and with other settings.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/str.h"
#include "find/memory/replay.h"
#include "tests/unit/memory_make.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;	/* what was read must have been read */

/* The sites that events refer to: the first is of PyTorch's segments, the third of another library's memory. */
static struct trace *recording(void)
{
	struct mm m;

	mm_init(&m);
	m.b.h->device[0].total_bytes = 8 * GIB;
	str_copy(m.b.h->torch_version, sizeof(m.b.h->torch_version), "2.11.0");
	m.site[mm_site(&m, 0, 0, CW_MEM_DEVICE, 0)].library = m.c10;
	mm_site(&m, tb_stack(&m.b, USER, NULL), 0, CW_MEM_TORCH, 0);
	mm_site(&m, 0, 0, CW_MEM_DEVICE, 8);
	m.site[mm_site(&m, 0, 0, CW_MEM_VMM, 0)].library = m.c10;
	m.site[mm_site(&m, 0, 0, CW_MEM_RESERVED, 0)].library = m.c10;
	return tb_trace(&m.b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const words[] = {"", "expandable_segments:True",
					    "max_split_size_mb:24,roundup_power2_divisions:8",
					    "per_process_memory_fraction:0.5,garbage_collection_threshold:0.3"};
	static struct trace *trace;
	struct replay_question q;
	struct replay_over_time o;
	struct replay_answer a;
	struct replay *r;

	if (!trace)
		trace = recording();
	r = replay_new(trace, data, size, 0, NULL);
	for (size_t i = 0; r && i < sizeof(words) / sizeof(words[0]); i++) {
		q = replay_same(r);
		if (replay_settings(r, words[i], &q.settings, NULL))
			continue;
		q.total >>= i;
		q.unsure = (uint64_t)i << 27;
		replay_ask_over_time(r, &q, &a, &o);
		if (o.n > replay_intervals(r).n)
			abort();
		sink += a.peak_reserved + a.spare + a.failure.stack + (o.n ? o.reserved[o.n - 1] : 0);
	}
	replay_free(r);
	return 0;
}
