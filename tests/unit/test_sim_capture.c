/* SPDX-License-Identifier: Apache-2.0
 * Tests of the simulated GPU: stream capture and graphs. Codes as measured on R580. */
#include "sim_child.h"

#include <pthread.h>

static struct sim_stream *stream_new(unsigned int flags)
{
	struct sim_stream *s;

	OK(cu.cuStreamCreate(&s, flags));
	return s;
}

static void capture_begin(struct sim_stream *s, int mode)
{
	OK(cu.cuStreamBeginCapture_v2(s, mode));
	OK(launch_1d(sim_kernel("nop"), 1, 1, s, NULL));
}

static void expect_end(struct sim_stream *s, int code)
{
	struct sim_graph *g = (void *)1;
	int status;

	OK(cu.cuStreamIsCapturing(s, &status));
	CHECK(status == (code == 901 ? SIM_CAPTURE_BROKEN : SIM_CAPTURING));
	EXPECT(cu.cuStreamEndCapture(s, &g), code);
	CHECK(code ? !g : g != NULL);
}

SIM_TEST(sim__a_captured_graph_runs_again_and_again, "tiny")
{
	struct sim_stream *s;
	struct sim_graph *g;
	struct sim_exec *exec;
	float one = 1, two = 2, out = 0;
	sim_addr a;
	int n = 1, status;

	sim_start();
	s = stream_new(1);
	OK(cu.cuMemAlloc_v2(&a, 4));
	OK(cu.cuMemsetD32_v2(a, 0, 1));
	OK(launch_1d(sim_kernel("fill"), 1, 1, s, (void *[]){&a, &one, &n}));
	OK(cu.cuStreamBeginCapture_v2(s, 0));
	OK(cu.cuStreamIsCapturing(s, &status));
	CHECK(status == SIM_CAPTURING);
	OK(launch_1d(sim_kernel("scale"), 1, 1, s, (void *[]){&a, &two, &n}));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphInstantiateWithFlags(&exec, g, 0));
	OK(cu.cuGraphDestroy(g));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&out, a, 4));
	CHECK(out == 1);
	for (int i = 0; i < 10; i++)
		OK(cu.cuGraphLaunch(exec, s));
	OK(cu.cuGraphExecDestroy(exec));
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuMemcpyDtoH_v2(&out, a, 4));
	CHECK(out == 1024);
	EXPECT(cu.cuGraphLaunch(exec, s), 1);
}

SIM_TEST(sim__an_event_from_outside_is_recorded_by_each_launch, "tiny")
{
	struct sim_stream *s, *other;
	struct sim_event *e;
	struct sim_graph *g;
	struct sim_exec *exec;
	int ms = 300;

	sim_start();
	s = stream_new(1);
	other = stream_new(1);
	OK(cu.cuEventCreate(&e, 0));
	OK(cu.cuStreamBeginCapture_v2(s, 2));
	OK(launch_1d(sim_kernel("spin"), 1, 1, s, (void *[]){&ms}));
	OK(cu.cuEventRecordWithFlags(e, s, 1));
	OK(cu.cuStreamWaitEvent(other, e, 0));		/* it is not recorded yet, and no part of the capture */
	OK(cu.cuStreamQuery(other));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphInstantiateWithFlags(&exec, g, 0));
	for (int i = 0; i < 2; i++) {
		OK(cu.cuGraphLaunch(exec, s));
		EXPECT(cu.cuEventQuery(e), 600);
		OK(cu.cuStreamWaitEvent(other, e, 0));
		EXPECT(cu.cuStreamQuery(other), 600);
		OK(cu.cuStreamSynchronize(other));
		OK(cu.cuEventQuery(e));
	}
}

