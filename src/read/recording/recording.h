/* SPDX-License-Identifier: Apache-2.0
 * A recording on disk: a folder with run.json, one .cwr file per process and verdict.json.
 */
#ifndef CUWHY_RECORDING_H
#define CUWHY_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "formats/xid.h"
#include "case/process.h"

struct err;

#define MARK_FILE	".cuwhy"	/* there from the first moment: run_mark.h */
#define RUN_FILE	"run.json"
#define VERDICT_FILE	"verdict.json"
#define PART_SUFFIX	".cwr"
#define JUDGED_SUFFIX	".json"		/* next to a part: its verdict */
#define USAGE_SUFFIX	".usage.json"	/* next to a part: who used the GPUs when it ran out of memory */
#define RAM_SUFFIX	".ram.json"	/* the same for the host's memory and its limits */
#define SOURCES_SUFFIX	".sources.json"	/* the lines of code that the verdict quotes, as they were */
#define DUMP_SUFFIX	".cudacore"	/* next to a part: the GPU core dump of that process */
#define EVENTS_SUFFIX	".cwm"

struct recorded_process {
	char *part;		/* path of its .cwr; NULL = none was kept */
	char *command;
	struct gpu_usage *usage;	/* end.usage points to it; NULL = not checked */
	struct ram_state *ram;	/* end.ram points to it; NULL = not checked */
	struct process_end end;	/* end.command points to `command` */
	bool end_known;		/* false: use what the recording itself says */
};

struct recording {
	struct recorded_process *process;
	size_t n, cap;
	struct xid_log xids;	/* from the kernel log, when it was read */
	bool ended_well;	/* the program that was started, whatever became of its children */
	char *unrecorded;	/* why cuwhy could not say whether CUDA failed; NULL = it could */
};

/* $CUWHY_DIR, else $XDG_STATE_HOME/cuwhy, else ~/.local/state/cuwhy; NULL without a home. */
char *recording_base(void);

/* Folders inside `base` that are recordings, oldest first; names owned by the caller. */
size_t recording_list(const char *base, char ***names);
void recording_list_free(char **names, size_t n);

/* The path of the newest one, owned by the caller; NULL, with `e` filled, when there is none. */
char *recording_newest(struct err *e);

/* A folder, or a single .cwr file. Damaged parts are skipped. */
int recording_read(struct recording *r, const char *path, struct err *e);
void recording_release(struct recording *r);

/* What `cuwhy run` and the doctor said about this process, or else about the run; NULL when it is not there. Owned by the caller. */
json_t *recording_verdict(const struct recorded_process *p);

/* The verdict in a folder; NULL when it has none. */
json_t *recording_stored(const char *dir);

/* How a process ended, according to its own recording: for processes whose end is not known. */
struct cw_header;
void end_from_header(struct process_end *end, const struct cw_header *h);

#endif
