/* SPDX-License-Identifier: Apache-2.0
 * Xids: reading lines of the kernel log, and telling a defective GPU from a faulty program.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "run/run.h"
#include "read/recording/xid_json.h"
#include "judge.h"
#include "dump_find.h"

#define UUID	"GPU-000102030405-0607-0809-0a0b-0c0d0e0f"
#define KMSG	"4,1234,987654321,-;"

static void line__number_place_and_process(void **state)
{
	static const struct { const char *line; uint32_t number, pid; const char *pci; } c[] = {
		{KMSG "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row", 63, 1896, "0000:10:1c"},
		{"[ 12.5] NVRM: Xid (0000:03:00): 14, Channel 00000001", 14, 0, "0000:03:00"},
		{KMSG "NVRM: Xid (PCI:0000:b4:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen", 79, 0,
		 "0000:b4:00"},
		{KMSG "NVRM: Xid (PCI:0000:b4:00): 31, pid='77', name=python3, Ch 00000008", 31, 77, "0000:b4:00"},
		{KMSG "NVRM: Xid (PCI:000a:01:00): 154, GPU recovery action changed", 154, 0, "000a:01:00"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		struct xid_log log = {0};

		xid_line(&log, c[i].line, false);
		assert_int_equal(log.n, 1);
		assert_int_equal(log.line[0].number, c[i].number);
		assert_int_equal(log.line[0].pid, c[i].pid);
		assert_string_equal(log.line[0].pci, c[i].pci);
		assert_memory_equal(log.line[0].text, "Xid (", 5);
	}
}

static void line__what_is_none_is_left_out(void **state)
{
	static const char *const lines[] = {
		"", "NVRM: ", "NVRM: Xid (", "NVRM: Xid (PCI:0000:10:1c)", "NVRM: Xid (PCI:0000:10:1c): ", "NVRM: Xid (x): 5",
		"NVRM: Xid (PCI:0000:10:1c): x", "NVRM: Xid (PCI:0000:10:1c): -1", "NVRM: Xid (PCI:0000:10:1c): 0",
		"Xid (PCI:0000:10:1c): 63", "NVRM: GPU at", "NVRM: GPU at PCI:0000:10:1c: GPU-00", "NVRM: GPU at x: GPU-zz",
		"NVRM: Xid (PCI:00000000000000000000000000000000): 5", "NVRM: loading NVIDIA UNIX x86_64 Kernel Module",
	};
	struct xid_log log = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		xid_line(&log, lines[i], false);
	assert_int_equal(log.n, 0);
	assert_int_equal(log.n_gpus, 0);
}

static void line__a_flood_is_bounded(void **state)
{
	struct xid_log log = {0};

	(void)state;
	for (int i = 0; i < 1000; i++) {
		xid_line(&log, "NVRM: Xid (PCI:0000:10:1c): 74, link", false);
		xid_line(&log, "NVRM: GPU at PCI:0000:10:1c: " UUID, false);
	}
	assert_int_equal(log.n, XID_LINES_MAX);
	assert_int_equal(log.n_gpus, XID_GPUS_MAX);
}

static void class__echoes_of_the_program_are_no_hardware(void **state)
{
	static const uint32_t program[] = {13, 31, 43, 45, 69}, hardware[] = {48, 63, 64, 74, 79, 92, 94, 95, 140};

	(void)state;
	for (size_t i = 0; i < sizeof(program) / sizeof(program[0]); i++)
		assert_string_equal(xid_class_id(xid_class(program[i])), "program");
	for (size_t i = 0; i < sizeof(hardware) / sizeof(hardware[0]); i++)
		assert_string_equal(xid_class_id(xid_class(hardware[i])), "hardware");
	assert_string_equal(xid_class_id(xid_class(119)), "driver");
	assert_string_equal(xid_class_id(xid_class(99999)), "unclear");
	assert_string_equal(xid_meaning(99999), "");
	for (uint32_t n = 0, last = 0; n < 400; n++)	/* each number only once, in order */
		if (xid_meaning(n)[0]) {
			assert_true(n > last);
			last = n;
		}
}

static void about__this_process_or_its_gpu(void **state)
{
	static const uint8_t ours[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, other[16] = {1};
	struct xid_log log = {0};

	(void)state;
	xid_line(&log, "NVRM: GPU at PCI:0000:10:1c: " UUID, true);
	xid_line(&log, "NVRM: Xid (PCI:0000:10:1c): 48, pid=5", true);
	assert_int_equal(log.n, 0);	/* older than the program */
	xid_line(&log, "NVRM: Xid (PCI:0000:10:1c): 48, pid=5, DBE", false);
	xid_line(&log, "NVRM: Xid (PCI:0000:11:1c): 48, DBE", false);
	assert_int_equal(log.n_gpus, 1);
	assert_int_equal(xid_is_about(&log, &log.line[0], 5, other), 1);
	assert_int_equal(xid_is_about(&log, &log.line[0], 6, ours), 1);
	assert_int_equal(xid_is_about(&log, &log.line[0], 6, other), 0);
	assert_int_equal(xid_is_about(&log, &log.line[0], 6, NULL), -1);
	assert_int_equal(xid_is_about(&log, &log.line[1], 6, ours), -1);
}

static int file_with(const char *path, const char *text, size_t filler)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	for (size_t i = 0; i < filler; i++)
		fprintf(f, KMSG "usb %zu: something long that has nothing to do with it\n SUBSYSTEM=usb\n", i);
	fputs(text, f);
	fclose(f);
	return open(path, O_RDONLY);
}

