/* SPDX-License-Identifier: Apache-2.0
 * Jobs of many ranks: who a process is, names of files, what collectives prove about clocks, plain pickles. (Whole histories:
 * tests/job.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "formats/plain.h"
#include "find/job/clocks.h"
#include "read/rank/flight.h"
#include "read/rank/folder.h"
#include "read/rank/identity.h"
#include "find/job/order.h"
#include "show/page_job.h"

static const char *variable(const char *name, const void *env)
{
	const char *const *pair = env;

	for (; *pair; pair += 2)
		if (!strcmp(*pair, name))
			return pair[1];
	return NULL;
}

static struct job_rank identified(const char *const *env, struct pool *pool, int *row)
{
	struct job_rank r;

	job_rank_init(&r);
	job_identify(&r, variable, env, pool, row);
	return r;
}

static void identity__a_launcher_further_inside_knows_better(void **state)
{
	static const char *const srun[] = {"SLURM_PROCID", "1", "SLURM_NTASKS", "2", "SLURM_JOB_ID", "77", NULL};
	static const char *const both[] = {"SLURM_PROCID", "1", "RANK",	 "9", "WORLD_SIZE", "16", "SLURM_JOB_ID", "77",
					   "TORCHELASTIC_RUN_ID", "none", "TORCHELASTIC_RESTART_COUNT", "2", NULL};
	struct pool pool = {0};
	int outer = 0, inner = 0;
	struct job_rank a = identified(srun, &pool, &outer), b = identified(both, &pool, &inner);

	(void)state;
	assert_int_equal(a.rank, 1);
	assert_int_equal(a.world, 2);
	assert_string_equal(a.job, "77");
	assert_int_equal(b.rank, 9);
	assert_int_equal(b.world, 16);
	assert_int_equal(b.attempt, 2);
	assert_string_equal(b.job, "77");
	assert_true(inner < outer);
	pool_release(&pool);
}

static void identity__a_default_is_not_a_name(void **state)
{
	static const char *const env[] = {"TORCHELASTIC_RUN_ID", "none", "RANK", "x", NULL};
	struct pool pool = {0};
	struct job_rank r = identified(env, &pool, NULL);

	(void)state;
	assert_null(r.job);
	assert_int_equal(r.rank, JOB_UNKNOWN);
	pool_release(&pool);
}

static void names__stay_inside_the_folder(void **state)
{
	static const char *const bad[] = {"../../etc/passwd", "..", ".", "", "a/b", "\x1b[2J", "a\nb", ".hidden"};
	char name[80], again[80];
	char *lengthy = malloc(5000);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		job_file_name(name, sizeof(name), bad[i]);
		assert_null(strpbrk(name, "/\n\x1b"));
		assert_true(name[0] && name[0] != '.');
	}
	job_file_name(name, sizeof(name), "train-7.b_2");
	assert_string_equal(name, "train-7.b_2");
	job_file_name(name, sizeof(name), "a/b");
	job_file_name(again, sizeof(again), "a_b");
	assert_string_not_equal(name, again);
	memset(lengthy, 'x', 4999);
	lengthy[4999] = '\0';
	job_file_name(name, sizeof(name), lengthy);
	assert_true(strlen(name) < sizeof(name));
	free(lengthy);
}

static void names__the_rank_of_a_file(void **state)
{
	static const struct { const char *path; uint32_t rank; } c[] = {
		{"/tmp/nccl_trace_rank_12", 12}, {"dumps/trace_3", 3},	       {"logs/x1/attempt_0/5/error.json", 5},
		{"rank7.log", 7},		 {"logs/node1/rank_2.err", 2}, {"none.txt", JOB_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
		assert_int_equal(flight_rank_of_name(c[i].path), c[i].rank);
}

static void ranges__are_short(void **state)
{
	static const uint32_t n[] = {0, 1, 2, 3, 7, 9, 10};
	struct pool pool = {0};

	(void)state;
	assert_string_equal(job_ranges(&pool, n, 7, 8), "0-3, 7, 9, 10");
	assert_string_equal(job_ranges(&pool, n, 7, 1), "0-3 and 3 more");
	assert_string_equal(job_ranges(&pool, n, 0, 1), "");
	pool_release(&pool);
}

/* The clock of b is 1000 ahead of that of a; what they share says so to within 30. */
static void clocks__order_only_what_is_proven(void **state)
{
	struct job_mark a[] = {{.seq = 4, .in_ns = 100, .out_ns = 120}, {.seq = 8, .in_ns = 200, .out_ns = 205}};
	struct job_mark b[] = {{.seq = 4, .in_ns = 1090, .out_ns = 1125}, {.seq = 8, .in_ns = 1190, .out_ns = 1210}};
	struct job_comm comm[] = {{.id = "c", .called = 8, .done = 8, .mark = a, .n_marks = 2},
				  {.id = "c", .called = 8, .done = 8, .mark = b, .n_marks = 2}};
	struct job_rank r[2];
	struct job_clocks *c;
	int64_t low, high;

	(void)state;
	for (int i = 0; i < 2; i++) {
		job_rank_init(&r[i]);
		r[i].boot = i ? "b" : "a";
		r[i].comm = &comm[i];
		r[i].n_comms = 1;
	}
	c = job_clocks_new(r, 2);
	assert_true(job_clocks_apart(c, 0, 1, &low, &high));
	assert_int_equal(low, -1010);
	assert_int_equal(high, -985);
	assert_true(job_clocks_before(c, 0, 300, 1, 1311));
	assert_false(job_clocks_before(c, 0, 300, 1, 1310));
	assert_false(job_clocks_before(c, 1, 1290, 0, 300));	/* its raw time would say so */
	assert_true(job_clocks_before(c, 1, 1284, 0, 300));
	assert_true(job_clocks_before(c, 0, 10, 0, 11));	/* one machine, one clock */
	job_clocks_free(c);
	r[1].n_comms = 0;
	c = job_clocks_new(r, 2);
	assert_false(job_clocks_before(c, 0, 1, 1, UINT64_C(1) << 60));
	job_clocks_free(c);
}

