/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy report BUNDLE`: what the doctor says of a machine, as a page.
 */
#include <ctype.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "cmd/cmd.h"
#include "cmd/report.h"
#include "input/machine/machine.h"
#include "judge/doctor.h"
#include "write/page.h"
#include "base/banned.h"

#define TEXT_WIDTH	100

bool report_is_bundle(const char *path)
{
	FILE *f = fs_is_dir(path) ? NULL : fopen(path, "re");
	int c = EOF;

	while (f && (c = getc(f)) != EOF && isspace(c))
		;
	if (f)
		fclose(f);
	return c == '{';
}

static char *text_of(const struct doctor *d, const struct machine *m)
{
	struct text_style style = {.width = TEXT_WIDTH};
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f) {
		doctor_text(f, d, m, &style, false);
		fclose(f);
	}
	return text;
}

int report_bundle(const char *path, struct err *e)
{
	struct machine m = {.pid = 0};
	int status = EXIT_TROUBLE;
	struct doctor *d;
	struct page *p;
	char *text;

	if (machine_load(&m, path, e) == 0) {
		d = doctor_judge(&m);
		p = page_new("bundle", path);
		text = text_of(d, &m);
		page_add_machine(p, d, &m);
		page_set_verdict(p, doctor_verdict(d), NULL);
		page_set_checks(p, d);
		status = report_finish(p, doctor_verdict(d), path, text);
		free(text);
		page_free(p);
		doctor_free(d);
	}
	machine_release(&m);
	return status;
}
