/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a PyTorch memory snapshot, analyzed at several moments, judged and printed.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "find/memory/observe_snapshot.h"
#include "show/page.h"
#include "verdict/verdict.h"
#include "show/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define DEVICES_MAX	4

static volatile uint64_t sink;	/* what was read must have been read */

static void use_page(const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d,
		     const struct verdict *v)
{
	struct page *p = page_new("snapshot", "s");

	page_add_snapshot(p, s, l, d, 1, v);
	page_set_verdict(p, v, NULL);
	sink += json_object_size(page_data(p));
	page_free(p);
}

static void use_device(const struct snapshot *s, const struct snap_lines *l, int device, FILE *null)
{
	struct snap_device d;
	struct snap_holder *h;
	struct verdict *v;
	uint64_t chart[16];
	size_t n;

	snap_analyze(&d, s, l, device);
	for (int i = 0; i < 3; i++) {
		n = snap_holders(&d, l, i == 0 ? 0 : i == 1 ? d.replay.peak_moment : d.replay.n, &h);
		for (size_t k = 0; k < n; k++)
			sink += h[k].bytes + strlen(snap_text(s, snap_line(l, h[k].line)->file));
		free(h);
	}
	snap_timeline(&d, chart, 16);
	sink += chart[0] + d.all.reserved + d.n_parts;
	v = verdict_of_snapshot(s, l, &d);
	report_json(null, v, false);
	report_text(null, v, NULL);
	report_text(null, v, &(struct text_style){.verbose = true});
	use_page(s, l, &d, v);
	verdict_free(v);
	snap_device_release(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct err e = {0};
	struct snap_lines l;
	struct snapshot *s;

	if (!null && !(null = fopen("/dev/null", "w")))
		abort();
	sink += snap_is_snapshot(data, size);
	s = snap_from_bytes(data, size, &e);
	if (!s) {
		if (e.code == 0 || !e.msg[0])
			abort();	/* rejected without a message */
		return 0;
	}
	snap_lines_find(&l, s, snapshot_owner);
	for (int i = 0; i < snap_devices(s) && i < DEVICES_MAX; i++)
		use_device(s, &l, i, null);
	snap_lines_release(&l);
	snap_free(s);
	return 0;
}
