/* SPDX-License-Identifier: Apache-2.0
 * What the files of the library share. A guest in the program (ARCHITECTURE.md): it uses libc alone, has no locks, allocates only in opendir
 * and its like, and keeps no descriptors. What it need not change goes to the next library in line, with the arguments as they were.
 *
 * Names mean what they mean in an overlay: what is in the scratch's `new` covers what is real; what has a mark in `gone`, or is below
 * one, is not there.
 */
#ifndef CUWHY_REDIRECT_H
#define CUWHY_REDIRECT_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "writes/scratch.h"

#define EXPORT		__attribute__((visibility("default")))
#define unlikely(x)	__builtin_expect(!!(x), 0)

/* Headers promise that some arguments are never NULL; programs do not keep that. */
static inline const char *maybe_null(const char *text)
{
	__asm__("" : "+r"(text));
	return text;
}

/* A name to be used in front of paths: see place. */
#define ROOM (SCRATCH_LONGEST + 8)

extern struct redirect {
	bool started, on;
	char new_root[ROOM], gone_root[ROOM];	/* SCRATCH/new, SCRATCH/gone */
	size_t new_len, gone_len;
	const struct scratch_state *state;	/* NULL: it could not be mapped; then everything may have changed */
} redirect;

void redirect_start(void);

/* Is there anything to do for calls that change something? */
static inline bool is_on(void)
{
	if (unlikely(!redirect.started))
		redirect_start();
	return redirect.on;
}

/* And for calls that only look? */
static inline bool has_changes(void)
{
	return is_on() && (!redirect.state || __atomic_load_n(&redirect.state->changes, __ATOMIC_ACQUIRE));
}

void note_change(void);			/* before anything is made in the scratch */
void note_folder(void);			/* after a folder of the user's has got something there */
bool is_real(const char *at, size_t len);	/* in a folder that stays real, or such a folder */
bool may_be_set(const char *at, size_t len);	/* in one where modes and times may be set, too: not in /dev, /proc, /sys */

/* The next definition of a function, behind ours. */
void *next_of(const char *name);
#define NEXT(function)                                                                             \
	({                                                                                         \
		static __typeof__(&function) real_;                                                \
		__typeof__(&function) now_ = __atomic_load_n(&real_, __ATOMIC_RELAXED);            \
		if (unlikely(!now_)) {                                                             \
			now_ = (__typeof__(&function))next_of(#function);                          \
			__atomic_store_n(&real_, now_, __ATOMIC_RELAXED);                          \
		}                                                                                  \
		now_;                                                                              \
	})

/* Ends a function of libc's: the kernel's answer as libc gives it. */
static inline long answer(long rc)
{
	if (rc >= 0)
		return rc;
	errno = (int)-rc;
	return -1;
}

void keep_env(const char *scratch, const char *preload);	/* what every program that is started needs: the values of its variables */
size_t env_room(char *const env[]);	/* bytes for env_with; 0: nothing is missing in it */
char **env_with(char *const env[], void *room);

/* What the caller gives a program, and what that needs behind the fence. In the caller's frame: a child of vfork must not allocate. */
#define WHOLE_ENV(env)                                                                             \
	do {                                                                                       \
		size_t room_ = env_room(env);                                                      \
\
		if (room_) {                                                                       \
			void *at_ = alloca(room_);                                                 \
\
			(env) = env_with(env, at_);                                                \
		}                                                                                  \
	} while (0)

/* Where a name leads: an absolute path without links, "." and "..". In front of it there is room for a folder's name, so that it becomes a
 * path in the scratch without being copied. */
struct place {
	char room[ROOM];
	char at[PATH_MAX];	/* "" is the root */
	size_t len;
	bool known;		/* look_at had to walk, so what follows and `st` are true */
	bool zone;		/* a folder that stays real: nothing below is known */
	bool fresh;		/* there is something in `new` */
	bool real;		/* there is something real, and the program may see it */
	bool hidden;		/* whatever is real there is gone, or is not what the program means */
	bool folder_plain;	/* the folder that it is in is real, and neither it nor those above have anything in the scratch */
	bool folder_real;	/* the folder that it is in is real, although it may be in `new` as well */
	bool marks;		/* some of what is in this real folder is gone */
	bool slash;		/* a slash behind the name says that a folder is meant */
	bool linked;		/* by way of a link */
	bool moved;		/* the kernel would not get there by the caller's path */
	struct stat st;		/* of what the program sees there; of a folder that is both, the real one's */
};

enum how {
	LINK,		/* the last name, although it may be a link: with a slash behind it, what it leads to */
	FOLLOW,		/* what a link leads to */
	NAME,		/* the last name as such, to be made, removed or renamed: a slash behind it is only reported */
};

/* 0, also if there is nothing there but the folder is, or -errno. After an error, `hidden` or `fresh` or `moved` says that the kernel would
 * have found something else. */
int walk(struct place *p, int dir, const char *path, enum how how);

/* The place itself, and that of its folder: paths in the scratch, overwritten by each other. */
const char *in_new(struct place *p);
const char *in_gone(struct place *p);
static inline const char *in_reality(const struct place *p)
{
	return p->len ? p->at : "/";
}
static inline bool exists(const struct place *p)
{
	return p->fresh || p->real;
}
static inline bool is_merged(const struct place *p)
{
	return p->real && S_ISDIR(p->st.st_mode) && (p->fresh || p->marks);
}

/* The absolute path of a descriptor or of the current folder as the program knows it: without the scratch. -errno. */
long path_of_fd(int fd, char *to, size_t size);
long path_of_cwd(char *to, size_t size);
long without_scratch(char *path, long len);	/* the new length */

/* Where a call that only looks must look. NULL: at what the caller said. Else a path for the kernel, in *p. -errno in *error: nowhere. */
const char *look_at(struct place *p, int dir, const char *path, bool follow, int *error);

int make_way(struct place *p);			/* the folder of a new name, in `new`; is one allowed to write there? */
int copy_up(struct place *p, bool contents);	/* what is real becomes fresh, with or without its contents */
int bring(struct place *p, bool contents);	/* likewise, if it is not fresh already */
int mark_gone(struct place *p);			/* hides what is real there */
int set_place(struct place *p);			/* its mode, owner, times are about to be set: fresh, if this user may do that */
int link_place(struct place *from, struct place *to);
int remove_place(struct place *p, bool folder);
int rename_place(struct place *from, struct place *to, unsigned flags);

int is_empty(struct place *p);	/* a folder, as the program sees it: 1, 0, -errno */

#endif
