/* SPDX-License-Identifier: Apache-2.0
 * The command table.
 */
#include "cmd/cmd.h"
#include "base/banned.h"

const struct cmd commands[] = {
	{"run", "[options] PROGRAM ...", "run a program; if CUDA fails in it, say why", cmd_run, &run_table},
	{"doctor", "[options] [BUNDLE]", "can this machine run CUDA and PyTorch, and if not, why", cmd_doctor, &doctor_table},
	{"explain", "[FILE | TEXT | CODE]", "what a log, a recording, a dump or a code means", cmd_explain, &explain_table},
	{"memory", "[RECORDING | SNAPSHOT]", "who holds the memory, in a file or on this machine", cmd_memory, &memory_table},
	{"report", "[options] [FILE]", "make one HTML page of a recording, dump, snapshot or bundle", cmd_report, &report_table},
	{"export", "[options] [RECORDING]", "make a PyTorch snapshot or a Chrome trace of a recording", cmd_export, &export_table},
};

const size_t commands_n = sizeof(commands) / sizeof(commands[0]);
