/* SPDX-License-Identifier: Apache-2.0
 * The inside of `cuwhy run`, private to its files.
 *
 *   cmd_run.c    options, and the main loops: the supervisor's and the keeper's
 *   run_keeper.c the process that does everything but running the program
 *   run_env.c    where our parts are, and the environment that makes the program load them
 *   run_server.c the socket on which recorders hand over their memory; run_process.c that memory
 *   run_child.c  the program itself: start, signals, end; run_witness.c helps it with signals
 *   run_judge.c  judges each process when it ends; run_tell.c prints it; run_victims.c is for processes that
 *                failed because another one did
 *   run_notices.c processes that could not be recorded
 *   run_doctor.c when the environment may be to blame
 *   run_place.c  where the program may load our libraries from; run_mark.c: which folders are ours
 *   run_store.c  the recording on disk; run_xid.c the kernel log during the run
 *   run_writes.c where the writes of a dry run go
 *   run_events.c every allocator event, with --memory-trace
 *   run_usage.c  who holds the GPUs when memory runs out
 *   run_job.c    what goes to a job's shared folder; run_job_writer.c writes it
 *   run_hang.c   processes that wait for the GPU for too long; run_waiters.c their marks
 */
#ifndef CUWHY_RUN_H
#define CUWHY_RUN_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <stdio.h>
#include <sys/types.h>
#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "cuwhy/format.h"
#include "formats/xid.h"
#include "probe/probe.h"
#include "probe/ram.h"
#include "run/run_keeper.h"
#include "run/run_mark.h"
#include "run/run_witness.h"
#include "run/run_writes.h"
#include "show/report.h"
#include "verdict/verdict.h"

/* Watches the kernel log for Xids while the program runs. */

struct xid_watch {
	int fd;			/* of the log, positioned where it ended when the program began; -1 = unreadable */
	bool looked;
	struct xid_log log;
};

/* Starts at the current end of the log: earlier lines are not about this run. Costs nothing until it is read. */
void xid_watch_open(struct xid_watch *w, const char *path);
void xid_watch_close(struct xid_watch *w);

/* Does the recording have a failure that hardware can cause? */
bool xid_watch_wanted(const struct trace *t);

/* Everything logged since then. The result lives as long as the watch, and may grow with every call. */
const struct xid_log *xid_watch_look(struct xid_watch *w, const char *path);

struct source_book;
struct run_job;
struct trace;
struct segment {
	int fd;			/* the recorder's memfd; -1: see `moved` */
	uint32_t off, len;
	char *moved;		/* what was in it, after that was closed; or NULL */
};

enum hang_state {
	HANG_NO,
	HANG_ASKED,		/* a dump is being taken */
	HANG_TOLD,		/* there is a dump, or there will never be one */
};

struct waiter {			/* a thread that waits */
	struct cw_wait wait;
	uint32_t tid, polls;
	uint32_t ring;		/* where its mark is */
};

struct process_hang {
	enum hang_state state;
	uint64_t counts_from_ns;	/* waiting before this does not count: the process was stopped, or something progressed */
	uint64_t progress, progress_ns;	/* process_progress() when last looked at, and when it last changed */
	uint64_t slow_since_ns;	/* start of a wait that was reported as slow: it is reported once */
	uint64_t asked_ns;
	int pipe;		/* while HANG_ASKED */
	char dump_path[256];	/* "" = none will come */
	uint64_t size, grown_ns;	/* of the dump */
	struct waiter first;	/* the longest wait */
	struct cw_hang record;	/* as written to the recording */
	uint32_t *polls;	/* of each chunk, when last looked at */
	uint64_t idle_since_ns;	/* start of a wait in a call that loads code, with no kernel running */
};

struct process_events {		/* --memory-trace */
	char *name;		/* of the file, NULL = not created yet */
	int fd;
	uint32_t off, size;	/* the ring */
	uint64_t tail;
	bool broken;
};

enum sample_state {
	SAMPLE_NONE,
	SAMPLE_WANTED,		/* it ran out of memory */
	SAMPLE_UNDER_WAY,	/* the probe is running */
};

