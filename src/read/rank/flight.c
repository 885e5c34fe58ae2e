/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's flight recorder and torchelastic's error files (see flight.h).
 *
 * Shapes as written by PyTorch 2.3 to 2.11: torch/csrc/distributed/c10d/FlightRecorder, torch/distributed/elastic/multiprocessing/errors.
 */
#include "read/rank/flight.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "formats/plain.h"
#include "read/rank/rank.h"

#define HEAD	  4096
#define FILE_MAX  (64u << 20)
#define COMMS_MAX 64
#define CALLS_MAX 4096

static bool has(const unsigned char *head, size_t n, const char *word)
{
	return memmem(head, n, word, strlen(word)) != NULL;
}

static enum flight_kind kind_of(const unsigned char *head, size_t n)
{
	bool pickle = n > 2 && head[0] == 0x80, json = n > 2 && head[0] == '{';

	if ((pickle || json) &&
	    (has(head, n, "collective_seq_id") || has(head, n, "pg_config") || has(head, n, "comm_lib_version") ||
	     (has(head, n, "nccl_version") && has(head, n, "version"))))
		return FLIGHT_DUMP;
	if (json && has(head, n, "\"message\"") && has(head, n, "\"extraInfo\""))
		return FLIGHT_ERROR;
	return FLIGHT_NOT;
}

enum flight_kind flight_sniff(const char *path)
{
	unsigned char head[HEAD];

	return kind_of(head, fs_read_head(path, head, sizeof(head)));
}

/* The last run of digits that ends at `end`, going back over other characters. */
static unsigned int last_number(const char *path, size_t end)
{
	size_t from;

	while (end && !isdigit((unsigned char)path[end - 1]))
		end--;
	for (from = end; from && isdigit((unsigned char)path[from - 1]); from--)
		;
	return end > from && end - from < 8 ? (unsigned int)strtoul(path + from, NULL, 10) : JOB_UNKNOWN;
}

unsigned int flight_rank_of_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *rank = strstr(name, "rank");
	unsigned int n = JOB_UNKNOWN;

	if (rank && sscanf(rank, "rank%*[_-]%7u", &n) != 1 && sscanf(rank, "rank%7u", &n) != 1)
		n = JOB_UNKNOWN;
	if (n == JOB_UNKNOWN)
		n = last_number(name, strlen(name));
	/* torchelastic: attempt_0/3/error.json */
	if (n == JOB_UNKNOWN && slash)
		n = last_number(path, (size_t)(slash - path));
	return n;
}

/* "nccl:all_reduce" -> "all_reduce" */
static const char *op_of(const struct plain *entry, struct pool *pool)
{
	const char *name = plain_text(plain_get(entry, "profiling_name")), *colon = name ? strchr(name, ':') : NULL;

	return name ? pool_copy(pool, colon ? colon + 1 : name, strnlen(colon ? colon + 1 : name, JOB_TEXT_MAX)) : NULL;
}

/* Ranks may pass different sizes to these. */
static bool sizes_may_differ(const char *op)
{
	static const char *const ops[] = {"all_to_all", "alltoall", "gather",	"scatter",
					  "broadcast",	"reduce",   "coalesced"};

	if (!op)
		return true;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (!strcmp(op, ops[i]) || (i < 2 && strstr(op, ops[i])) || (i == 6 && strstr(op, ops[i])))
			return true;
	return false;
}

static uint64_t elements(const struct plain *sizes)
{
	uint64_t sum = 0;

	for (size_t i = 0; sizes && sizes->kind == PLAIN_LIST && i < sizes->n; i++) {
		const struct plain *shape = sizes->item[i];
		uint64_t n = 1;
		int64_t d;

		for (size_t k = 0; shape->kind == PLAIN_LIST && k < shape->n && k < 32; k++)
			n *= plain_number(shape->item[k], &d) && d > 0 ? (uint64_t)d : 0;
		sum += n;
	}
	return sum & INT64_MAX;
}