SIM_TEST(sim__a_launch_waits_for_an_event_from_outside, "tiny")
{
	struct sim_stream *s, *other;
	struct sim_event *e;
	struct sim_graph *g;
	struct sim_exec *exec;
	int ms = 300;

	sim_start();
	s = stream_new(1);
	other = stream_new(1);
	OK(cu.cuEventCreate(&e, 0));
	OK(cu.cuEventRecord(e, other));
	OK(cu.cuStreamBeginCapture_v2(s, 2));
	OK(cu.cuStreamWaitEvent(s, e, 1));
	OK(launch_1d(sim_kernel("nop"), 1, 1, s, NULL));
	OK(cu.cuStreamEndCapture(s, &g));
	OK(cu.cuGraphInstantiateWithFlags(&exec, g, 0));
	OK(launch_1d(sim_kernel("spin"), 1, 1, other, (void *[]){&ms}));
	OK(cu.cuEventRecord(e, other));
	OK(cu.cuGraphLaunch(exec, s));
	EXPECT(cu.cuStreamQuery(s), 600);
	OK(cu.cuStreamSynchronize(s));
	OK(cu.cuEventQuery(e));
}

SIM_TEST(sim__memory_and_sync_calls_break_a_capture_with_900, "tiny")
{
	for (int mode = 0; mode < 2; mode++) {
		struct sim_stream *s, *other;
		sim_addr a;

		if (!mode)
			sim_start();
		s = stream_new(1);
		other = stream_new(1);
		capture_begin(s, mode);
		EXPECT(cu.cuMemAlloc_v2(&a, 16), 900);
		CHECK(strstr(sim_said, "API call conflicts with a stream capture sequence"));
		expect_end(s, 901);
		capture_begin(s, mode);
		EXPECT(cu.cuStreamSynchronize(s), 900);
		EXPECT(launch_1d(sim_kernel("nop"), 1, 1, s, NULL), 901);
		expect_end(s, 901);
		capture_begin(s, mode);
		EXPECT(cu.cuStreamQuery(other), 900);
		expect_end(s, 901);
		capture_begin(s, mode);
		EXPECT(cu.cuCtxSynchronize(), 900);
		expect_end(s, 901);
	}
}

SIM_TEST(sim__a_relaxed_capture_allows_memory_calls, "tiny")
{
	struct sim_stream *s;
	sim_addr a;

	sim_start();
	s = stream_new(0);
	capture_begin(s, 2);
	OK(cu.cuMemAlloc_v2(&a, 16));
	OK(cu.cuMemFree_v2(a));
	expect_end(s, 0);
	capture_begin(s, 2);
	EXPECT(cu.cuCtxSynchronize(), 900);
	expect_end(s, 901);
}

SIM_TEST(sim__the_legacy_stream_breaks_the_capture_of_a_blocking_stream, "tiny")
{
	struct sim_stream *s, *free_one;
	sim_addr a;
	int n = 0, status;

	sim_start();
	OK(cu.cuMemAlloc_v2(&a, 16));
	s = stream_new(0);
	capture_begin(s, 2);
	EXPECT(cu.cuStreamIsCapturing(NULL, &status), 906);
	expect_end(s, 0);
	capture_begin(s, 2);
	EXPECT(launch_1d(sim_kernel("nop"), 1, 1, NULL, NULL), 906);
	expect_end(s, 901);
	capture_begin(s, 2);
	EXPECT(cu.cuMemcpyHtoD_v2(a, &n, 4), 906);
	expect_end(s, 901);
	free_one = stream_new(1);
	capture_begin(free_one, 0);
	OK(cu.cuMemcpyHtoD_v2(a, &n, 4));
	OK(launch_1d(sim_kernel("nop"), 1, 1, NULL, NULL));
	expect_end(free_one, 0);
}

SIM_TEST(sim__a_failed_launch_breaks_the_capture, "tiny")
{
	struct sim_stream *s;

	sim_start();
	s = stream_new(1);
	capture_begin(s, 0);
	EXPECT(cu.cuLaunchKernel(sim_kernel("nop"), 1, 70000, 1, 1, 1, 1, 0, s, NULL, NULL), 1);
	expect_end(s, 901);
}

