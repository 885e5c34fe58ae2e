/* SPDX-License-Identifier: Apache-2.0
 * What `cuwhy explain` can be pointed at besides a recording or a log: the folder of a job, a folder of logs, a process that runs,
 * a cause, a code.
 */
#ifndef CUWHY_EXPLAIN_H
#define CUWHY_EXPLAIN_H

#include <stdbool.h>
#include <stdio.h>

struct err;
struct job;
struct job_answer;
struct text_style;

/* `cuwhy explain DIR` on the folder of a job. */

/* Do these words name a job: a job folder, dumps of PyTorch's flight recorder, error files of torchelastic, with or without logs? */
bool explain_is_job(char **words, int n);

/* What they tell together. NULL with the reason in `e`. */
struct job *explain_job_collect(char **words, int n, struct err *e);

/* Of each attempt, in their order. */
struct job_answer **explain_job_judge(const struct job *j);
void explain_job_free(const struct job *j, struct job_answer **list);

/* The exit status. */
int explain_job(char **words, int n, bool json, const struct text_style *style);

/* Prints the answer about what is in `dir`, if anything failed; for the end of a run. */
void explain_job_end(FILE *out, const char *dir, const struct text_style *style);

/* 1 if something failed in the last attempt. */
int job_print(FILE *out, struct job *j, bool json, const struct text_style *style);

/* A folder of logs, such as that of `torchrun --log-dir` or one file per rank: `cuwhy explain logs/` reads its files. */

/* The words with every folder that is no recording replaced by the files in it, ranks in order; a folder without files stays.
 * The list and its words are the caller's (words_free). */
char **words_of_folders(char **words, int n, int *n_out);
void words_free(char **words, int n);

/* `cuwhy explain --pid`: looks at processes that run. */

struct explain_pid {
	const char *pids;	/* "12;13", may be NULL */
	char **more;		/* operands */
	int n_more;
	const char *look;	/* "2s"; NULL = the default */
	bool all, no_stop, json;
};

int explain_pids(const struct explain_pid *o, const struct text_style *style);

/* What is known about a cause or a code that is named. An int is the exit status. */

int explain_list(bool json);
/* `rules`: how they are recognized, in place of what they mean. */
int explain_cause(const char *id, bool json, bool rules, const struct text_style *style);
int explain_no_such(const char *word, bool json);
/* The words may be several: "Xid" "79". */
bool explain_is_code(char **words, int n);
int explain_code(char **words, int n, bool json, const struct text_style *style);

#endif
