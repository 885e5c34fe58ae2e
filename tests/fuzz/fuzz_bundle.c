/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as a bundle of `cuwhy doctor`, read, judged, printed, written again and cleaned of names.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/err.h"
#include "read/machine/machine.h"
#include "verdict/doctor.h"
#include "show/report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct machine *m, FILE *null)
{
	struct doctor *d = doctor_judge(m);
	json_t *again = machine_to_json(m);

	doctor_text(null, d, m, NULL, true);
	doctor_json(null, d, m, true);
	free(bundle_redact_for(again, NULL));
	free(bundle_list(again));
	json_decref(again);
	doctor_free(d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct err e = {0};
	struct machine m;
	json_t *o = json_loadb((const char *)data, size, 0, NULL);

	if (!null)
		null = fopen("/dev/null", "we");
	if (!o || !null)
		return 0;
	if (machine_from_json(&m, o, &e) == 0)
		use(&m, null);
	machine_release(&m);
	json_decref(o);
	return 0;
}
