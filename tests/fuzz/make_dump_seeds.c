/* SPDX-License-Identifier: Apache-2.0
 * Writes the seeds of the corpus of GPU core dumps: make_dump_seeds FOLDER. (assert and assert_full are dumps of the
 * simulated GPU, without and with the images before relocation.)
 */
#include <stdio.h>

#include "tests/unit/dump_make.h"

static void save(const char *folder, const char *name, const struct dump_plan *p)
{
	struct dump_make m;
	char path[512];
	FILE *f;

	dump_make_usual(&m, p);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (!f || fwrite(m.data, 1, m.len, f) != m.len || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
	free(m.data);
}

int main(int argc, char **argv)
{
	struct dump_plan lane = {.lane_exception = 6, .lanes_hit = 15, .error_pc = 16, .lane_pc = 32,
				 .code = {MAKE_MOV_R9, MAKE_STG_64_1, MAKE_EXIT}};
	struct dump_plan sm = {.sm_exception = 14, .error_pc = 16, .lane_pc = 48,
			       .code = {MAKE_MOV_R9, MAKE_STG_P0, MAKE_MOV_R9, MAKE_EXIT}, .pred = {1, 0, 1}};
	struct dump_plan gone = {.sm_exception = 14, .error_pc = 16, .gone = 1, .code = {MAKE_MOV_R9, MAKE_LDG_OWN}};
	struct dump_plan own = {.lane_exception = 14, .lanes_hit = 15, .error_pc = 0x60, .lane_pc = 0x80,
				.code = {MAKE_LDC_R2, MAKE_S2R_R5, MAKE_WIDE_R2, MAKE_ULDC, MAKE_IADD3, MAKE_IADD3_X,
					 MAKE_LDG_64_OWN, MAKE_MOV_R9, MAKE_EXIT},
				.reg = {{0}, {[5] = 1}, {[5] = 2}, {[5] = 3}},
				.ureg = {[5] = 0x100}};
	struct dump_plan stack = {.lane_exception = 5, .lanes_hit = 1, .error_pc = 0x90, .lane_pc = 0xa0,
				  .call_depth = 5, .code = {[9] = MAKE_STL, [10] = MAKE_EXIT}};
	struct dump_plan trap = {.broken = 1, .lane_pc = 32, .code = {MAKE_MOV_R9, MAKE_TRAP, MAKE_BRA}};
	struct dump_plan running = {.lane_pc = 16, .code = {MAKE_BRA, MAKE_BRA}, .arch = 75, .grow = 16};

	if (argc != 2) {
		fprintf(stderr, "usage: make_dump_seeds FOLDER\n");
		return 2;
	}
	save(argv[1], "lane", &lane);
	save(argv[1], "sm", &sm);
	save(argv[1], "gone", &gone);
	save(argv[1], "own", &own);
	save(argv[1], "stack", &stack);
	save(argv[1], "trap", &trap);
	save(argv[1], "running", &running);
	return 0;
}
