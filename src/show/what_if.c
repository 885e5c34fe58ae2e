/* SPDX-License-Identifier: Apache-2.0
 * What would have happened on other cards and with other settings: a row for each, and below them why an answer may be wrong.
 */
#include "show/what_if.h"

#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "base/json.h"
#include "base/str.h"
#include "find/memory/growth.h"
#include "read/recording/trace.h"

#define AS_RECORDED "as recorded"

static const char *words_of(const struct what_if_row *row)
{
	return row->words[0] ? row->words : AS_RECORDED;
}

#define SO_FAR (1u << REPLAY_LATER | 1u << REPLAY_RISING)	/* it was right as far as it went */

static const char *fits_words(const struct what_if_row *row)
{
	const struct replay_answer *a = &row->answer;

	if (a->doubts & 1u << REPLAY_CARD)
		return "close";
	if (a->fits && row->growth.bytes)
		return "for now";
	if (a->fits && a->doubts && !(a->doubts & ~SO_FAR))
		return "so far";
	if (a->doubts)
		return a->fits ? "likely" : "unlikely";
	return a->fits ? "yes" : "no";
}

/* Seconds after the program's start from which on all events are known. */
static double known_since(const struct trace *t, const struct replay_facts *f)
{
	return (double)trace_ns(t, f->since) / 1e9;
}

static void print_reach(FILE *out, const struct trace *t, const struct replay_facts *f)
{
	char before[32];

	if (f->before)
		fprintf(out, "  from %.1f s after the start on: about %s allocations and frees before that were not kept (--memory-trace does)\n",
			known_since(t, f), format_thousands(before, sizeof(before), (double)f->before));
}

void what_if_print_head(FILE *out, const struct trace *t, int device, const struct replay *r, bool limitless)
{
	const struct replay_facts *f = replay_facts(r);
	const struct cw_header *h = trace_header(t);
	char total[32], outside[32], steps[32];

	fprintf(out, "device %d, %s (%s), process %u, PyTorch %s%s%s\n", device, h->device[device].name,
		limitless ? "simulated, without a limit" : format_bytes(total, sizeof(total), (double)f->total), h->pid,
		h->torch_version[0] ? h->torch_version : "?", str_if(f->conf[0], ", "), f->conf);
	format_thousands(steps, sizeof(steps), (double)f->steps);
	if (f->doubts & 1u << REPLAY_DIFFERS)
		fprintf(out, "  played back with its own settings, it did not come out the same: see below\n");
	else
		fprintf(out, "  %s allocations and frees, played back: all got the same addresses as in the program\n",
			steps);
	print_reach(out, t, f);
	if (f->outside)
		fprintf(out, "  besides PyTorch's memory, up to %s were in use: CUDA context, code, libraries%s\n",
			format_bytes(outside, sizeof(outside), (double)f->outside), h->sim ? "" : ", other processes");
	putc('\n', out);
}

json_t *what_if_doubts_json(unsigned doubts)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < REPLAY_DOUBT_COUNT; i++)
		if (doubts & 1u << i)
			json_array_append_new(list, json_text(replay_doubt_text((enum replay_doubt)i)));
	return list;
}

json_t *what_if_head_json(const struct trace *t, int device, const struct replay *r)
{
	const struct replay_facts *f = replay_facts(r);
	const struct cw_header *h = trace_header(t);

	return JSON_OF(J_INT("pid", h->pid), J_INT("device", device), J_TEXT("gpu", h->device[device].name),
		       J_BYTES("total", f->total), J_TEXT("torch", h->torch_version[0] ? h->torch_version : NULL),
		       J_TEXT("settings", f->conf), J_INT("events", f->steps),
		       J_INT("events_before", f->before),
		       J_VALUE("since", f->before ? json_real(known_since(t, f)) : json_null()),
		       J_BOOL("same_again", !(f->doubts & 1u << REPLAY_DIFFERS)),
		       J_BYTES("peak_allocated", f->peak_allocated), J_BYTES("peak_reserved", f->peak_reserved),
		       J_BYTES("outside", f->outside), J_BOOL("ran_out", f->ran_out),
		       J_VALUE("doubts", what_if_doubts_json(f->doubts)));
}