SIM_TEST(sim__forked_streams_must_be_joined, "tiny")
{
	struct sim_stream *s, *t;
	struct sim_event *e, *back;
	struct sim_graph *g;

	sim_start();
	s = stream_new(1);
	t = stream_new(1);
	OK(cu.cuEventCreate(&e, 2));
	OK(cu.cuEventCreate(&back, 2));
	capture_begin(s, 0);
	OK(cu.cuEventRecord(e, s));
	OK(cu.cuStreamWaitEvent(t, e, 0));
	OK(launch_1d(sim_kernel("nop"), 1, 1, t, NULL));
	EXPECT(cu.cuStreamEndCapture(s, &g), 904);
	capture_begin(s, 0);
	OK(cu.cuEventRecord(e, s));
	OK(cu.cuStreamWaitEvent(t, e, 0));
	OK(launch_1d(sim_kernel("nop"), 1, 1, t, NULL));
	OK(cu.cuEventRecord(back, t));
	OK(cu.cuStreamWaitEvent(s, back, 0));
	OK(cu.cuStreamEndCapture(s, &g));
	EXPECT(cu.cuEventQuery(back), 1);
	EXPECT(cu.cuStreamEndCapture(s, &g), 401);
}

SIM_TEST(sim__events_from_outside_and_wrong_streams_are_refused, "tiny")
{
	struct sim_stream *s, *t;
	struct sim_event *e;
	struct sim_graph *g;

	sim_start();
	s = stream_new(1);
	t = stream_new(1);
	OK(cu.cuEventCreate(&e, 2));
	OK(cu.cuEventRecord(e, t));
	capture_begin(s, 0);
	EXPECT(cu.cuStreamBeginCapture_v2(s, 0), 401);
	EXPECT(cu.cuStreamWaitEvent(s, e, 0), 905);
	expect_end(s, 901);
	capture_begin(s, 0);
	OK(cu.cuEventRecord(e, s));
	EXPECT(cu.cuEventQuery(e), 907);
	expect_end(s, 901);
	capture_begin(s, 0);
	OK(cu.cuEventRecord(e, s));
	OK(cu.cuStreamWaitEvent(t, e, 0));
	EXPECT(cu.cuStreamEndCapture(t, &g), 903);
	expect_end(s, 901);
	EXPECT(cu.cuStreamBeginCapture_v2(NULL, 0), 900);
}

static struct sim_ctx *shared_ctx;
static int expected_in_thread;

static void *alloc_in_thread(void *arg)
{
	sim_addr a;

	(void)arg;
	OK(cu.cuCtxSetCurrent(shared_ctx));
	EXPECT(cu.cuMemAlloc_v2(&a, 16), expected_in_thread);
	return NULL;
}

static void alloc_elsewhere(int code)
{
	pthread_t thread;

	expected_in_thread = code;
	CHECK(!pthread_create(&thread, NULL, alloc_in_thread, NULL));
	pthread_join(thread, NULL);
}

SIM_TEST(sim__a_global_capture_forbids_memory_calls_of_other_threads, "tiny")
{
	struct sim_stream *s;

	shared_ctx = sim_start();
	s = stream_new(1);
	capture_begin(s, 0);
	alloc_elsewhere(900);
	expect_end(s, 901);
	capture_begin(s, 1);
	alloc_elsewhere(0);
	expect_end(s, 0);
}

SIM_TEST(sim__destroying_a_capturing_stream_ends_its_capture, "tiny")
{
	struct sim_stream *s;
	sim_addr a;

	sim_start();
	s = stream_new(1);
	capture_begin(s, 0);
	OK(cu.cuStreamDestroy_v2(s));
	OK(cu.cuMemAlloc_v2(&a, 16));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim__a_captured_graph_runs_again_and_again),
		cmocka_unit_test(sim__an_event_from_outside_is_recorded_by_each_launch),
		cmocka_unit_test(sim__a_launch_waits_for_an_event_from_outside),
		cmocka_unit_test(sim__memory_and_sync_calls_break_a_capture_with_900),
		cmocka_unit_test(sim__a_relaxed_capture_allows_memory_calls),
		cmocka_unit_test(sim__the_legacy_stream_breaks_the_capture_of_a_blocking_stream),
		cmocka_unit_test(sim__a_failed_launch_breaks_the_capture),
		cmocka_unit_test(sim__forked_streams_must_be_joined),
		cmocka_unit_test(sim__events_from_outside_and_wrong_streams_are_refused),
		cmocka_unit_test(sim__a_global_capture_forbids_memory_calls_of_other_threads),
		cmocka_unit_test(sim__destroying_a_capturing_stream_ends_its_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
