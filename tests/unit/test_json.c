/* SPDX-License-Identifier: Apache-2.0
 * JSON by table: rows, and structs written and read back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"

static void assert_json(json_t *o, const char *text)
{
	char *is = json_dumps(o, JSON_COMPACT);

	assert_string_equal(is, text);
	free(is);
	json_decref(o);
}

static json_t *read_text(const char *text, size_t len, size_t max, struct err *e)
{
	char path[] = "/tmp/cuwhy-test-XXXXXX";
	int fd = mkstemp(path);
	json_t *o;

	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(fs_write(path, text, len, NULL), 0);
	o = json_read(path, max, e);
	unlink(path);
	return o;
}

static void file__bytes_and_values_are_limited(void **state)
{
	size_t n = 4 * (size_t)JSON_VALUES_MAX;
	char *many = malloc(n);
	struct err e = {0};

	(void)state;
	assert_json(read_text("{\"a\":[1,2]}", 11, 11, &e), "{\"a\":[1,2]}");
	assert_null(read_text("{\"a\":[1,2]}", 11, 10, &e));
	assert_int_equal(e.code, -EFBIG);
	assert_null(read_text("{", 1, 100, &e));
	assert_int_equal(e.code, -EINVAL);
	assert_null(json_read("/dev/zero", 100, &e));
	for (size_t i = 0; i < n; i += 2)
		memcpy(many + i, i + 2 < n ? "0," : "0]", 2);
	many[0] = '[';
	many[1] = ' ';
	assert_null(read_text(many, n, n, &e));
	assert_int_equal(e.code, -EFBIG);
	memset(many, ',', n);		/* inside a string they separate nothing */
	memcpy(many, "[\"\\\"", 4);
	memcpy(many + n - 2, "\"]", 2);
	json_decref(read_text(many, n, n, &e));
	assert_int_equal(read_text(many, n - 1, n, &e) != NULL, false);
	assert_int_equal(e.code, -EINVAL);
	free(many);
}

static void rows__keys_are_written_in_their_order(void **state)
{
	json_t *list = json_array();

	(void)state;
	assert_json(JSON_OF(J_INT("z", -1), J_BOOL("a", true), J_TEXT("m", "x"), J_HEX("h", 0x7f00),
			    J_SHARED("list", list)),
		    "{\"z\":-1,\"a\":true,\"m\":\"x\",\"h\":\"0x7f00\",\"list\":[]}");
	json_decref(list);
}

/* JSON on a terminal must not control it either; what is read back is the same. */
static void rows__what_controls_a_terminal_is_escaped(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	(void)state;
	json_print(out, JSON_OF(J_TEXT("é", "\033\177\xc2\x9b\xe2\x80\xae" "\xf3\xa0\x80\x81…")));
	fclose(out);
	assert_string_equal(text, "{\"é\":\"\\u001B\\u007F\\u009B\\u202E\\uDB40\\uDC01…\"}\n");
	free(text);
}

static void rows__what_is_not_known_is_null(void **state)
{
	(void)state;
	assert_json(JSON_OF(J_TEXT("text", NULL), J_BYTES("bytes", UINT64_MAX), J_NULL("null"),
			    J_INT_OR_NULL("int", false, 1)),
		    "{\"text\":null,\"bytes\":null,\"null\":null,\"int\":null}");
}

static int computed;

static json_int_t compute(void)
{
	return ++computed;
}

static void rows__what_is_left_out_is_not_computed(void **state)
{
	(void)state;
	assert_json(JSON_OF(J_IF(false, J_INT("a", compute())), J_VALUE("b", NULL), J_IF(true, J_INT("c", compute()))),
		    "{\"c\":1}");
	assert_int_equal(computed, 1);
}

static void rows__a_text_that_is_not_utf8_is_written(void **state)
{
	(void)state;
	assert_json(JSON_OF(J_TEXT("name", "a\xff" "b")), "{\"name\":\"a?b\"}");
}

struct inner {
	int16_t small;
};

struct thing {
	int8_t tiny;
	int32_t number;
	uint32_t rank, flag;
	uint64_t bytes, address;
	uint32_t grid[3];
	const char *text;
	char chars[4];
	struct inner inner;
	struct inner *list;
	uint32_t n;
	bool yes;
};

static const struct field inner_field[] = {F_ALWAYS(NUMBER, "small", struct inner, small), F_END};
static const struct fields inner = {inner_field, sizeof(struct inner), NULL};

static json_t *doubled(const void *member)
{
	return json_integer(2 * *(const int32_t *)member);
}

static bool halved(void *member, const json_t *v)
{
	*(int32_t *)member = (int32_t)json_integer_value(v) / 2;
	return json_is_integer(v);
}

