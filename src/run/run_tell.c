/* SPDX-License-Identifier: Apache-2.0
 * What `cuwhy run` prints about processes that failed, and stores of their verdicts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "show/report.h"
#include "base/mem.h"
#include "read/recording/recording.h"
#include "run/run.h"
#include "base/json.h"
#include "verdict/verdict.h"
#include "show/report_json.h"

/* A job may have a thousand ranks: beyond this many, they are only counted. */
#define SAME_MAX 8

/* The verdict's JSON with the path of the recording and what went wrong with it; one line, owned by the
 * caller. */
static char *json_of(const struct verdict *v, const char *recording, const char *warning, struct judge *j)
{
	json_t *o = verdict_json(v);
	char *text;

	json_object_set_new(o, "recording", json_text(recording));
	if (warning)
		json_object_set_new(o, "warning", json_text(warning));
	if (j && j->guard.any)
		json_object_set_new(o, "guard", guard_json(&j->guard));
	if (j && (dry_run_took_place(&j->dry) || (j->writes && run_writes_active(j->writes))))
		json_object_set_new(o, "dry_run", dry_run_json(&j->dry, j->writes));
	text = json_string_of(o, JSON_COMPACT);
	json_decref(o);
	return text ? text : xstrdup("{}");
}

/* Cause and line: if two processes agree in both, one report is enough. */
static char *place_of_verdict(const struct verdict *v)
{
	const struct line *where = &v->c.line[LINE_where];

	if (where->file)
		return xasprintf("%s at %s:%u", verdict_cause(v), where->file, where->number);
	return xstrdup(verdict_cause(v));
}

static bool seen_before(struct judge *j, char *place)
{
	size_t i;

	for (i = 0; i < j->n_seen; i++) {
		if (strcmp(j->seen[i], place) == 0) {
			free(place);
			return true;
		}
	}
	j->seen = xgrow(j->seen, j->n_seen, &j->cap_seen, sizeof(*j->seen));
	j->seen[j->n_seen++] = place;	/* ownership moved */
	return false;
}

static void print_failure(struct judge *j, struct process *p)
{
	struct text_style style = j->style;
	char *place = place_of_verdict(p->verdict), *said = xstrdup(place), *more = NULL;

	if (!j->first_told)
		j->first_told = p->pid;
	style.recording = p->part ? j->store->dir : NULL;
	if (style.recording)
		style.more = more =
			j->store->out ? xasprintf("cuwhy explain -v %s", style.recording) : xstrdup("cuwhy explain -v");
	if (!seen_before(j, place))
		report_text(stderr, p->verdict, &style);
	else if (++j->n_same <= SAME_MAX)
		fprintf(stderr, "cuwhy: process %d failed the same way: %s\n", (int)p->pid,
			said);
	fflush(stderr);
	free(more);
	free(said);
}

void judge_tell(struct judge *j, struct process *p)
{
	bool victim = victims_blame(j, p);
	char *json = json_of(p->verdict, p->part ? j->store->dir : NULL, NULL, NULL), *name;

	j->n_failed++;
	if (p->part) {
		name = xasprintf("%.*sjson", (int)(strlen(p->part) - 3), p->part);
		store_json(j->store, name, json);
		free(name);
	}
	if (!j->json && victim)
		victims_print(j, p);
	else if (!j->json)
		print_failure(j, p);
	free(json);
}

/* What kept us from recording or from saving the recording; NULL if nothing did. */
static const char *judge_trouble(struct judge *j)
{
	if (j->missing[0])
		return j->missing;
	if (!j->store->failed.code)
		return NULL;
	snprintf(j->trouble, sizeof(j->trouble), "the recording could not be saved: %s", j->store->failed.msg);
	return j->trouble;
}

/* A process that was not recorded matters only if the program failed; that nothing can be recorded always does. */
static void tell_trouble(struct judge *j, const struct verdict *all)
{
	const struct err *e = j->unrecorded->code ? j->unrecorded : &j->store->failed;

	if (j->unknown)
		fprintf(stderr, "cuwhy: %s\n", verdict_title(all));
	else if (e->code || (j->missing[0] && j->child->status != 0))
		fprintf(stderr, "cuwhy: %s\n", judge_trouble(j));
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
}

/* Printed when all have ended; each of them has been reported before. */
static void print_end(struct judge *j, const struct verdict *all, const char *recording)
{
	if (j->n_same > SAME_MAX)
		fprintf(stderr, "cuwhy: %zu more process%s failed the same way\n", j->n_same - SAME_MAX,
			j->n_same - SAME_MAX == 1 ? "" : "es");
	if (j->first_told && (pid_t)verdict_pid(all) != j->first_told)
		report_first(stderr, all);
	if (j->n_failed == 0 && verdict_notes(all) > 0)
		report_line(stderr, all, recording);
	if (j->n_failed == 0 && j->child->status != 0 && j->not_finite)
		fprintf(stderr, "cuwhy: before it ended, the program had read %s\n", j->not_finite);
	if (j->n_failed == 0 && j->child->status == 0)
		dry_run_print(&j->dry, stderr);
	guard_tell(&j->guard, stderr);
	dry_reads_print(&j->dry, stderr);
	tell_trouble(j, all);
	if (j->writes)
		run_writes_tell(j->writes, j->child->status != 0, stderr);
}

void judge_tell_end(struct judge *j, const struct verdict *all, bool kept)
{
	const char *recording = j->store->made ? j->store->dir : NULL;
	char *json;

	if (j->writes)
		run_writes_finish(j->writes, j->self);
	if (kept) {
		json = json_of(all, recording, j->missing[0] ? j->missing : NULL, j);
		store_json(j->store, VERDICT_FILE, json);
		free(json);
	}
	store_prune(j->store);
	if (!j->json) {
		print_end(j, all, recording);
		return;
	}
	json = json_of(all, recording, judge_trouble(j), j);
	fprintf(stderr, "%s\n", json);
	free(json);
}
