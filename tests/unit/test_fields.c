/* SPDX-License-Identifier: Apache-2.0
 * Structs to JSON and back by their tables: what is unknown, what is rejected, what is accepted where it fits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "base/json.h"

struct limits {
	int on;
	int64_t most;
};

struct part {
	const char *name;
	int on;
};

struct thing {
	const char *line;
	int on;
	int64_t most;
	struct limits limits, rest;
	struct part *part;
	ptrdiff_t n_parts;
	struct part *other;
	size_t n_others;
};

static const struct field limits_field[] = {F_FLAG(struct limits, on), F_LIMIT(struct limits, most), F_END};
static const struct fields limits_fields = {limits_field, sizeof(struct limits), NULL};

static const struct field part_field[] = {F_LINE(struct part, name), F_FLAG(struct part, on), F_END};
static const struct fields part_fields = {part_field, sizeof(struct part), NULL};

static const struct field thing_field[] = {
	F_LINE(struct thing, line),
	F_FLAG(struct thing, on),
	F_LIMIT(struct thing, most),
	F_GROUP(struct thing, limits, limits_fields),
	F_OBJECT(struct thing, rest, limits_fields), F_KNOWN_LIST(struct thing, "parts", part, n_parts, part_fields),
	F_LIST(struct thing, "others", other, n_others, part_fields), F_END,
};
static const struct fields thing_fields = {thing_field, sizeof(struct thing), NULL};

static struct pool pool;

static int release(void **state)
{
	(void)state;
	pool_release(&pool);
	return 0;
}

static void is_written(const struct thing *t, const char *as)
{
	json_t *o = fields_write(&thing_fields, t);
	char *text = json_dumps(o, 0);

	assert_string_equal(text, as);
	free(text);
	json_decref(o);
}

static int read_text(struct thing *t, const char *text, struct err *e)
{
	json_t *o = json_loads(text, 0, NULL);
	int rc = fields_read(&thing_fields, o, t, "", &pool, e);

	json_decref(o);
	return rc;
}

static void read_fitting_text(struct thing *t, const char *text)
{
	json_t *o = json_loads(text, 0, NULL);

	fields_read_fitting(&thing_fields, o, t, &pool);
	json_decref(o);
}

static void unknown__a_group_and_an_empty_list_are_there_all_the_same(void **state)
{
	struct thing t;

	(void)state;
	fields_init(&thing_fields, &t);
	assert_int_equal(t.on, -1);
	assert_int_equal(t.limits.most, -1);
	assert_int_equal(t.n_parts, -1);
	is_written(&t, "{\"limits\": {}}");
	t.n_parts = 0;
	is_written(&t, "{\"limits\": {}, \"parts\": []}");
}

static void known__flags_limits_and_lines_come_back_as_they_were(void **state)
{
	static const char text[] =
		"{\"line\": \"a\", \"on\": false, \"most\": \"unlimited\", \"limits\": {\"on\": true, \"most\": 7}, "
		"\"parts\": [{\"name\": \"b\"}, {}]}";
	struct thing t;
	struct err e;

	(void)state;
	assert_int_equal(read_text(&t, text, &e), 0);
	assert_true(t.most == INT64_MAX);
	assert_int_equal(t.limits.most, 7);
	assert_int_equal(t.n_parts, 2);
	is_written(&t, text);
}

static void read__a_wrong_value_is_refused_with_its_key(void **state)
{
	struct thing t;
	struct err e;

	(void)state;
	assert_true(read_text(&t, "{\"on\": 1}", &e) < 0);
	assert_string_equal(e.msg, "'on' in the bundle should be true or false");
	assert_true(read_text(&t, "{\"limits\": {\"most\": -1}}", &e) < 0);
	assert_non_null(strstr(e.msg, "'limits.most'"));
	assert_true(read_text(&t, "{\"limits\": {\"most\": \"none\"}}", &e) < 0);
	assert_true(read_text(&t, "{\"parts\": [{\"name\": 5}]}", &e) < 0);
	assert_non_null(strstr(e.msg, "'parts[0].name'"));
}

static void read__a_line_has_no_control_bytes(void **state)
{
	struct thing t;
	struct err e;

	(void)state;
	assert_int_equal(read_text(&t, "{\"line\": \"a\\nb\\u001b[1m\\u007f\"}", &e), 0);
	assert_string_equal(t.line, "a b?[1m?");
}

static void fitting__what_does_not_fit_is_not_known(void **state)
{
	char text[FIELD_LINE_MAX + 64];
	struct thing t;

	(void)state;
	read_fitting_text(&t, "{\"line\": 5, \"on\": 1, \"most\": -3, \"new\": 1, \"limits\": [], \"rest\": {\"on\": true, \"most\": 1.5}, "
		    "\"parts\": [{\"name\": \"a\", \"on\": 2}, 7, {\"on\": false}], \"others\": {}}");
	assert_null(t.line);
	assert_int_equal(t.on, -1);
	assert_int_equal(t.most, -1);
	assert_int_equal(t.limits.on, -1);
	assert_int_equal(t.rest.on, 1);
	assert_int_equal(t.rest.most, -1);
	assert_int_equal(t.n_parts, 2);
	assert_string_equal(t.part[0].name, "a");
	assert_int_equal(t.part[0].on, -1);
	assert_int_equal(t.part[1].on, 0);
	assert_int_equal(t.n_others, 0);
	read_fitting_text(&t, "[]");
	assert_int_equal(t.n_parts, -1);
	memcpy(text, "{\"line\": \"", 10);
	memset(text + 10, 'x', FIELD_LINE_MAX + 1);
	memcpy(text + 10 + FIELD_LINE_MAX + 1, "\"}", 3);
	read_fitting_text(&t, text);
	assert_null(t.line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown__a_group_and_an_empty_list_are_there_all_the_same),
		cmocka_unit_test(known__flags_limits_and_lines_come_back_as_they_were),
		cmocka_unit_test(read__a_wrong_value_is_refused_with_its_key),
		cmocka_unit_test(read__a_line_has_no_control_bytes),
		cmocka_unit_test(fitting__what_does_not_fit_is_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, release);
}
