/* SPDX-License-Identifier: Apache-2.0
 * What a recording says about an incident.
 */
#ifndef CUWHY_OBSERVE_RECORDING_H
#define CUWHY_OBSERVE_RECORDING_H

#include "find/failure/incident.h"

struct cw_device;
struct cw_failure;

#define RECORDING_OBSERVER "recording"

/* Everything: facts, lines, the ledger, evidence. What a core dump says about it comes first (see verdict/process.c). */
void recording_observe(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s);

/* Without a dump: the launches that may have failed. A single line is where it happened; with several, it cannot be known which. */
void recording_observe_suspects(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s);

struct line line_of_place(struct casefile *c, const struct trace *t, const struct place *p);
struct blamed line_with_callers(struct casefile *c, const struct trace *t, const struct place *p);

/* Who held the memory when it ran out. Flags that rules start with are always set. */
void observe_holders(struct casefile *c, const struct trace *t);	/* after the ledger, whose lines it compares */
struct cw_holders;
void holders_seen(struct casefile *c, const struct trace *t, const struct cw_holders *found);
const char *holder_words(const struct casefile *c, const struct holder_seen *h);	/* "`a.b`, a list of 3 (`a` is …)," */
void observe_ledger(struct casefile *c, const struct incident *i, struct trace *t);

/* The facts of that ledger; `l` may be NULL. */
struct ledger;
struct ledger_seen;
void ledger_facts(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l,
		  const struct ledger_seen *seen);

/* Those that say what would have let the program go on. `requests`: those of a snapshot; NULL: the recording's own. */
struct replay;
void ledger_proof(struct casefile *f, const struct incident *i, struct trace *t, const struct ledger *l,
		  const struct replay *requests);

/* What the program's source does with what a line makes: the one that graphs are kept from (`last`), else the one that ran out of memory. */
struct place;
void observe_uses(struct casefile *f, const struct incident *i, struct trace *t, const struct place *last);

void fill_launch(struct casefile *f, const struct incident *i, struct trace *t, const struct cw_device *d);
void fill_versions(struct casefile *f, const struct trace *t, const struct cw_device *d);
void fill_device(struct casefile *f, const struct incident *i, const struct trace *t, const struct cw_device *d);
void fill_xid(struct casefile *f, const struct incident *i, const struct trace *t);
void fill_memory(struct casefile *f, const struct incident *i, const struct cw_device *d);

/* What guard mode found; the only line that it can be becomes the scene. */
void observe_guard(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s);
struct cw_guard;
const struct cw_guard *trace_guard(const struct trace *t);	/* NULL: the program was not guarded */

/* The line that changed a tensor which autograd had saved becomes the scene, if it is proven. */
void observe_autograd(struct casefile *c, const struct incident *i, struct trace *t, struct scene *s);

/* The tensors of the function at `where`, if the exception that ended the program came through it. */
void observe_tensors(struct casefile *c, const struct incident *i, const struct trace *t, const struct scene *s);

/* NaN or infinity that the program read before it failed. */
void observe_numbers(struct casefile *c, struct trace *t);

void fill_hang(struct casefile *f, const struct incident *i, const struct trace *t);

/* Without a dump: the suspects that are known to assert, when all of them check the same thing, or that fit the assertion that the driver
 * printed. The stack of their launch; 0 when there is none, or more than one. */
struct asserting;
uint32_t assert_facts_of_suspects(struct casefile *f, struct trace *t, const struct cw_failure *noticed,
				  const struct asserting *a);

/* What the driver printed: the assertion, where no dump knows better, and all words. */
void observe_printed(struct casefile *c, const struct incident *i, const struct trace *t);

/* From the Python stacks of the candidate launches: what all of them have in common. */
void assert_facts_of_lines(struct casefile *f, const struct trace *t, const struct place *line, size_t n);

#endif