static void failure_words(char *to, size_t size, const struct what_if_row *row)
{
	const struct replay_failure *f = &row->answer.failure;
	char request[32], left[32];

	format_bytes(request, sizeof(request), (double)f->request);
	format_bytes(left, sizeof(left), (double)f->free);
	if (!f->request)
		snprintf(to, size, "CUDA itself or a library would find no memory");
	else
		snprintf(to, size, "%s%s would ask for %s, with %s free", row->where ? row->where : "a line",
			 row->where ? "" : " that is not known", request, left);
}

static void growth_words(char *to, size_t size, const struct what_if_growth *g)
{
	char bytes[32], at[32];
	size_t n = 0;

	if (g->fails_at)
		n = (size_t)snprintf(to, size, "at this rate, memory runs out at about %s %s: ", g->unit,
				     format_thousands(at, sizeof(at), (double)g->fails_at));
	snprintf(to + n, size - n, "%s%s per %s%s%s", g->steady ? "+" : "about +",
		 format_bytes(bytes, sizeof(bytes), (double)g->bytes), g->unit,
		 g->line ? g->graphs ? ", with graphs kept of " : ", from " : "", g->line ? g->line : "");
}

static void row_print(FILE *out, const struct what_if_row *row, int width, const struct what_if_style *style)
{
	const struct replay_answer *a = &row->answer;
	char total[32], peak[32], spare[32], note[320] = "", grows[320] = "";

	format_bytes(total, sizeof(total), (double)row->total);
	format_bytes(peak, sizeof(peak), (double)a->peak_reserved);
	format_bytes(spare, sizeof(spare), (double)a->spare);
	if (!a->fits)
		failure_words(note, sizeof(note), row);
	else if (a->retries)
		snprintf(note, sizeof(note), "after releasing its cache %" PRIu64 " time%s", a->retries,
			 a->retries == 1 ? "" : "s");
	fprintf(out, "  %-*s  %-10s  %-8s  %-10s  ", width, words_of(row), total, fits_words(row), a->fits ? peak : "-");
	if (row->growth.bytes)
		growth_words(grows, sizeof(grows), &row->growth);
	fprintf(out, note[0] || grows[0] ? "%-10s  %s%s%s" : "%s%s%s%s", a->fits ? spare : "-", note,
		note[0] && grows[0] ? "; " : "", grows);
	if (style->changes && row->change)
		fprintf(out, "; fits with %s", row->change);
	if (row->smaller.known && !smaller_percent(&row->smaller))
		fputs("; no batch fits", out);
	else if (row->smaller.known && row->smaller.batch)
		fprintf(out, "; fits with a batch of %" PRIu64 " instead of %" PRIu64, row->smaller.largest,
			row->smaller.batch);
	else if (row->smaller.known)
		fprintf(out, "; fits with %" PRIu64 " %% of the batch", smaller_percent(&row->smaller));
	putc('\n', out);
}

static void print_doubts(FILE *out, const char *what, unsigned doubts)
{
	for (unsigned i = 0; i < REPLAY_DOUBT_COUNT; i++)
		if (doubts & 1u << i)
			fprintf(out, "  %s: %s\n", what, replay_doubt_text((enum replay_doubt)i));
}

void what_if_print_doubts(FILE *out, unsigned doubts)
{
	print_doubts(out, "not exact", doubts);
}

