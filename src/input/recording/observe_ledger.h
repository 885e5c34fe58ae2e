/* SPDX-License-Identifier: Apache-2.0
 * Facts about who holds the memory that could not be had.
 */
#ifndef CUWHY_FACT_LEDGER_H
#define CUWHY_FACT_LEDGER_H

#include "input/recording/incident.h"
#include "case/ledger.h"

/* The ledger of a failure for lack of device memory; NULL when it is none, or of no known device. */
struct ledger *ledger_of_incident(const struct casefile *f, const struct incident *i, struct trace *t,
				  struct ledger_seen *seen);

/* `l` may be NULL. Flags that rules begin with are set in any case. */
void ledger_facts(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l,
		  const struct ledger_seen *seen);

#endif
