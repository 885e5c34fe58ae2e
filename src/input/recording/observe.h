/* SPDX-License-Identifier: Apache-2.0
 * What fills the dictionary: one function per group of facts, called by facts_of_incident.
 */
#ifndef CUWHY_OBSERVE_RECORDING_H
#define CUWHY_OBSERVE_RECORDING_H

#include "input/recording/incident.h"

struct cw_device;

void fill_launch(struct casefile *f, const struct incident *i, struct trace *t, const struct cw_device *d);
void fill_device(struct casefile *f, const struct incident *i, const struct trace *t, const struct cw_device *d);
void fill_xid(struct casefile *f, const struct incident *i, const struct trace *t);
void fill_memory(struct casefile *f, const struct incident *i, const struct cw_device *d);

void fill_hang(struct casefile *f, const struct incident *i, const struct trace *t);

/* Without a dump: the suspects that are known to assert, when all of them check the same thing. The stack of
 * their launch; 0 when there is none, or more than one. */
uint32_t assert_facts_of_suspects(struct casefile *f, struct trace *t, const struct cw_failure *noticed);

/* From the Python stacks of the launches that it can have been: what all of them have in common. */
void assert_facts_of_lines(struct casefile *f, const struct trace *t, const struct place *line, size_t n);

#endif
