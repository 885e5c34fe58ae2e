/* SPDX-License-Identifier: Apache-2.0
 * What a message stands for (kb/messages.def), where the rules leave it open.
 */
#ifndef CUWHY_MESSAGE_CAUSES_H
#define CUWHY_MESSAGE_CAUSES_H

#include "verdict/rules/rules.h"

/* Adds the causes of message.causes that no rule matched, behind those that did; nothing if a rule is certain. If no rule matched at
 * all and a fatal message stands for one cause only, that one is likely. */
void message_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool);

#endif
