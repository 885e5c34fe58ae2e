/* SPDX-License-Identifier: Apache-2.0
 * What a descriptor of another process is, and who is at its other end.
 */
#ifndef CUWHY_FDS_H
#define CUWHY_FDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/pool.h"

enum fd_kind { FD_UNKNOWN, FD_FILE, FD_PIPE, FD_SOCKET, FD_LISTENS, FD_TERMINAL, FD_DEVICE, FD_GPU, FD_OTHER };

#define LOCAL_SOCKET	"a local socket"

struct fd_told {
	enum fd_kind kind;
	const char *text;	/* "a pipe", "a socket, 127.0.0.1:4711 to 10.0.0.2:29500" */
	pid_t peer;		/* another process that has it, too, or its other end; 0 = none, or not known */
	bool alone;		/* no other process has the other end: it is in this one, if anywhere */
	bool public;		/* any process may open the other end: it has a name */
};

struct fd_told fd_tell(pid_t pid, int fd, struct pool *pool);

/* Who holds the lock of the file behind this descriptor: `pid` itself, if it has the file open a second time; 0 = not known. */
pid_t fd_lock_holder(pid_t pid, int fd);

/* "python train.py", at most 80 bytes; NULL when it is gone. */
const char *process_command(pid_t pid, struct pool *pool);

/* The other end of a socket, if it is on this machine. */

/* Sockets by inode; 0 = it has none here, or it cannot be found. */
unsigned long long socket_local_peer(unsigned long long inode);
/* `table`: "tcp" or "tcp6", as the process sees them. */
unsigned long long socket_tcp_peer(pid_t pid, const char *table, unsigned long long inode);

#endif
