/* SPDX-License-Identifier: Apache-2.0
 * An error that a user will read: filled once, where the cause is known, and passed upward.
 */
#ifndef CUWHY_ERR_H
#define CUWHY_ERR_H

struct err {
	int code;		/* negative errno, 0 = none */
	char msg[240];		/* lower case, no period, what failed first */
	char hint[400];		/* what to try, or "" */
};

/* Both return `code`, so that a caller can fail in one line. `e` may be NULL. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
