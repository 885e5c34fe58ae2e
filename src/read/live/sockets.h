/* SPDX-License-Identifier: Apache-2.0
 * The other end of a socket, if it is on this machine.
 */
#ifndef CUWHY_SOCKETS_H
#define CUWHY_SOCKETS_H

#include <sys/types.h>

/* Sockets by inode; 0 = it has none here, or it cannot be found. */
unsigned long long socket_local_peer(unsigned long long inode);
/* `table`: "tcp" or "tcp6", as the process sees them. */
unsigned long long socket_tcp_peer(pid_t pid, const char *table, unsigned long long inode);

#endif
