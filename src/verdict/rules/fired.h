/* SPDX-License-Identifier: Apache-2.0
 * Which rules matched in some test, for tools/check_rules.py, which reports those that never did.
 */
#ifndef CUWHY_FIRED_H
#define CUWHY_FIRED_H

struct cause;
struct when;

/* Appends "cause/rule" to the file that CUWHY_RULES_FIRED names; does nothing without it. */
void rule_fired(const struct cause *c, const struct when *w);

#endif
