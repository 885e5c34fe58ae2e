/* SPDX-License-Identifier: Apache-2.0
 * Which names have secrets as their values, and which values can be secrets (see private.h).
 *
 * Programs that use CUDA speak of tokens, keys and queries all the time, and a line of code must stay readable. So a name like "token"
 * or "key" says little: its value must look like one that was made by chance. A name like "hf_token" or "password" says enough.
 */
#ifndef CUWHY_PRIVATE_NAME_H
#define CUWHY_PRIVATE_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* When is the value of a name a secret? */
enum secrecy {
	SECRECY_NEVER,
	SECRECY_LONG,	/* if it looks random and is longer than a word: "key" */
	SECRECY_RANDOM, /* if it looks random: "token" */
	SECRECY_MIXED,	/* if it has letters and digits, as in "MY_TOKEN", "password_old", and is no path */
	SECRECY_ALWAYS, /* "password" */
};

/* What a name says: password, dbPassword, HF_TOKEN_2, "X-API-Key". `option`: it was given as --name. */
enum secrecy private_name(const char *name, size_t n, bool option);

/* Can this be a secret under such a name? `literal`: it was in quotes, so it is not the name of something. */
bool private_value(enum secrecy how, const char *value, size_t n, bool literal);

/* Letters and digits mixed as in no word; `also` are other characters that it may have. */
bool private_random(const char *s, size_t n, size_t least, const char *also);

/* A part of a name: letters, digits, "_" and "-". */
bool private_in_word(char c);

#endif
