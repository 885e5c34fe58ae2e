/* SPDX-License-Identifier: Apache-2.0
 * Holding a program back where no mount namespace can be made: by the kernel, and by a preloaded library that sends paths elsewhere.
 *
 * Layout of the scratch folder: new/ABSOLUTE/PATH is what was written or copied up; gone/ABSOLUTE/PATH is an empty file or folder for
 * what was deleted.
 */
#ifndef CUWHY_WRITES_FENCE_H
#define CUWHY_WRITES_FENCE_H

struct err;

#define FENCE_LIBRARY	"libcuwhy-writes.so"	/* beside the recorder; goes into LD_PRELOAD after it */
#define FENCE_VARIABLE	"CUWHY_WRITES"		/* its scratch folder */

/* Can this kernel hold a program back without namespaces? 0, or -errno with the reason in words. Cheap, no side effect on the caller
 * (may fork). */
int fence_possible(struct err *e);

/* In the child, right before exec: from here on nothing outside `scratch`, /dev/shm, /dev and the folders in `real[]` (NULL-ended) can
 * be changed. 0 or -errno. */
int fence_enter(const char *scratch, const char *const *real, struct err *e);

#endif
