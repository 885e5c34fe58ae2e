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

#define RUN_FILE	"run.json"
#define VERDICT_FILE	"verdict.json"
#define PART_SUFFIX	".cwr"
#define JUDGED_SUFFIX	".json"		/* beside a part: the verdict on it */
#define USAGE_SUFFIX	".usage.json"	/* beside a part: who held the GPUs when memory ran out in it */
#define RAM_SUFFIX	".ram.json"	/* likewise: the host's memory and the limits on it */
#define DUMP_SUFFIX	".cudacore"	/* beside a part: the GPU core dump of that process */
#define EVENTS_SUFFIX	".cwm"

struct recorded_process {
	char *part;		/* path of its .cwr; NULL = none was kept */
	char *command;
	struct gpu_usage *usage;	/* end.usage points to it; NULL = nobody looked */
	struct ram_state *ram;	/* end.ram points to it; NULL = nobody looked */
	struct process_end end;	/* end.command points to `command` */
	bool end_known;		/* false: take what the recording itself says */
};

struct recording {
	struct recorded_process *process;
	size_t n, cap;
	struct xid_log xids;	/* of the kernel log, when it was looked at */
};

/* $CUWHY_DIR, else $XDG_STATE_HOME/cuwhy, else ~/.local/state/cuwhy; NULL without a home. */
char *recording_base(void);

/* Folders inside `base` that are recordings, oldest first; names owned by the caller. */
size_t recording_list(const char *base, char ***names);
void recording_list_free(char **names, size_t n);

/* The path of the newest one, owned by the caller; NULL, with `e` filled, when there is none. */
char *recording_newest(struct err *e);

/* A folder, or a single .cwr file. What is damaged in it is left out. */
int recording_read(struct recording *r, const char *path, struct err *e);
void recording_release(struct recording *r);

/* What `cuwhy run` said of this process with the doctor, or else of the run; NULL when it is not there. Owned by the caller. */
json_t *recording_verdict(const struct recorded_process *p);

/* The verdict in a folder; NULL when it holds none. */
json_t *recording_stored(const char *dir);

/* How a process ended, as its own recording tells it: for processes whose end is not known. */
struct cw_header;
void end_from_header(struct process_end *end, const struct cw_header *h);

/* Is the `cuwhy run` that writes this recording still at it? */
bool recording_in_progress(const char *dir);

#endif