/* The line of the program, not of PyTorch. */
static const char *line_of(const struct plain *frames, struct pool *pool)
{
	for (size_t i = 0; frames && frames->kind == PLAIN_LIST && i < frames->n; i++) {
		const char *file = plain_text(plain_get(frames->item[i], "filename")), *slash;
		int64_t line = 0;

		if (!file || strstr(file, "/torch/") || !plain_number(plain_get(frames->item[i], "line"), &line))
			continue;
		slash = strrchr(file, '/');
		return pool_printf(pool, "%.200s:%lld", slash ? slash + 1 : file, (long long)line);
	}
	return NULL;
}

static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

/* Groups of different ranks may have one name. */
static const char *comm_id(const struct plain *entry, const struct plain *config, struct pool *pool, const char **ranks)
{
	const struct plain *group = plain_get(entry, "process_group");
	const char *name = plain_text(plain_at(group, 0)), *desc = plain_text(plain_at(group, 1));

	*ranks = plain_text(plain_get(plain_get(config, name ? name : ""), "ranks"));
	if (!name)
		return NULL;
	if (*ranks && strlen(*ranks) < 24)
		return pool_printf(pool, "%.100s %.100s", desc && *desc ? desc : name, *ranks);
	return pool_printf(pool, "%.100s %.60s %08x", desc && *desc ? desc : "group", name,
			   hash_of(*ranks ? *ranks : ""));
}

static uint32_t count_ranks(const char *ranks)
{
	uint32_t n = ranks && strpbrk(ranks, "0123456789") ? 1 : 0;

	for (; ranks && *ranks; ranks++)
		n += *ranks == ',';
	return n;
}

static struct job_comm *comm_of(struct job_rank *r, const char *id)
{
	for (size_t i = 0; i < r->n_comms; i++)
		if (!strcmp(r->comm[i].id, id))
			return &r->comm[i];
	if (r->n_comms == COMMS_MAX)
		return NULL;
	r->comm[r->n_comms] = (struct job_comm){.id = id, .color = -1, .order = -1, .rank = JOB_UNKNOWN};
	return &r->comm[r->n_comms++];
}

static void add_call(struct job_comm *c, const struct job_call *call, bool done, struct pool *pool)
{
	if (!c->call)
		c->call = pool_alloc(pool, CALLS_MAX * sizeof(*c->call));
	if (call->seq > c->called)
		c->called = call->seq;
	if (done && call->seq > c->done)
		c->done = call->seq;
	/* several entries of one number are one coalesced call: the last says most */
	if (c->n_calls && c->call[c->n_calls - 1].seq >= call->seq)
		return;
	if (c->n_calls < CALLS_MAX)
		c->call[c->n_calls++] = *call;
}

static void read_entry(struct job_rank *r, const struct plain *entry, const struct plain *config, struct pool *pool)
{
	const char *state = plain_text(plain_get(entry, "state")), *type, *ranks, *id;
	struct job_call call = {0};
	struct job_comm *c;
	int64_t seq;

	if (plain_true(plain_get(entry, "is_p2p")) || !plain_number(plain_get(entry, "collective_seq_id"), &seq) ||
	    seq <= 0)
		return;
	id = comm_id(entry, config, pool, &ranks);
	c = id ? comm_of(r, id) : NULL;
	if (!c)
		return;
	call.seq = (uint64_t)seq;
	call.op = op_of(entry, pool);
	call.count = sizes_may_differ(call.op) ? 0 : elements(plain_get(entry, "input_sizes"));
	type = plain_text(plain_at(plain_get(entry, "input_dtypes"), 0));
	call.type = type ? pool_copy(pool, type, strnlen(type, 40)) : NULL;
	call.line = line_of(plain_get(entry, "frames"), pool);
	c->size = count_ranks(ranks);
	if (c->size && (r->world == JOB_UNKNOWN || c->size > r->world))
		r->world = c->size;
	add_call(c, &call, state && !strcmp(state, "completed"), pool);
}

