/* SPDX-License-Identifier: Apache-2.0
 * The newest allocator events, which every recording of a program that uses PyTorch has (struct cw_event_log in format.h), as the
 * bytes of a memory trace (events.h).
 *
 * The log may have been overwritten from its start. What was live before its oldest event needs no record of its own: an address
 * whose first event in the log is a free was in use, one whose first event is an allocation was not, and one without any event is
 * as it is at the end. The bytes begin with that, then comes CW_MORE_START, then the events.
 */
#ifndef CUWHY_EVENT_LOG_H
#define CUWHY_EVENT_LOG_H

struct buf;
struct trace;

/* 0; 1: none were kept. `b` is empty and has a ceiling. */
int event_log_pack(struct buf *b, struct trace *t);

#endif
