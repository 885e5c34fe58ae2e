/* SPDX-License-Identifier: Apache-2.0
 * What else is known about a process that runs: the GPUs that it uses, and what a recorder inside it has so far.
 */
#ifndef CUWHY_JUDGE_LIVE_H
#define CUWHY_JUDGE_LIVE_H

struct gpu_usage;
struct live_source;
struct verdict;

void live_add_gpus(struct live_source *s, const struct gpu_usage *u);
void live_add_recorder(struct live_source *s);

/* "none" when it is not hung. The source must live as long as the verdict. */
struct verdict *verdict_of_live(struct live_source *s);

#endif