struct process {
	pid_t pid;
	uint64_t start_ns;	/* with pid: names the image */
	bool elsewhere;		/* its pid means nothing here: it lives outside our PID namespace */
	int pidfd;		/* -1 = it had already ended, is not visible from here, or has been judged */
	struct segment *seg;
	size_t n_seg, cap_seg;
	bool ended;
	bool complete;		/* ended, and all that it sent has been received */
	bool replaced;		/* by exec: it continues as another image */
	bool has_status;
	int status;		/* as waitpid gives it */
	uint64_t ended_ns;	/* when we noticed */
	uint64_t alive_ns;	/* when it was last seen alive */
	bool judged;
	/* filled when judged */
	struct process_end end;
	bool alive;		/* it outlived the run */
	char *command;
	char *part;		/* file name inside the recording, NULL = not kept */
	char cause[64];
	struct verdict *verdict;	/* NULL once moved into the joined one */
	bool told;		/* it has been printed as a victim */
	bool put_off;		/* it may be the victim of a process that has not ended yet */
	struct process_hang hang;
	struct process_events events;
	bool holders_asked;	/* it ends, and waits for holders_step() */
	enum sample_state sample;	/* its result is end.usage, owned by the sampler */
	struct ram_state ram;	/* host memory at the last out-of-memory; end.ram points to it, or is NULL */
};

#define QUEUE_MAX	512	/* connections not accepted yet: each may hold 5 MiB of a process that has ended */
#define CLIENTS_MAX	4096	/* recorders connected at the same time */

struct server {
	char *dir;		/* private folder, removed at the end */
	struct mark mark;	/* on it */
	const char *sim;	/* the simulated GPU of the run, as env_check_gpu() gave it; NULL = none */
	char *path;		/* of the socket */
	int fd;			/* -1: no recording is possible */
	int spare_fd;		/* the same name without a file, for when the folder is gone; -1 = none */
	int *client;		/* connections that may still send */
	size_t n_clients, cap_clients;
	struct process **process;
	size_t n_processes, cap_processes;
	size_t n_files;		/* descriptors open at the start, inherited ones included */
	size_t n_segments;	/* that came */
	size_t lost_segments;
	uint64_t paused_until_ns;	/* out of descriptors: accept again then */
	bool was_full;		/* there was a moment without a free one */
	bool cut_off;		/* at the end, a process was still waiting for one */
};

#define SERVER_NONE ((struct server){.fd = -1, .spare_fd = -1, .mark = MARK_NONE})

/* Creates the folder and the socket; on disk, if core dumps have memory. On failure the server is usable but records nothing. */
int server_open(struct server *s, bool on_disk, struct err *e);
void server_close(struct server *s);
void server_leave(struct server *s);	/* in the supervisor: the socket is the keeper's alone */

/* Descriptors to wait for, beginning at p[0]; returns how many. p has room for server_fds(). */
size_t server_fds(const struct server *s);
size_t server_poll(const struct server *s, struct pollfd *p, uint64_t now_ns);

/* Receives everything sent so far and notices processes that ended. Never blocks. */
void server_step(struct server *s, uint64_t now_ns);
bool server_behind(const struct server *s);	/* for want of descriptors, processes still wait to hand over their memory */

/* The memory of a process, assembled; owned by the caller. NULL if there is none. */
void *process_bytes(const struct process *p, size_t *len);
void process_drop_files(struct process *p);	/* all that it needs once it has been judged: a run may start thousands */

/* Parts of it while the process runs. False: not all of it is there, or the format differs. */
bool process_read(const struct process *p, uint64_t off, void *to, size_t len);
bool process_write(const struct process *p, uint64_t off, const void *from, size_t len);
bool process_header(const struct process *p, struct cw_header *h);
void process_free(struct process *p);

size_t process_files(const struct process *p);	/* open ones of its memory */
#define STATUS_WAIT_NS	100000000u
bool process_status(struct process *p, int *wait_status);	/* once its parent has asked for it; for so long it may be worth another try */

/* Closes them, if there is `more` room, and keeps a copy of what was in them; returns how large it is. */
size_t process_move(struct process *p, bool more);

struct child {
	pid_t pid;		/* 0 = not started; in the keeper: not heard of yet */
	int pidfd;		/* in the keeper, which only looks at it; < 0 = there is none */
	sigset_t signals;	/* blocked: waited for by child_step() */
	bool ended;
	int status;		/* as waitpid gives it */
	uid_t uid;		/* its real user at the end */
	sigset_t old_mask;
	struct sigaction old_pipe, old_xfsz;
	struct rlimit old_files;
	struct run_writes *writes;	/* the program's process enters its layer; NULL = writes are real */
	const char *out;	/* --out, for another layer */
	struct witness witness;
};

