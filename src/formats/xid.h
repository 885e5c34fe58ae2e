/* SPDX-License-Identifier: Apache-2.0
 * What the kernel log says about a program while it ran: Xids, which the NVIDIA driver reports, and processes that the kernel killed for memory.
 */
#ifndef CUWHY_XID_H
#define CUWHY_XID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XID_LINES_MAX	32	/* a dying GPU writes thousands: the first ones say why */
#define XID_GPUS_MAX	32
#define KILLS_MAX	16

enum xid_class { XID_PROGRAM, XID_UNCLEAR, XID_DRIVER, XID_HARDWARE };	/* most serious last */

struct xid {
	uint32_t number;
	uint32_t pid;		/* 0 = the line names none */
	char pci[24];		/* "0000:10:1c" */
	char text[160];		/* the line from "Xid" on */
};

struct xid_gpu {
	char pci[24];
	uint8_t uuid[16];
};

struct oom_kill {
	uint32_t pid;		/* as the machine numbers it, not a container */
	char text[160];		/* the line from "out of memory" on */
};

struct xid_log {
	bool readable;		/* false: the log could not be read */
	bool lost;		/* lines were overwritten before they were read */
	struct xid line[XID_LINES_MAX];
	size_t n;
	struct xid_gpu gpu[XID_GPUS_MAX];
	size_t n_gpus;
	struct oom_kill kill[KILLS_MAX];
	size_t n_kills;
};

/* Reads all available data (/dev/kmsg, non-blocking, or a file) and adds it to the log. `gpus_only`: skip
 * the Xids, which are older than the program. A failed read makes the log unreadable. */
void xid_read(struct xid_log *log, int fd, bool gpus_only);

/* One line of the kernel log. */
void xid_line(struct xid_log *log, const char *text, bool gpus_only);

enum xid_class xid_class(uint32_t number);
const char *xid_class_id(enum xid_class c);
const char *xid_meaning(uint32_t number);	/* "" when it is not in the list */

/* The line about this process; NULL: the kernel did not kill it for memory, as far as the log says. */
const struct oom_kill *xid_oom_kill(const struct xid_log *log, uint32_t pid);

/* Is the line about this process or the GPU with this uuid? 1 yes, 0 no: another GPU, -1 not known. */
int xid_is_about(const struct xid_log *log, const struct xid *x, uint32_t pid, const uint8_t *uuid);

#endif
