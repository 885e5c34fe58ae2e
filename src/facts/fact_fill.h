/* SPDX-License-Identifier: Apache-2.0
 * What fills the dictionary: one function per group of facts, called by facts_of_incident.
 */
#ifndef CUWHY_FACT_FILL_H
#define CUWHY_FACT_FILL_H

#include "facts/incident.h"

struct cw_device;

void fill_launch(struct facts *f, const struct incident *i, struct trace *t, const struct cw_device *d);
void fill_device(struct facts *f, const struct incident *i, const struct trace *t, const struct cw_device *d);
void fill_xid(struct facts *f, const struct incident *i, const struct trace *t);
void fill_memory(struct facts *f, const struct incident *i, const struct cw_device *d);

void fill_hang(struct facts *f, const struct incident *i, const struct trace *t);

/* Who holds what: after the messages have been read, since they may tell what the recording does not. */
void fill_memory_parts(struct facts *f);

#endif