/* Blocks the signals that will be forwarded, raises our own file descriptor limit. */
void child_prepare(struct child *c);

/* Starts the program. On failure `e` is filled and the exit status for it is returned, else 0. */
int child_start(struct child *c, char **argv, struct err *e);

/* Standard input and output are the program's alone: when it closes one, the other end must see that. */
void child_leave_streams(void);

/* Waits for a signal: forwards it, notices when the program ends or stops and when the keeper ends. */
void child_step(struct child *c, struct keeper *k, int wait_ms);
void child_release(struct child *c);
int child_exit_status(const struct child *c);

/* If a signal ended the program, ends us by the same one: a shell must know that it was Ctrl-C. Returns if that cannot be
 * (PID 1 is immune). */
void child_end_alike(const struct child *c);

/* $XDG_STATE_HOME/cuwhy, else ~/.local/state/cuwhy; NULL without a home that is there. Owned by the caller. */
char *place_state(void);

/* Like fs_trust(), for a path that may have links in it, or not exist yet. */
enum fs_trust place_trust(const char *path);

/* The path under which the loader may be told to load one of our libraries, or what is in a folder of them: `part`
 * itself, or a copy of it. NULL if there is none. Owned by the caller. */
char *place_part(const char *part);

#define FIT_STOPPED	"CUWHY_FIT_STOPPED"	/* a file in a folder, reported by a dry run of `cuwhy fit` */
#define CARDS_FILE	"cards"		/* in the private folder: the memory of simulated GPUs */

/* What --gpu says, as the simulated GPU reads it (sim/cuda/sim_spec.h); -EINVAL with `e` filled if that is no GPU. `spec` is owned by
 * the caller. */
int env_check_gpu(const char *gpu, char **spec, struct err *e);

/* The memory of the host that this process of ours has: with a simulated GPU that of the simulated host, of which all processes of the
 * run together have pinned some. */
void run_ram_look(struct ram_state *r, pid_t pid, const char *sim);

/* Finds our parts and sets the environment that the program inherits; `sim`: with this simulated GPU, or NULL. -errno with `e`
 * filled if the recorder or the simulated GPU is missing. */
struct env_wishes { bool no_core_dump, dump_memory, no_values; };
int env_prepare(const struct server *s, const char *program, const char *sim, const struct env_wishes *w, struct err *e);

/* For a program behind a fence (writes/fence.h): preloads its library behind the recorder. */
int env_fence(const char *scratch, struct err *e);

/* Why the recorder must not be preloaded into it; NULL if it may. */
/* Where execvp() would find it; NULL if it would not. Owned by the caller. */
char *env_find_program(const char *name);
const char *env_why_no_recorder(const char *program);

/* Removes the server's folder, unless recorded processes outlive us, and folders that earlier runs left behind, once
 * nothing needs them. */
void env_clean(const struct server *s);

struct store {
	const char *out;	/* --out, or NULL */
	bool keep;		/* even if nothing fails */
	char *base;		/* of the default location */
	char *dir;		/* the recording; NULL = not created yet */
	bool made;
	struct mark mark;	/* on it */
	bool made_out;		/* there was no such folder before */
	struct err failed;	/* code != 0: nothing can be written, and why */
	char **argv;
	uint64_t start_realtime_ns;
	unsigned int n_parts;
	bool events;		/* --memory-trace */
	unsigned int n_events;
	const struct xid_log *xids;	/* NULL = not looked at */
	const char *unrecorded;	/* why the cause may be unknown; NULL = all was recorded, or the program ended well */
};

/* Checks --out before the program starts. -EEXIST with `e` filled: refuse to start. */
int store_open(struct store *s, const char *out, bool keep, bool force, char **argv, struct err *e);
void store_release(struct store *s);

/* The folder of the recording, created on demand; NULL if that failed. */
const char *store_dir(struct store *s);

