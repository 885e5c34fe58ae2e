/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a library with fat binaries, read and judged for several GPUs and drivers.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "formats/fatbin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile uint64_t sink;	/* what was read must have been read */

static void use_sets(const struct fatbin *f)
{
	uint64_t counted = 0;

	for (size_t i = 0; i < f->n_sets; i++) {
		counted += f->set[i].count;
		for (size_t k = 0; k < f->set[i].n; k++) {
			if (f->set[i].target[k] >= f->n || (k && f->set[i].target[k] <= f->set[i].target[k - 1]))
				abort();
			sink += (uint64_t)f->target[f->set[i].target[k]].arch;
		}
	}
	if (counted != f->binaries && !f->damaged)
		abort();	/* some were lost without a message */
}

static void use_answers(const struct fatbin *f)
{
	static const int devices[] = {0, 37, 70, 75, 87, 90, 103, 120, 990}, drivers[] = {0, 11040, 12080, 13000, 99000};
	struct fatbin_coverage c;
	struct buf text;

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		for (size_t k = 0; k < sizeof(drivers) / sizeof(drivers[0]); k++) {
			c = fatbin_covers(f, devices[i], drivers[k]);
			if (f->damaged && c.cover != FATBIN_COVER_UNKNOWN)
				abort();
			sink += c.sass + c.none;
		}
	buf_init(&text, 1 << 16);
	fatbin_archs(f, true, &text);
	fatbin_archs(f, false, &text);
	sink += text.len;
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = {0};
	struct fatbin *f = fatbin_from_bytes(data, size, &e);

	if (!f) {
		if (e.code == 0 || !e.msg[0])
			abort();	/* rejected without a message */
		return 0;
	}
	use_sets(f);
	use_answers(f);
	fatbin_free(f);
	return 0;
}
