/* SPDX-License-Identifier: Apache-2.0
 * Writes a page: the bundled one, with the data put where it says so.
 *
 * The data is JSON inside a <script> element that no browser runs. JSON has `<`, `>` and `&` inside strings only, and
 * there they are written as escapes, as is everything beyond ASCII: nothing in the data can end the element.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "write/page_priv.h"

#define DATA_MARK	"@@cuwhy-data@@"
#define TEXT_MARK	"@@cuwhy-text@@"

extern const char cuwhy_page_start[];
extern const uint64_t cuwhy_page_size;

void page_escape(struct buf *out, const char *json, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		const char *as = json[i] == '<' ? "\\u003c" : json[i] == '>' ? "\\u003e" : json[i] == '&' ? "\\u0026" : NULL;

		if (!as)
			continue;
		buf_add(out, json + from, i - from);
		buf_adds(out, as);
		from = i + 1;
	}
	buf_add(out, json + from, len - from);
}

/* Text between tags. */
static void add_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			buf_adds(out, "&lt;");
		else if (*text == '>')
			buf_adds(out, "&gt;");
		else if (*text == '&')
			buf_adds(out, "&amp;");
		else
			buf_add(out, text, 1);
	}
}

static int add_json(const char *bytes, size_t n, void *out)
{
	page_escape(out, bytes, n);
	return 0;
}

json_t *page_data(struct page *p)
{
	page_bound(p);
	return p->data;
}

/* From `at` to the mark, which is skipped. */
static const char *copy_until(struct buf *out, const char *at, const char *mark)
{
	const char *end = cuwhy_page_start + cuwhy_page_size, *found = memmem(at, (size_t)(end - at), mark, strlen(mark));

	if (!found)
		return NULL;
	buf_add(out, at, (size_t)(found - at));
	return found + strlen(mark);
}

bool page_built(void)
{
	return cuwhy_page_size != 0;
}

int page_write(struct page *p, const char *text, struct buf *out, struct err *e)
{
	const char *at = cuwhy_page_start;

	if (!page_built()) {
		err_set(e, -ENOSYS, "this cuwhy was built without the report page");
		return err_hint(e, "build it with Node.js and npm on the machine, and without WEB=no");
	}
	at = copy_until(out, at, TEXT_MARK);
	if (at) {
		add_text(out, text);
		at = copy_until(out, at, DATA_MARK);
	}
	if (!at)
		return err_set(e, -EINVAL, "the report page of this build is damaged");
	json_dump_callback(page_data(p), add_json, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	buf_add(out, at, (size_t)(cuwhy_page_start + cuwhy_page_size - at));
	return out->full ? err_set(e, -EFBIG, "the page would be too large") : 0;
}