static json_int_t number_at(const json_t *list, size_t i, const char *key)
{
	return json_integer_value(json_object_get(json_array_get(list, i), key));
}

/* Rank 0 failed at 300 us of its clock; rank 1 lost it 600 us later, by a clock that is 1000 us ahead. Nothing relates rank 2's clock. */
static void page__times_are_by_one_clock(void **state)
{
	struct job_mark a[] = {{.seq = 4, .in_ns = 100000, .out_ns = 120000}},
			b[] = {{.seq = 4, .in_ns = 1100000, .out_ns = 1120000}};
	struct job_comm comm[] = {{.id = "c", .called = 5, .done = 4, .mark = a, .n_marks = 1},
				  {.id = "c", .called = 5, .done = 4, .mark = b, .n_marks = 1}};
	struct job_rank r[3];
	struct job_attempt at = {.rank = r, .n = 3};
	struct job j = {.id = "j", .attempt = &at, .n_attempts = 1};
	struct job_answer *answer;
	const json_t *nodes, *ranks;
	json_t *o;

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		job_rank_init(&r[i]);
		r[i].rank = i;
		r[i].world = 5;
		r[i].node = r[i].boot = i == 0 ? "a" : i == 1 ? "b" : "c";
		r[i].node_known = true;
		r[i].state = JOB_ENDED;
		r[i].exit_known = true;
		r[i].exit = 1;
		r[i].comm = &comm[i % 2];
		r[i].n_comms = i < 2;
		r[i].of_peers = i ? "it lost its peers" : NULL;
		r[i].written_ns = 2000000;
		r[i].real_ns = 2000000 + i * 5000000;
		r[i].failed_ns = i == 1 ? 1900000 : 300000;
		r[i].ended_ns = i == 2 ? (uint64_t)INT64_MAX : r[i].failed_ns;	/* damaged */
	}
	r[0].own = true;
	r[0].cause = "illegal-access";
	r[0].verdict = "../../secret.verdict.json";
	answer = job_judge(&at);
	o = page_job_json(&j, &answer);
	nodes = json_object_get(o, "nodes");
	ranks = json_object_get(o, "ranks");
	assert_int_equal(json_array_size(ranks), 3);
	assert_int_equal(number_at(ranks, 0, "rank"), 0);
	assert_int_equal(number_at(ranks, 0, "failed"), 0);
	assert_int_equal(number_at(ranks, 1, "failed"), 600);
	assert_int_equal(number_at(nodes, (size_t)number_at(ranks, 1, "node"), "apart"), 40);
	assert_true(json_is_true(json_object_get(json_array_get(nodes, (size_t)number_at(ranks, 2, "node")), "loose")));
	assert_int_equal(number_at(ranks, 2, "failed"), 10000);
	assert_null(json_object_get(json_array_get(ranks, 2), "ended"));
	assert_int_equal(number_at(ranks, 1, "of"), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "missing")), 2);
	assert_int_equal(json_array_size(json_object_get(o, "verdicts")), 0);
	json_decref(o);
	job_answer_free(answer);
}

