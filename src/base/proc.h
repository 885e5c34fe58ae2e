/* SPDX-License-Identifier: Apache-2.0
 * Other processes: handles that survive reuse of the pid, and data from /proc.
 */
#ifndef CUWHY_PROC_H
#define CUWHY_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A descriptor that becomes readable when the process ends; -errno (-ESRCH: it is gone). */
int proc_pidfd(pid_t pid);
bool proc_pidfd_ended(int pidfd);

/* The wait status of a process that is not our child, after its parent reaped it. Linux 6.15 and
 * later; false if it cannot be known. */
bool proc_pidfd_status(int pidfd, int *wait_status);

/* From /proc. false, or 0, when the process is gone, or cannot be seen. */
char proc_state(pid_t pid);
bool proc_began_after(pid_t pid, uint64_t mono_ns);	/* then it is not the process that had this pid at that time */
bool proc_environ_has(pid_t pid, const char *assignment);

/* The running executable, and the folder that holds it; owned by the caller, NULL when unknown. */
char *proc_self_exe(void);
char *proc_self_dir(void);

/* Finds one of our parts by name: next to the executable, or where `make install` or the wheel puts it; never a file that others could
 * change than those who can change the program. Owned by the caller; NULL if it is not found. */
char *proc_find_part(const char *name);

uint64_t proc_mono_ns(void);

/* This process may take so many bytes more from now on; a lower limit of the user's stays. */
void proc_limit_memory(uint64_t more);

#endif
