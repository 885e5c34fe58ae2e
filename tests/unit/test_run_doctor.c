/* SPDX-License-Identifier: Apache-2.0
 * Failures caused by the environment: when the doctor's finding becomes the verdict, and when it does not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "judge.h"
#include "read/machine/machine.h"
#include "verdict/doctor.h"

#define NO_GPU "{\"cuwhy_bundle\": 1, \"host\": {\"kernel\": {\"nvidia\": false}, \"gpu\": [], \"node\": []}, \"variables\": {}," \
	"\"nvml\": {\"trouble\": \"no-library\"}, \"cuda\": {\"trouble\": \"no-library\"}}"
#define OLD_DRIVER "{\"cuwhy_bundle\": 1, \"host\": {\"kernel\": {\"nvidia\": true, \"version\": \"470.57.02\"}}, \"variables\": {}," \
	"\"nvml\": {\"driver\": \"470.57.02\", \"cuda\": 11040, \"gpus\": [{\"name\": \"NVIDIA A30\", \"cc_major\": 8, \"cc_minor\": 0}]}," \
	"\"cuda\": {\"init\": 0, \"version\": 11040, \"devices\": [{\"name\": \"NVIDIA A30\", \"cc_major\": 8, \"cc_minor\": 0}]}," \
	"\"python\": {\"environments\": [{\"prefix\": \"/v\", \"torch\": {\"version\": \"2.11.0+cu130\", \"build\": \"cuda\", \"cuda\": \"13.0\"}}]}}"
#define GREEN "{\"cuwhy_bundle\": 1, \"variables\": {}," \
	"\"nvml\": {\"driver\": \"580.65.06\", \"gpus\": [{\"name\": \"NVIDIA A30\", \"cc_major\": 8, \"cc_minor\": 0}]}," \
	"\"cuda\": {\"init\": 0, \"version\": 13000, \"devices\": [{\"name\": \"NVIDIA A30\", \"cc_major\": 8, \"cc_minor\": 0}]}}"

/* A program that ended with this exception, at the line of the CUDA call or elsewhere; `code` of cudaGetDeviceCount before it, 0 = CUDA was never called. */
static struct verdict *failure_at(bool elsewhere, uint32_t code, const char *libcuda, const char *type, const char *words)
{
	struct tb b;
	uint32_t s;

	tb_init(&b);
	s = tb_stack(&b, TORCH "cuda/__init__.py:478:_lazy_init", USER, NULL);
	b.h->driver_version = libcuda[0] ? 12020 : 0;
	b.h->init_result = b.h->device_count = CW_UNKNOWN;
	b.h->sim = 0;
	snprintf(b.h->libcuda_path, sizeof(b.h->libcuda_path), "%s", libcuda);
	if (code)
		tb_fail_text(&b, CW_SRC_RUNTIME, s, "cudaGetDeviceCount", "")->code = code;
	if (elsewhere)
		s = tb_stack(&b, "train.py:90:load", "train.py:99:<module>", NULL);
	tb_fail_text(&b, CW_SRC_PYTHON, s, type, words);
	return judge_end(&b, 1, 0);
}

static struct verdict *failure(uint32_t code, const char *libcuda, const char *type, const char *words)
{
	return failure_at(false, code, libcuda, type, words);
}

static bool adopt(struct verdict *v, const char *bundle)
{
	json_t *o = json_loads(bundle, 0, NULL);
	struct err e = {0};
	struct machine m;
	struct doctor *d;
	bool yes;

	assert_non_null(o);
	if (machine_from_json(&m, o, &e))
		fail_msg("%s", e.msg);
	d = doctor_judge(&m);
	yes = verdict_adopt(v, d);
	doctor_free(d);		/* a verdict owns its words */
	machine_release(&m);
	json_decref(o);
	return yes;
}