static int read_dump(struct job_rank *r, const struct plain *p, struct pool *pool, struct err *e)
{
	const struct plain *entries = plain_get(p, "entries"), *config = plain_get(p, "pg_config");

	if (p->kind != PLAIN_DICT || (!entries && !config))
		return err_set(e, -EINVAL, "not a dump of PyTorch's flight recorder");
	r->comm = pool_alloc(pool, COMMS_MAX * sizeof(*r->comm));
	for (size_t i = 0; entries && entries->kind == PLAIN_LIST && i < entries->n; i++)
		read_entry(r, entries->item[i], config, pool);
	return 0;
}

static void split_message(struct job_rank *r, const char *text, struct pool *pool)
{
	const char *colon = strstr(text, ": ");
	size_t n = colon ? (size_t)(colon - text) : 0;
	bool type = n && n < 100;

	for (size_t i = 0; i < n && type; i++)
		type = isalnum((unsigned char)text[i]) || strchr("._", text[i]);
	if (type) {
		r->exception = pool_copy(pool, text, n);
		text = colon + 2;
	}
	r->message = pool_copy(pool, text, strnlen(text, JOB_TEXT_MAX));
}

/* Seconds, as a number or as digits. */
static uint64_t timestamp(const struct plain *p)
{
	const char *text = plain_text(p);
	int64_t n = 0;

	if (text)
		n = strtoll(text, NULL, 10);
	else
		plain_number(p, &n);
	return n > 0 && n < INT64_MAX / 2000000000 ? (uint64_t)n * 1000000000u : 0;
}

static int read_error(struct job_rank *r, const struct plain *p, const char *name, struct pool *pool, struct err *e)
{
	const struct plain *message = plain_get(p, "message"), *extra;
	const char *text = plain_text(plain_get(message, "message"));

	if (!text)
		text = plain_text(message);
	if (!text)
		return err_set(e, -EINVAL, "not an error file of torchelastic");
	split_message(r, text, pool);
	extra = plain_get(message, "extraInfo");
	r->failed_ns = r->ended_ns = timestamp(plain_get(extra, "timestamp"));
	r->state = JOB_ENDED;
	r->exit_known = true;
	r->exit = 1;
	r->title = r->exception ? pool_printf(pool, "%s: %s", r->exception, r->message) : r->message;
	/* the workers of one launcher are on one machine: .../attempt_0/3/error.json */
	r->boot = pool_strdup(pool, name);
	for (int i = 0; i < 2; i++) {
		char *slash = strrchr((char *)(uintptr_t)r->boot, '/');

		if (slash)
			*slash = '\0';
	}
	return 0;
}

int flight_from_bytes(struct job_rank *r, const char *name, const unsigned char *bytes, size_t n, struct pool *pool,
		      struct err *e)
{
	enum flight_kind kind = kind_of(bytes, n < HEAD ? n : HEAD);
	struct plain *p;

	job_rank_init(r);
	r->node = "?";
	r->boot = pool_strdup(pool, name);
	r->path = pool_strdup(pool, name);
	r->rank = flight_rank_of_name(name);
	if (kind == FLIGHT_NOT)
		return err_set(e, -EINVAL,
			       "'%s' is neither a dump of the flight recorder nor an error file of torchelastic", name);
	p = bytes[0] == 0x80 ? plain_from_pickle(bytes, n, pool, e) : plain_from_json((const char *)bytes, n, pool, e);
	if (!p)
		return e && e->code ? e->code : -EINVAL;
	return kind == FLIGHT_DUMP ? read_dump(r, p, pool, e) : read_error(r, p, name, pool, e);
}

int flight_read(struct job_rank *r, const char *path, struct pool *pool, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, FILE_MAX);
	rc = fs_read(path, &b, e);
	if (rc == 0)
		rc = flight_from_bytes(r, path, (const unsigned char *)b.data, b.len, pool, e);
	buf_release(&b);
	return rc;
}
