/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch itself leaves of a rank: the flight recorder's dump of its collectives (TORCH_FR_BUFFER_SIZE; pickle or JSON), and the
 * error file of a worker under torchelastic (TORCHELASTIC_ERROR_FILE).
 */
#ifndef CUWHY_JOB_FLIGHT_H
#define CUWHY_JOB_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/pool.h"

struct err;
struct job_rank;

enum flight_kind { FLIGHT_NOT, FLIGHT_DUMP, FLIGHT_ERROR };

/* By its first bytes. */
enum flight_kind flight_sniff(const char *path);

/* -errno with `e` filled. The rank is that of the file's name, or of its folder: nothing inside has it. */
int flight_read(struct job_rank *r, const char *path, struct pool *pool, struct err *e);

/* The same from bytes; `name` of the file. */
int flight_from_bytes(struct job_rank *r, const char *name, const unsigned char *bytes, size_t n, struct pool *pool,
		      struct err *e);

/* The last number in a path, which names the rank; JOB_UNKNOWN = none. */
unsigned int flight_rank_of_name(const char *path);

#endif
