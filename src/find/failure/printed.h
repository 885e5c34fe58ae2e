/* SPDX-License-Identifier: Apache-2.0
 * The exceptions of an incident as Python prints them, so that their words are read like those of any log.
 */
#ifndef CUWHY_PRINTED_H
#define CUWHY_PRINTED_H

struct cw_failure;
struct incident;
struct pool;
struct trace;

/* The traceback of the exception that ended the program, behind those of its causes; NULL: the incident has none. */
const char *incident_printed(const struct incident *i, const struct trace *t, struct pool *pool);

/* What a failure says, as its exception prints it. */
const char *printed_message(const struct cw_failure *f, const struct trace *t, struct pool *pool);

#endif
