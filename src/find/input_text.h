/* SPDX-License-Identifier: Apache-2.0
 * Texts opened as an input: several files may be read into one.
 */
#ifndef CUWHY_INPUT_TEXT_H
#define CUWHY_INPUT_TEXT_H

struct err;
struct text_event;
struct text_log;

struct text_source {
	struct text_log *log;
	const struct text_event *event;	/* the error that it is about; NULL = none was chosen */
};

struct text_source *text_source_new(void);
int text_source_read(struct text_source *s, const char *path, struct err *e);

#endif
