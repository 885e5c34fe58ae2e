/* SPDX-License-Identifier: Apache-2.0
 * Our own files and folders: folders are created with mode 0700, files with 0600.
 */
#ifndef CUWHY_FS_H
#define CUWHY_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

char *fs_join(const char *dir, const char *name);	/* owned by the caller */

/* Who can put something else at this absolute path, which must not go through a symbolic link? Programs that outlive a
 * run keep loading what their environment names, long after its files may be gone. */
enum fs_trust {
	FS_NOBODY_ELSE,		/* root and this user, now and later */
	FS_NOT_NOW,		/* others, once a cleaner has removed it: it is in a folder like /tmp */
	FS_OTHERS,
};
enum fs_trust fs_trust(const char *path);

/* Can everybody who can change the file at `path` change the one at `than`, too? Then using it risks nothing that using `than` did
 * not. Both are absolute, without symbolic links; root and this user do not count. */
bool fs_no_more_writers(const char *path, const char *than);

/* Creates a folder and its missing parents. 0 if it already exists. */
int fs_mkdirs(const char *path, struct err *e);

/* A device, a pipe or a link: renaming over it would destroy it (/dev/null, for example). Opened for writing in place;
 * -errno. */
bool fs_is_special(const char *path);
int fs_open_special(const char *path);

/* All or nothing: written next to the target, flushed, then renamed over it. Blocks of zeros become
 * holes, since recordings are mostly empty. A device, a pipe or a link is written to in place. */
int fs_write(const char *path, const void *data, size_t len, struct err *e);

/* Opens for reading what anybody may have put there. Only a regular file of at most `max` bytes: a named pipe would make us
 * wait, a device may have side effects or never end. The descriptor, with the size in `*size` (may be NULL), or -errno. */
int fs_open_foreign(const char *path, uint64_t max, uint64_t *size);

/* The first `len` bytes of an open file, as far as they can be read, except its holes: there, `to` stays as it is. Pages of a
 * memfd that were reserved but never written are holes. */
void fs_read_data(int fd, void *to, size_t len);

/* Its first bytes; 0 when it cannot be opened. */
size_t fs_read_head(const char *path, void *to, size_t n);

/* Why fs_open_foreign failed, in words. */
const char *fs_reason(int rc);

/* Reads a whole file into `b` (whose ceiling applies), under the rules of fs_open_foreign. */
int fs_read(const char *path, struct buf *b, struct err *e);

int fs_copy(const char *from, const char *to, struct err *e);

bool fs_is_dir(const char *path);
bool fs_exists(const char *path);
uint64_t fs_written_ns(const char *path);	/* CLOCK_REALTIME of the last write; 0 = not known */
bool fs_dir_empty(const char *path);

/* Bytes on disk of the files directly inside; 0 when unreadable. */
unsigned long long fs_dir_bytes(const char *path);

/* Removes a folder of ours: its files and symbolic links, and folders `depth` levels down. Never follows a link. Here and below,
 * hidden files go last: one of them may say whose folder it is, and we may be killed in the middle. */
void fs_remove_dir(const char *path, int depth);

/* Empties a folder in which every file is one of ours by its name. False: it is not empty; if there was anything else in it,
 * nothing was removed. */
bool fs_empty_if(const char *path, bool (*is_ours)(const char *name));

#endif