/* Seals and saves the memory of a process; sets p->part. */
void store_part(struct store *s, struct process *p, void *bytes, size_t len);
void store_dump(struct store *s, const struct process *p, const char *path);
void store_sources(struct store *s, const struct process *p, const struct source_book *b);	/* likewise, the lines that it quotes */
void store_ram(struct store *s, const struct process *p);	/* likewise, the host memory at that time */
void store_usage(struct store *s, const struct process *p);	/* who held the GPUs, if known */

/* Writes run.json with what is known so far; `ended`: with the program's exit status. */
void store_run(struct store *s, const struct server *srv, const struct child *c, bool ended);
bool store_has_run(struct store *s);	/* is there a run.json? */
void store_json(struct store *s, const char *name, const char *json);
void store_discard(struct store *s);	/* nothing failed: leave nothing behind */
void store_prune(struct store *s);	/* the recording is complete; it may replace older ones */

#define KERNEL_LOG "/dev/kmsg"

void events_prepare(const struct store *s);	/* the environment */
void events_step(struct store *s, struct server *srv);
int events_wait_ms(const struct store *s, const struct server *srv);	/* until the next step; -1 = none is needed */

/* Saves what is left in the ring of a process that ended; then writes the file's name into its recording. */
void events_finish(struct store *s, struct process *p);
void events_name(const struct process *p, void *bytes, size_t len);

/* Writes into the header of a recording what the program ran with: PyTorch, CUDA, cuDNN, NCCL, driver, system. */
void versions_name(void *bytes, size_t len);

struct sampler {
	bool busy;
	struct probe probe;	/* while busy */
	struct gpu_usage **kept;	/* results that processes point to */
	size_t n_kept, cap_kept;
};

/* Never waits. */
void sampler_step(struct sampler *m, struct server *s);

/* Fills *p if there is something to wait for, and shortens *wait_ms (-1 = forever) to its time limit. */
bool sampler_poll(const struct sampler *m, struct pollfd *p, int *wait_ms);
bool sampler_pending(const struct server *s);	/* a result is still to come */
void sampler_release(struct sampler *m);

#define HANG_LOAD_NS	60000000000ull

/* Answers processes that end and want to know what keeps their tensors alive: they wait for it. */
void holders_step(struct server *s);

struct hang {
	uint64_t limit_ns;	/* 0 = off */
	uint64_t load_ns;	/* extra time for a call that loads code */
	bool go_on;		/* do not end the program */
	bool quiet;		/* say nothing on stderr */
	uint64_t looked_ns, next_ns;	/* the last look, the next one */
	uint64_t ending_ns;	/* when we began to end the program; 0 = we have not */
	bool killed;
};

/* "60s", "5m", "1h", "90", as the value of `option`. -EINVAL with `e` filled. */
int hang_parse(uint64_t *ns, const char *option, const char *text, struct err *e);
void hang_prepare(const struct hang *h, const struct server *s);	/* the environment */

void hang_step(struct hang *h, struct server *s, const struct child *c, const struct keeper *self);
int hang_wait_ms(const struct hang *h, const struct server *s);	/* until the next step; -1 = forever */
bool hang_is_ending(const struct hang *h, const struct server *s);	/* some processes have not died yet */

/* A line that read a value which a simulated GPU did not compute, in any process. */
struct dry_read {
	char *file, *shown, *function;	/* "" = no Python code */
	uint32_t line;
	uint32_t why;			/* CW_READ_* */
	uint64_t count;
	bool turned;			/* after many equal answers it got the other one */
};

/* What PyTorch took on simulated GPUs: of all processes, the one that filled its GPU most. */
struct dry_gpu {
	uint8_t uuid[16];
	char name[64];
	unsigned int index;		/* of the process with the largest peak */
	uint64_t total;
	uint64_t allocated, reserved;	/* the largest peak of one process */
	uint64_t used;			/* by all together; 0 = unknown */
};

struct dry_run {
	struct dry_gpu gpu[CW_MAX_DEVICES];
	unsigned int n_devices;		/* on which anything was allocated, by any process */
	unsigned int n_users;		/* processes on each of them, added up */
	struct dry_read *read;
	size_t n_reads, cap_reads;
	uint64_t lost_reads;
};

void dry_run_note(struct dry_run *d, const struct trace *t);
const struct dry_gpu *dry_run_fullest(const struct dry_run *d);
bool dry_run_took_place(const struct dry_run *d);	/* PyTorch used a simulated GPU, or something read what that did not compute */
/* One line; nothing if PyTorch used no simulated GPU. */
void dry_run_print(const struct dry_run *d, FILE *out);
json_t *dry_run_json(struct dry_run *d, const struct run_writes *writes);	/* `writes` may be NULL */

