/* SPDX-License-Identifier: Apache-2.0
 * The report as one HTML page: what is known about a recording, a core dump or a memory snapshot, as data inside a page that
 * the build has bundled (web/). The page shows the data; it never interprets it as markup or script.
 *
 * The size is bounded, whatever the input: lists are cut, and the page says what was omitted.
 */
#ifndef CUWHY_PAGE_H
#define CUWHY_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"

struct culprit;
struct doctor;
struct err;
struct lives;
struct machine;
struct page;
struct process_end;
struct snap_device;
struct snap_lines;
struct snapshot;
struct trace;
struct verdict;

#define PAGE_BYTES_MAX		((size_t)4 << 20)	/* of the data */
#define PAGE_DEVICES_MAX	8	/* of a process */
#define PAGE_SAMPLES_MAX	2048	/* of one device over time */
#define PAGE_LINES_MAX		500	/* of its memory by line */
#define PAGE_SEGMENTS_MAX	48
#define PAGE_FAILURES_MAX	64

/* Could this build's page be given what draws its charts? */
bool page_has_charts(void);

/* `kind` is "recording", "dump" or "snapshot". */
struct page *page_new(const char *kind, const char *path);
void page_free(struct page *p);

/* A process of a recording. `t` NULL = it never used CUDA, or its part cannot be read (`unread` says why, else NULL).
 * Only the first ones get details; with `must`, this one always does. */
void page_add_process(struct page *p, struct trace *t, const struct process_end *end, const struct verdict *v,
		      const char *unread, bool must);

/* What the memory of one of its GPUs would have been under other settings (show/what_if.h); takes ownership. */
void page_add_what_if(struct page *p, const struct verdict *v, int device, json_t *what_if);

/* The life of each of its blocks, from the events of the recording, whose part this is; nothing if it has none. */
void page_add_blocks(struct page *p, const struct verdict *v, struct trace *t, const char *part);

/* The same for one device of a page; `device` is its object. */
void page_put_lives(struct page *p, json_t *device, struct lives *l);

/* A row with details that the caller made; takes ownership. */
void page_add_row(struct page *p, json_t *row);

/* Does the page have details of the process that the verdict is about? */
bool page_has_details(const struct page *p, const struct verdict *v);

/* The devices of a snapshot. */
void page_add_snapshot(struct page *p, const struct snapshot *s, const struct snap_lines *l,
		       const struct snap_device *d, size_t n, const struct verdict *v);

/* A core dump without a recording. */
void page_add_dump(struct page *p, const struct culprit *c);

/* A machine from a doctor's bundle (kind "bundle"): the checks and the facts. */
void page_add_machine(struct page *p, const struct doctor *d, const struct machine *m);

/* The verdict at the top; `stored` is one that was read from a file and replaces `v`, NULL = use `v`. */
void page_set_verdict(struct page *p, const struct verdict *v, json_t *stored);

/* The ranks of a job (kind "job"; page_job.h) instead of processes; takes ownership. */
void page_set_job(struct page *p, json_t *job);

/* What "Copy for an issue" copies. */
void page_set_issue(struct page *p, const char *markdown);

/* The doctor's checks, if the verdict has none of its own. */
void page_set_checks(struct page *p, const struct doctor *d);

/* Says what is missing. */
void page_tell(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The data, cut to PAGE_BYTES_MAX; owned by the page. */
json_t *page_data(struct page *p);

/* The whole page. `text` is the answer for browsers without scripts. -errno with `e` filled if this program was built
 * without the page. */
int page_write(struct page *p, const char *text, struct buf *out, struct err *e);

/* JSON that is safe inside a <script> element. */
void page_escape(struct buf *out, const char *json, size_t len);

#endif