static void pickle__plain_data_is_read_and_nothing_is_executed(void **state)
{
	/* {"a": [1, -2, None, True], "b": ("x", 70000)} by protocol 2 */
	static const unsigned char plain[] = "\x80\x02}q\x00(X\x01\x00\x00\x00"
					     "a]q\x01(K\x01J\xfe\xff\xff\xffN\x88"
					     "eX\x01\x00\x00\x00"
					     "bX\x01\x00\x00\x00xJp\x11\x01\x00\x86u.";
	static const unsigned char evil[] = "\x80\x02" "cos\nsystem\nX\x02\x00\x00\x00ls\x85R.";
	static const unsigned char self[] = "\x80\x02]q\x00h\x00" "a.";
	struct pool pool = {0};
	struct err e = {0};
	const struct plain *p = plain_from_pickle(plain, sizeof(plain) - 1, &pool, &e);
	int64_t n = 0;

	(void)state;
	assert_non_null(p);
	assert_int_equal(plain_get(p, "a")->n, 4);
	assert_true(plain_number(plain_at(plain_get(p, "a"), 1), &n));
	assert_int_equal(n, -2);
	assert_string_equal(plain_text(plain_at(plain_get(p, "b"), 0)), "x");
	assert_true(plain_number(plain_at(plain_get(p, "b"), 1), &n));
	assert_int_equal(n, 70000);
	assert_null(plain_from_pickle(evil, sizeof(evil) - 1, &pool, &e));
	assert_non_null(strstr(e.msg, "refused: pickle opcode GLOBAL"));
	p = plain_from_pickle(self, sizeof(self) - 1, &pool, &e);
	assert_ptr_equal(plain_at(p, 0), p);
	for (size_t len = 0; len + 1 < sizeof(plain); len++)	/* cut anywhere */
		assert_null(plain_from_pickle(plain, len, &pool, &e));
	pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity__a_launcher_further_inside_knows_better),
		cmocka_unit_test(identity__a_default_is_not_a_name),
		cmocka_unit_test(names__stay_inside_the_folder),
		cmocka_unit_test(names__the_rank_of_a_file),
		cmocka_unit_test(ranges__are_short),
		cmocka_unit_test(clocks__order_only_what_is_proven),
		cmocka_unit_test(page__times_are_by_one_clock),
		cmocka_unit_test(pickle__plain_data_is_read_and_nothing_is_executed),
	};

	return cmocka_run_group_tests_name("job", tests, NULL, NULL);
}