void what_if_print(FILE *out, const struct what_if_row *row, size_t n, const struct what_if_style *style)
{
	size_t width = strlen(style->first);
	unsigned doubts = 0, figures = 0;
	bool smaller = false;

	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(words_of(&row[i]));

		width = len > width ? len : width;
		doubts |= row[i].answer.doubts;
		figures |= row[i].answer.figures;
		smaller |= row[i].smaller.known;
	}
	fprintf(out, "  %-*s  %-10s  %-8s  %-10s  %s\n", (int)width, style->first, "MEMORY", "FITS", "RESERVED", "SPARE");
	for (size_t i = 0; i < n; i++)
		row_print(out, &row[i], (int)width, style);
	what_if_print_doubts(out, doubts);
	if (smaller)
		fprintf(out, "  how much of the batch fits is not exact: %s\n", growth_doubt_text(GROWTH_ONE));
	print_doubts(out, "RESERVED and SPARE are not exact", figures & ~doubts);
	putc('\n', out);
}

static json_t *failure_json(const struct what_if_row *row)
{
	const struct replay_failure *f = &row->answer.failure;

	if (row->answer.fits)
		return json_null();
	return JSON_OF(J_INT("event", f->step), J_BYTES("request", f->request), J_BYTES("free", f->free),
		       J_TEXT("where", row->where));
}

static json_t *growth_json(const struct what_if_growth *g)
{
	return JSON_OF(J_BYTES("bytes", g->bytes), J_TEXT("unit", g->unit), J_BOOL("steady", g->steady),
		       J_INT("more", g->more), J_INT_OR_NULL("since", g->since, g->since),
		       J_INT_OR_NULL("fails_at", g->fails_at, g->fails_at), J_BOOL("played", g->played),
		       J_BOOL("graphs", g->graphs), J_TEXT("line", g->line));
}

json_t *what_if_row_json(const struct what_if_row *row)
{
	const struct replay_answer *a = &row->answer;

	return JSON_OF(J_TEXT("what_if", row->words), J_BYTES("total", row->total),
		       J_BOOL("fits", a->fits && !row->growth.bytes), J_BOOL("exact", !(a->doubts | a->figures)),
		       J_BYTES("peak_allocated", a->peak_allocated), J_BYTES("peak_reserved", a->peak_reserved),
		       J_BYTES("spare", a->spare), J_INT("retries", a->retries), J_VALUE("failure", failure_json(row)),
		       J_IF(row->growth.bytes != 0, J_VALUE("growth", growth_json(&row->growth))),
		       J_IF(row->change != NULL, J_TEXT("fits_with", row->change)),
		       J_IF(row->smaller.known, J_INT("fits_percent", smaller_percent(&row->smaller))),
		       J_IF(row->smaller.known && row->smaller.batch, J_INT("fits_size", row->smaller.largest)),
		       J_VALUE("doubts", what_if_doubts_json(a->doubts | a->figures)));
}

json_t *what_if_card_json(const struct what_if_row *row)
{
	json_t *o = JSON_OF(J_TEXT("gpu", row->words)), *answer = what_if_row_json(row);

	json_object_del(answer, "what_if");
	json_object_update(o, answer);
	json_decref(answer);
	return o;
}

static json_t *column_json(const uint64_t *value, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_integer((json_int_t)value[i]));
	return list;
}

static json_t *times_json(struct trace *t, const struct replay *r)
{
	struct replay_intervals at = replay_intervals(r);
	json_t *list = json_array();

	for (size_t i = 0; i < at.n; i++)
		json_array_append_new(list, json_integer((json_int_t)(trace_ns(t, at.began[i]) / 1000)));
	return list;
}

json_t *what_if_over_time_json(struct trace *t, const struct replay *r, const struct what_if_row *row, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		const struct replay_over_time *o = row[i].over_time;
		json_t *one = what_if_row_json(&row[i]);

		JSON_ADD(one, J_TEXT("words", fits_words(&row[i])), J_BYTES("room", row[i].room),
			 J_VALUE("allocated", column_json(o->allocated, o->n)),
			 J_VALUE("reserved", column_json(o->reserved, o->n)));
		json_array_append_new(list, one);
	}
	return JSON_OF(J_VALUE("us", times_json(t, r)), J_INT("each", replay_intervals(r).steps),
		       J_BOOL("ran_out", replay_facts(r)->ran_out), J_VALUE("answers", list));
}