struct guard_sum {
	bool asked;			/* --guard was given */
	bool any;			/* a process was guarded */
	bool torch, torch_guarded;	/* a process had loaded PyTorch; its allocator was guarded in one */
	uint64_t made, reused, checked, skipped[8];
};

int guard_check(const char *list, struct err *e);	/* the words after --guard= */
void guard_prepare(const char *list);			/* the environment; NULL: not asked for */
void guard_note(struct guard_sum *s, const struct trace *t);
json_t *guard_json(const struct guard_sum *s);
void guard_tell(const struct guard_sum *s, FILE *out);	/* one line; nothing if it was not asked for */

void dry_reads_note(struct dry_run *d, const struct trace *t);
/* The first lines, the most certain first, and how many more there are. */
void dry_reads_print(struct dry_run *d, FILE *out);
json_t *dry_reads_json(struct dry_run *d);
void dry_reads_release(struct dry_run *d);

/* 0 if the PyTorch of this program's Python, if any, can run on a simulated GPU. */
int torch_check(char **argv, struct err *e);

struct judge {
	struct store *store;
	struct dry_run dry;
	struct guard_sum guard;
	char *not_finite;	/* NaN or infinity that a process read, in words; NULL = none did */
	struct run_writes *writes;	/* of a dry run; else NULL */
	struct server *server;
	const struct child *child;
	struct xid_watch *xids;
	const struct err *unrecorded;	/* code != 0: why nothing can be recorded */
	const struct cw_notices *notices;
	uint32_t off_because, off_pid;	/* a recorder that switched itself off, and where; 0 = none */
	char missing[320];	/* what kept us from recording all of it; "" = nothing did */
	bool unknown;		/* and therefore the cause is unknown */
	char trouble[320];
	bool json;
	struct text_style style;
	size_t n_failed;
	size_t n_same;			/* failed the same way as an earlier one */
	size_t n_victims;		/* failed because another one did */
	pid_t first_told;		/* whose failure was printed first; 0 = none yet */
	struct run_job *job;		/* NULL = it writes to no job folder */
	const struct keeper *self;
	struct run_machine *machine;	/* NULL = the doctor was not needed */
	char **seen;		/* cause and place of what has been printed */
	size_t n_seen, cap_seen;
	bool list_due;		/* run.json does not list all parts yet */
	uint64_t list_from_ns;	/* when it may be written again */
};

/* Judges processes that ended; `final`: all, also those that did not end. The milliseconds after which there is more to do: the
 * exit status of one may become known, run.json is to be written; 0: some are left, because others must not wait for an
 * answer for too long meanwhile; -1: nothing is. */
int judge_step(struct judge *j, bool final);

/* Marks `p` if it failed because of a process judged earlier; true if it did. */
bool victims_blame(struct judge *j, struct process *p);
void victims_print(struct judge *j, struct process *p);

/* Victims that ended before the process to blame, or that did not end with a CUDA failure: they are known only
 * once every process has been judged. */
void victims_tell(struct judge *j);

/* If the environment may be to blame, asks the doctor; its finding may become the verdict of `p`. */
void judge_machine(struct judge *j, struct process *p);
void judge_machine_release(struct judge *j);

/* Prints and stores the verdict of a process that failed, and that of the whole run once all have ended. */
void judge_tell(struct judge *j, struct process *p);
void judge_tell_end(struct judge *j, const struct verdict *all, bool kept);

/* Joins the verdicts, prints what has not been printed yet, finishes the recording. */
void judge_finish(struct judge *j);

/* In place of judge_step() and judge_finish(): the keeper failed. */
void judge_give_up(struct judge *j, const char *why);
void judge_release(struct judge *j);

/* Processes that could not be recorded: what they say about it on the page that they share with us (struct cw_notices). */

struct cw_notices;

/* Creates the page in the folder of the socket; NULL if that fails, and then nothing is known. */
const struct cw_notices *notices_open(const char *dir);

/* The first one in words, and how many there are; false if there is none. */
bool notices_say(const struct cw_notices *n, char *text, size_t size);

#endif