static void driver__that_is_missing_is_what_the_doctor_says(void **state)
{
	struct verdict *v = failure(35, "", "RuntimeError", "Found no NVIDIA driver on your system.");
	json_t *j;

	(void)state;
	assert_string_equal(verdict_cause(v), "container-without-gpu");
	assert_true(verdict_wants_machine(v));
	assert_true(adopt(v, NO_GPU));
	j = verdict_object(v);
	assert_string_equal(field(j, "cause"), "no-gpu");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "evidence", "doctor"));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 32);
	json_decref(j);
	verdict_free(v);
}

static void driver__that_is_too_old_gets_numbers_and_a_wheel(void **state)
{
	struct verdict *v = failure(35, "/usr/lib/libcuda.so.1", "RuntimeError", "CUDA driver version is insufficient");
	json_t *j;

	(void)state;
	assert_string_equal(verdict_cause(v), "driver-too-old");
	assert_true(adopt(v, OLD_DRIVER));
	j = verdict_object(v);
	assert_string_equal(field(j, "cause"), "driver-too-old");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "580.65.06"));
	assert_true(mentions(j, "fix", "pip install"));
	json_decref(j);
	verdict_free(v);
}

static json_t *check_named(const json_t *j, const char *id)
{
	json_t *list = json_object_get(j, "checks"), *c;
	size_t i;

	json_array_foreach(list, i, c)
		if (!strcmp(field(c, "id"), id))
			return c;
	return NULL;
}

/* The report page shows them. Without the doctor there are none. */
static void checks__of_the_doctor_are_kept_with_the_verdict(void **state)
{
	struct verdict *v = failure(35, "/usr/lib/libcuda.so.1", "RuntimeError", "CUDA driver version is insufficient");
	json_t *j = verdict_object(v);

	(void)state;
	assert_null(json_object_get(j, "checks"));
	json_decref(j);
	assert_true(adopt(v, OLD_DRIVER));
	j = verdict_object(v);
	assert_string_equal(field(check_named(j, "runtime"), "status"), "FAIL");
	assert_string_equal(field(check_named(j, "runtime"), "cause"), "driver-too-old");
	assert_string_equal(field(check_named(j, "gpu"), "status"), "OK");
	json_decref(j);
	verdict_free(v);
}

static struct verdict *old_driver_failure(void)
{
	return failure(35, "/usr/lib/libcuda.so.1", "RuntimeError", "CUDA driver version is insufficient");
}

/* On another machine, later: everything the doctor said is there, word for word. */
static void stored__verdict_of_the_doctor_is_said_again(void **state)
{
	struct verdict *v = old_driver_failure(), *again = old_driver_failure();
	json_t *j, *back;

	(void)state;
	assert_true(adopt(v, OLD_DRIVER));
	j = verdict_object(v);
	assert_true(verdict_restore(again, j));
	back = verdict_object(again);
	assert_true(json_equal(j, back));
	json_decref(back);
	json_decref(j);
	verdict_free(again);
	verdict_free(v);
}

static const struct {
	const char *key, *value;	/* JSON; "" = it is left out */
} spoilt[] = {
	{"checks", ""}, {"checks", "[]"}, {"checks", "[{\"id\": \"gpu\"}, 5, null]"}, {"checks", "{\"a\": 1}"}, {"cause", "7"},
	{"cause", "\"no-such-cause\""}, {"title", "null"}, {"process", "{\"pid\": 4}"}, {"error", "{\"code\": 700}"},
};

static void stored__verdict_that_is_none_of_the_doctors_or_another_ones_is_not_taken(void **state)
{
	struct verdict *v = old_driver_failure(), *again;
	json_t *j, *bad;

	(void)state;
	assert_true(adopt(v, OLD_DRIVER));
	j = verdict_object(v);
	for (size_t i = 0; i < sizeof(spoilt) / sizeof(spoilt[0]); i++) {
		bad = json_deep_copy(j);
		json_object_del(bad, spoilt[i].key);
		if (spoilt[i].value[0])
			json_object_set_new(bad, spoilt[i].key, json_loads(spoilt[i].value, JSON_DECODE_ANY, NULL));
		again = old_driver_failure();
		assert_false(verdict_restore(again, bad));
		assert_string_equal(verdict_cause(again), "driver-too-old");
		verdict_free(again);
		json_decref(bad);
	}
	json_decref(j);
	verdict_free(v);
}

