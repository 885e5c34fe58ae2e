/* SPDX-License-Identifier: Apache-2.0
 * Between the files that fill a page.
 */
#ifndef CUWHY_PAGE_PRIV_H
#define CUWHY_PAGE_PRIV_H

#include <stdint.h>

#include "case/line.h"
#include "write/page.h"

#define PAGE_LINES_MAX		500	/* of a table of memory by line */
#define PAGE_SAMPLES_MAX	2048	/* of one device over time */
#define PAGE_LAUNCHES_MAX	400
#define PAGE_FAILURES_MAX	64
#define PAGE_SEGMENTS_MAX	48
#define PAGE_RUNS_MAX		4000	/* in these */
#define PAGE_PROCESSES_MAX	512
#define PAGE_DETAILS_MAX	12	/* processes with details */
#define PAGE_DEVICES_MAX	8	/* of a process */

struct cw_launch;

struct page {
	json_t *data;			/* everything */
	json_t *processes, *missing;	/* in it */
	size_t n_processes, n_details, left_out;
};

/* Texts that stand in a list once: lines of code, names of kernels. */
struct page_words {
	json_t *list, *index;
};
void words_init(struct page_words *w);
void words_release(struct page_words *w);
/* The number in the list; -1 for NULL, and when the list is full: what matters most is added first. */
int words_add(struct page_words *w, const char *text);
/* "train.py:32 in step"; -1 when the place is not known. */
int words_place(struct page_words *w, const struct place *p, const char *cwd);

json_t *page_address(uint64_t address);
json_t *page_integer(uint64_t n);

/* Sentences, as far as they are not empty. */
void page_say(json_t *list, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Parts of a process. */
json_t *page_devices(struct trace *t, const struct process_end *end, struct page_words *lines);
json_t *page_launches(struct trace *t, const struct verdict *v, struct page_words *lines);
/* The newest launch that fits the fault; NULL = none. */
const struct cw_launch *page_blamed(struct trace *t, const struct verdict *v);
json_t *page_failures(struct trace *t, struct page_words *lines);
json_t *page_neighbours(struct trace *t, const struct verdict *v, struct page_words *lines);
json_t *page_lanes(const struct culprit *c);
json_t *page_environment(const struct trace *t, const struct culprit *c);
json_t *page_gaps(const struct trace *t);

/* The lines that a verdict names, with their neighbours; `since_ns` = when the program began, 0 = not known. */
json_t *page_sources(const struct verdict *v, const char *cwd, uint64_t since_ns);

/* Lines of code, without neighbours: those that reasons and advice name, by "file:line", and who called the line of the failure. */
json_t *page_quotes(const struct verdict *v, const char *cwd);
json_t *page_callers(const struct verdict *v, const char *cwd);

/* Cuts long strings and, when it is still too much, the least needed parts. */
void page_bound(struct page *p);

#endif
