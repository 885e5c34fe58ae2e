/* SPDX-License-Identifier: Apache-2.0
 * A small file by which a folder that `cuwhy run` made is recognized, and by which others know that it is in use.
 *
 * Only a folder with such a mark is ever deleted. A recording may lie in a home that several machines and containers
 * share, where a pid says nothing: the `cuwhy run` that uses a folder holds a lock on the mark.
 */
#ifndef CUWHY_RUN_MARK_H
#define CUWHY_RUN_MARK_H

#include <stdbool.h>

#include "read/recording/recording.h"

enum mark_kind {
	MARK_RUN_FOLDER,	/* socket and dumps: deleted when the run is over */
	MARK_RECORDING,		/* deleted when there are enough newer ones */
	MARK_FIT,		/* of `cuwhy fit`: likewise, when it is over */
	MARK_LAYER,		/* what a dry run writes: deleted when it is no longer used */
};

struct mark {
	int file, dir;		/* both locked; -1 = none */
};

#define MARK_NONE ((struct mark){-1, -1})

/* Marks a new folder and locks the mark. */
int mark_make(struct mark *m, const char *dir, enum mark_kind kind);

/* Locks a folder that is not ours to delete, by an empty mark that is there only while it is used. -EBUSY: another
 * `cuwhy run` is using it. */
int mark_borrow(struct mark *m, const char *dir);
void mark_return(struct mark *m, const char *dir);

/* What is in the folder is complete. */
void mark_end(struct mark *m);
void mark_release(struct mark *m);

/* Did a `cuwhy run` of this user make the folder, for this purpose and under this name? */
bool mark_is(const char *dir, enum mark_kind kind);

/* The same, and that `cuwhy run` is gone. False when in doubt. */
bool mark_abandoned(const char *dir, enum mark_kind kind);

#endif