static void stored__texts_cannot_steer_a_terminal(void **state)
{
	struct verdict *v = old_driver_failure();
	json_t *j;

	(void)state;
	assert_true(adopt(v, OLD_DRIVER));
	j = verdict_object(v);
	verdict_free(v);
	v = old_driver_failure();
	json_object_set_new(j, "title", json_string("\033[2Jgone"));
	assert_true(verdict_restore(v, j));
	assert_string_equal(verdict_title(v), "?[2Jgone");
	json_decref(j);
	verdict_free(v);
}

/* The message names the cause; that there is no GPU either is worth only one line. */
static void words__that_name_the_cause_are_not_overruled(void **state)
{
	struct verdict *v = failure(0, "", "AssertionError", "Torch not compiled with CUDA enabled");
	json_t *j;

	(void)state;
	assert_string_equal(verdict_cause(v), "cpu-only-build");
	assert_true(verdict_wants_machine(v));
	assert_false(adopt(v, NO_GPU));
	j = verdict_object(v);
	assert_string_equal(field(j, "cause"), "cpu-only-build");
	assert_true(mentions(j, "evidence", "no-gpu"));
	json_decref(j);
	verdict_free(v);
	v = failure(0, "", "ImportError", "libcudnn.so.9: cannot open shared object file: No such file or directory");
	assert_string_equal(verdict_cause(v), "wheel-packaging-defect");
	assert_false(adopt(v, NO_GPU));
	assert_string_equal(verdict_cause(v), "wheel-packaging-defect");
	verdict_free(v);
}

static void machine__that_is_fine_changes_nothing(void **state)
{
	struct verdict *v = failure(35, "/usr/lib/libcuda.so.1", "RuntimeError", "CUDA driver version is insufficient");

	(void)state;
	assert_false(adopt(v, GREEN));
	assert_string_equal(verdict_cause(v), "driver-too-old");
	verdict_free(v);
}

/* `assert torch.cuda.is_available()` does not mention CUDA; an exception about something else is not CUDA's. */
static void start__without_cuda_is_the_failure_unless_another_one_is(void **state)
{
	struct verdict *v = failure_at(true, 35, "", "RuntimeError", "this program needs a GPU");

	(void)state;
	assert_string_equal(verdict_cause(v), "container-without-gpu");
	verdict_free(v);
	v = failure_at(true, 35, "", "KeyError", "learning_rate");
	assert_string_equal(verdict_cause(v), "none");
	assert_int_equal(verdict_notes(v), 0);		/* no driver at all: it continued without a GPU */
	assert_false(verdict_wants_machine(v));
	verdict_free(v);
	v = failure_at(true, 35, "/usr/lib/libcuda.so.1", "KeyError", "learning_rate");
	assert_string_equal(verdict_cause(v), "none");
	assert_int_equal(verdict_notes(v), 1);		/* a driver that is too old is worth a line */
	verdict_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(driver__that_is_missing_is_what_the_doctor_says),
		cmocka_unit_test(driver__that_is_too_old_gets_numbers_and_a_wheel),
		cmocka_unit_test(checks__of_the_doctor_are_kept_with_the_verdict),
		cmocka_unit_test(stored__verdict_of_the_doctor_is_said_again),
		cmocka_unit_test(stored__verdict_that_is_none_of_the_doctors_or_another_ones_is_not_taken),
		cmocka_unit_test(stored__texts_cannot_steer_a_terminal),
		cmocka_unit_test(words__that_name_the_cause_are_not_overruled),
		cmocka_unit_test(machine__that_is_fine_changes_nothing),
		cmocka_unit_test(start__without_cuda_is_the_failure_unless_another_one_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