static json_t *sum(const void *it)
{
	const struct thing *t = it;

	return t->number ? json_integer(t->number + t->tiny) : NULL;
}

static const struct field thing_field[] = {
	F_ALWAYS(NUMBER, "tiny", struct thing, tiny),
	F_BY("double", struct thing, number, doubled, halved),
	F_MADE("sum", sum),
	F_OR_NULL(NUMBER, "rank", struct thing, rank, UINT32_MAX),
	F_ALWAYS(BOOL, "flag", struct thing, flag),
	F_OR_NULL(BYTES, "bytes", struct thing, bytes, UINT64_MAX),
	F_ALWAYS(HEX, "address", struct thing, address),
	F_ALWAYS(TRIPLE, "grid", struct thing, grid),
	F_OR_NULL(TEXT, "text", struct thing, text),
	F_OR_NULL(CHARS, "chars", struct thing, chars),
	F_ALWAYS(NUMBER, "inside", struct thing, inner.small),
	F_LIST_OF("list", struct thing, list, n, inner),
	F_BOOL(struct thing, yes),
	F_END,
};
static const struct fields thing = {thing_field, sizeof(struct thing), NULL};

static void fields__every_kind_is_written(void **state)
{
	struct inner list[] = {{-3}, {4}};
	struct thing t = {-1, 5, 2, 7, 1u << 30, 0xabc, {1, 2, 3}, "t", "abc", {-9}, list, 2, true};

	(void)state;
	assert_json(fields_write(&thing, &t),
		"{\"tiny\":-1,\"double\":10,\"sum\":4,\"rank\":2,\"flag\":true,\"bytes\":1073741824,\"address\":\"0xabc\","
		"\"grid\":[1,2,3],\"text\":\"t\",\"chars\":\"abc\",\"inside\":-9,\"list\":[{\"small\":-3},{\"small\":4}],\"yes\":true}");
}

static void fields__what_is_not_known_is_null_or_left_out(void **state)
{
	struct thing t;

	(void)state;
	fields_init(&thing, &t);
	assert_json(fields_write(&thing, &t),
		    "{\"tiny\":0,\"double\":0,\"sum\":null,\"rank\":null,\"flag\":false,\"bytes\":null,\"address\":\"0x0\","
		    "\"grid\":[0,0,0],\"text\":null,\"chars\":null,\"inside\":0,\"list\":[]}");
}

static void fields__take_leaves_what_is_wrong_as_it_is(void **state)
{
	json_t *o = json_pack("{s:i,s:i,s:s,s:i,s:b,s:s,s:i}", "tiny", 300, "double", 8, "rank", "two", "bytes", -4,
			      "flag", 1, "chars", "too long", "more", 1);
	struct thing t;

	(void)state;
	fields_init(&thing, &t);
	t.tiny = 3;
	fields_take(&thing, o, &t);
	assert_int_equal(t.tiny, 3);
	assert_int_equal(t.number, 4);
	assert_int_equal(t.rank, UINT32_MAX);
	assert_true(t.bytes == UINT64_MAX);
	assert_int_equal(t.flag, 1);
	assert_string_equal(t.chars, "too");
	fields_take(&thing, NULL, &t);
	assert_int_equal(t.rank, UINT32_MAX);
	json_decref(o);
}

static void fields__read_refuses_what_is_wrong(void **state)
{
	json_t *o = json_pack("{s:i}", "tiny", 300), *more = json_pack("{s:i}", "more", 1);
	struct pool pool = {0};
	struct err e = {0};
	struct thing t;

	(void)state;
	assert_int_not_equal(fields_read(&thing, o, &t, "x", &pool, &e), 0);
	assert_non_null(strstr(e.msg, "'x.tiny'"));
	assert_int_not_equal(fields_read(&thing, more, &t, "x", &pool, &e), 0);
	assert_non_null(strstr(e.msg, "'x.more'"));
	pool_release(&pool);
	json_decref(o);
	json_decref(more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file__bytes_and_values_are_limited),
		cmocka_unit_test(rows__what_controls_a_terminal_is_escaped),
		cmocka_unit_test(rows__keys_are_written_in_their_order),
		cmocka_unit_test(rows__what_is_not_known_is_null),
		cmocka_unit_test(rows__what_is_left_out_is_not_computed),
		cmocka_unit_test(rows__a_text_that_is_not_utf8_is_written),
		cmocka_unit_test(fields__every_kind_is_written),
		cmocka_unit_test(fields__what_is_not_known_is_null_or_left_out),
		cmocka_unit_test(fields__take_leaves_what_is_wrong_as_it_is),
		cmocka_unit_test(fields__read_refuses_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