static void read__lines_cut_by_the_buffer_are_whole(void **state)
{
	char path[] = "/tmp/cuwhy-xid-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	close(fd);
	for (size_t filler = 100; filler < 300; filler += 7) {
		struct xid_log log = {0};

		fd = file_with(path, KMSG "NVRM: Xid (PCI:0000:10:1c): 95, pid=7, Uncontained\n"
				     KMSG "NVRM: Xid (PCI:0000:10:1c): 45, pid=7, no newline", filler);
		xid_read(&log, fd, false);
		close(fd);
		assert_true(log.readable);
		assert_int_equal(log.n, 2);
		assert_string_equal(log.line[0].text, "Xid (PCI:0000:10:1c): 95, pid=7, Uncontained");
		assert_string_equal(log.line[1].text, "Xid (PCI:0000:10:1c): 45, pid=7, no newline");
	}
	unlink(path);
}

/* One record per read, then EAGAIN, like the kernel. */
static void read__records_and_what_comes_later(void **state)
{
	struct xid_log log = {0};
	int fd[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	xid_read(&log, fd[0], false);
	assert_true(log.readable);
	assert_int_equal(log.n, 0);
	dprintf(fd[1], KMSG "NVRM: Xid (PCI:0000:10:1c): 13, pid=7, Graphics Exception\n");
	xid_read(&log, fd[0], false);
	dprintf(fd[1], KMSG "NVRM: Xid (PCI:0000:10:1c): 43, pid=7, Ch 8\n");
	xid_read(&log, fd[0], false);
	assert_int_equal(log.n, 2);
	close(fd[0]);
	close(fd[1]);
}

static void read__what_may_not_be_read_is_not_known(void **state)
{
	struct xid_log log = {0};
	int fd = open("/", O_RDONLY);	/* a folder: the read fails */

	(void)state;
	xid_read(&log, -1, false);
	assert_false(log.readable);
	xid_read(&log, fd, false);
	assert_false(log.readable);
	close(fd);
}

static void watch__begins_at_the_end_and_survives_a_recording(void **state)
{
	char path[] = "/tmp/cuwhy-xid-XXXXXX";
	int fd = mkstemp(path);
	const struct xid_log *log;
	struct xid_log again;
	struct xid_watch w;
	json_t *j;

	(void)state;
	dprintf(fd, KMSG "NVRM: GPU at PCI:0000:10:1c: " UUID "\n" KMSG "NVRM: Xid (PCI:0000:10:1c): 48, old\n");
	xid_watch_open(&w, path);
	dprintf(fd, KMSG "NVRM: Xid (PCI:0000:10:1c): 94, pid=7, Contained\n");
	log = xid_watch_look(&w, path);
	assert_int_equal(log->n, 1);
	assert_int_equal(log->line[0].number, 94);
	assert_int_equal(log->n_gpus, 1);
	j = xid_to_json(log);
	assert_true(xid_from_json(&again, j));
	assert_memory_equal(&again, log, sizeof(again));
	json_decref(j);
	assert_false(xid_from_json(&again, NULL));
	xid_watch_close(&w);
	close(fd);
	unlink(path);
	xid_watch_open(&w, "/no/such/log");
	assert_false(xid_watch_look(&w, "/no/such/log")->readable);
}

/* The verdict on process 100, whose call returned the code, with these lines in the log (NULL = not readable) and this dump (NULL = none). */
static json_t *verdict_with_dump(uint32_t code, const char *lines, const struct culprit *fault)
{
	struct xid_log log = {.readable = lines != NULL};
	struct process_end end = {.pid = 100, .status_known = true, .exit = 1, .xids = &log, .fault = fault};
	struct cw_failure *f;
	struct verdict *v;
	struct trace *t;
	struct tb b;
	json_t *j;

	tb_init(&b);
	b.h->pid = 100;
	b.h->sim = 0;
	f = tb_fail(&b, CW_SRC_DRIVER, code, tb_stack(&b, USER, NULL));
	f->last_ticks = f->ticks;
	if (lines)
		xid_line(&log, lines, false);
	end_with_exception(&b);
	t = tb_trace(&b);
	v = verdict_of_process(t, &end);
	trace_free(t);
	j = verdict_object(v);
	verdict_free(v);
	return j;
}

static json_t *verdict_with(uint32_t code, const char *lines)
{
	return verdict_with_dump(code, lines, NULL);
}

static void verdict__hardware_is_told_from_the_program(void **state)
{
	static const struct { uint32_t code; const char *line, *cause, *sure; } c[] = {
		{214, "", "ecc-hardware-fault", "certain"},
		{214, NULL, "ecc-hardware-fault", "certain"},
		{220, "", "ecc-hardware-fault", "certain"},
		{719, "", "kernel-trap", "possible"},
		{719, "NVRM: Xid (PCI:0000:10:1c): 94, pid=100, Contained", "ecc-hardware-fault", "certain"},
		{700, "NVRM: Xid (PCI:0000:10:1c): 48, pid=100, DBE", "ecc-hardware-fault", "certain"},
		{719, "NVRM: Xid (PCI:0000:10:1c): 48, DBE", "ecc-hardware-fault", "likely"},
		{719, "NVRM: Xid (PCI:0000:10:1c): 79, pid=100, bus", "gpu-lost", "likely"},
		{700, "NVRM: Xid (PCI:0000:10:1c): 31, pid=100, MMU Fault", "illegal-access-out-of-bounds", "possible"},
		{719, "NVRM: Xid (PCI:0000:10:1c): 13, pid=100, Graphics Exception", "kernel-trap", "possible"},
		{716, "NVRM: Xid (PCI:0000:10:1c): 43, pid=100, Ch 8", "misaligned-address", "likely"},
		{719, "NVRM: Xid (PCI:0000:10:1c): 45, pid=100, Ch 8", "kernel-trap", "possible"},
		{719, "NVRM: Xid (PCI:0000:10:1c): 119, pid=100, Timeout", "kernel-trap", "possible"},
		{226, "", "ecc-hardware-fault", "possible"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
		json_t *j = verdict_with(c[i].code, c[i].line);

		assert_string_equal(field(j, "cause"), c[i].cause);
		assert_string_equal(field(j, "certainty"), c[i].sure);
		assert_int_equal(mentions(j, "evidence", "Xid ("), c[i].line && c[i].line[0]);
		json_decref(j);
	}
}

/* A defective row that has been replaced does not explain what the dump shows, but is worth mentioning. */
static void verdict__a_dump_outweighs_the_log(void **state)
{
	static const struct dump_plan stopped = {.broken = 1, .lane_pc = 32, .code = {MAKE_MOV_R9, MAKE_TRAP, MAKE_BRA}};
	struct found found = dump_find(&stopped);
	json_t *j = verdict_with_dump(719, "NVRM: Xid (PCI:0000:10:1c): 63, pid='<unknown>', name=<unknown>, "
				      "Row Remapper: New row marked for remapping, reset gpu to activate.",
				      found.c);

	(void)state;
	assert_string_equal(field(j, "cause"), "kernel-trap");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "candidates", "ecc-hardware-fault"));
	json_decref(j);
	j = verdict_with_dump(719, "", found.c);
	assert_string_equal(field(j, "cause"), "kernel-trap");
	assert_false(mentions(j, "candidates", "ecc-hardware-fault"));
	json_decref(j);
	dump_found(&found);
}

