/* SPDX-License-Identifier: Apache-2.0
 * Fuzz target: any bytes as files of a job. The first byte says of which kind; files of ranks are separated by bytes of 0, read,
 * judged and printed.
 *
 * Built by libFuzzer (tests/fuzz/fuzz.sh), and with driver.c as a plain program over the corpus.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "read/rank/flight.h"
#include "read/rank/folder.h"
#include "find/job/order.h"
#include "show/job_report.h"
#include "show/page_job.h"
#include "show/report.h"

#define FILES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_rank(struct job *j, const uint8_t *data, size_t n)
{
	json_t *o = json_loadb((const char *)data, n, 0, NULL);
	struct job_rank r;

	if (o && job_rank_read(&r, o, &j->pool))
		job_attempt_add(j->attempt, &r);
	json_decref(o);
}

static void add_flight(struct job *j, const uint8_t *data, size_t n, unsigned int number)
{
	char name[32];
	struct err e = {0};
	struct job_rank r;

	snprintf(name, sizeof(name), "attempt_0/%u/error.json", number);
	if (flight_from_bytes(&r, name, data, n, &j->pool, &e) == 0)
		job_attempt_add(j->attempt, &r);
}

static void judge(struct job *j, FILE *null)
{
	const struct text_style style = {.width = 80};
	struct job_answer *answer;

	job_attempt_sort(j->attempt);
	answer = job_judge(j->attempt);
	job_text(null, j, &answer, &style);
	json_decref(job_json(j, &answer));
	json_decref(page_job_json(j, &answer));
	job_answer_free(answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct job *j = calloc(1, sizeof(*j));
	const uint8_t *end = data + size;
	unsigned int n = 0;

	if (!null)
		null = fopen("/dev/null", "we");
	if (!j || !null || !size) {
		free(j);
		return 0;
	}
	j->id = "fuzz";
	j->attempt = calloc(1, sizeof(*j->attempt));
	j->n_attempts = 1;
	if (*data++ == 'p') {	/* a pickle has bytes of 0 itself */
		add_flight(j, data, (size_t)(end - data), 0);
	} else {
		while (data < end && n++ < FILES_MAX) {
			const uint8_t *zero = memchr(data, 0, (size_t)(end - data)), *to = zero ? zero : end;

			if (*data == 'f')
				add_flight(j, data + 1, (size_t)(to - data - 1), n);
			else
				add_rank(j, data, (size_t)(to - data));
			data = to + 1;
		}
	}
	if (j->attempt)
		judge(j, null);
	job_free(j);
	return 0;
}
