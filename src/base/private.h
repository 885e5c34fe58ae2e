/* SPDX-License-Identifier: Apache-2.0
 * Removes secrets from texts that were written by programs: messages of exceptions, command lines, lines of code and of logs. A
 * recording stays on its machine; an answer is pasted into an issue.
 *
 * Only what can be recognized: tokens by the prefix that their issuer gave them, logins and signatures in addresses, private
 * keys, and the values of names such as password, HF_TOKEN or --api-key. A bare password in the middle of a sentence is not.
 */
#ifndef CUWHY_PRIVATE_H
#define CUWHY_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#define PRIVATE_REMOVED "(removed)"

/* `text` is freed, the answer is the caller's; *times counts what was removed, and may be NULL. */
char *private_hide_secrets(char *text, size_t *times);

/* The name after /home/ or /Users/, whoever it is, and the home folder of this user. */
char *private_hide_homes(char *text, size_t *times);

/* A copy without secrets, owned by the caller. */
char *private_shown(const char *text);

/* In every text of an object or list. `homes`: these, too, for files that are made to be sent to others. */
void private_hide_in(json_t *o, bool homes);

#endif