static void verdict__a_log_that_cannot_be_read_is_said(void **state)
{
	json_t *j = verdict_with(719, NULL);

	(void)state;
	assert_string_equal(field(j, "cause"), "kernel-trap");
	assert_true(mentions(j, "unchecked", "ecc-hardware-fault"));
	assert_true(mentions(j, "evidence", "could not be read"));
	assert_true(mentions(j, "fix", "dmesg"));
	json_decref(j);
	j = verdict_with(719, "");
	assert_false(mentions(j, "unchecked", "ecc-hardware-fault"));
	assert_false(mentions(j, "fix", "dmesg"));
	json_decref(j);
	j = verdict_with(214, NULL);
	assert_true(mentions(j, "why", "could not be read"));
	json_decref(j);
	j = verdict_with(214, "");
	assert_false(mentions(j, "why", "could not be read"));
	json_decref(j);
	j = verdict_with(1, NULL);	/* not something that hardware does */
	assert_false(mentions(j, "unchecked", "ecc-hardware-fault"));
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line__number_place_and_process),
		cmocka_unit_test(line__what_is_none_is_left_out),
		cmocka_unit_test(line__a_flood_is_bounded),
		cmocka_unit_test(class__echoes_of_the_program_are_no_hardware),
		cmocka_unit_test(about__this_process_or_its_gpu),
		cmocka_unit_test(read__lines_cut_by_the_buffer_are_whole),
		cmocka_unit_test(read__records_and_what_comes_later),
		cmocka_unit_test(read__what_may_not_be_read_is_not_known),
		cmocka_unit_test(watch__begins_at_the_end_and_survives_a_recording),
		cmocka_unit_test(verdict__hardware_is_told_from_the_program),
		cmocka_unit_test(verdict__a_dump_outweighs_the_log),
		cmocka_unit_test(verdict__a_log_that_cannot_be_read_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
