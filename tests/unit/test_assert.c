/* SPDX-License-Identifier: Apache-2.0
 * Device-side asserts: arguments from code, texts from data, sizes from parameters, causes from conditions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "assert_make.h"
#include "base/err.h"
#include "find/fault/assert_args.h"
#include "find/fault/assert_words.h"
#include "find/fault/culprit.h"
#include "dump_make.h"
#include "case/signature.h"
#include "judge.h"

static const struct row {
	unsigned arch;
	unsigned message, file, function, line;
	const uint64_t *code;
	size_t n;
} rows[] = {
#define ASSERT(arch, message, file, function, line, ...)                                                    \
	{arch, message, file, function, line, (const uint64_t[]){__VA_ARGS__},                              \
	 sizeof((const uint64_t[]){__VA_ARGS__}) / 8},
#include "tests/dump/assert_table.def"
};

static void args__of_calls_that_ptxas_made_are_known_on_every_architecture(void **state)
{
	struct assert_args a;
	struct am *m = malloc(sizeof(*m));

	(void)state;
	assert_true(sizeof(rows) / sizeof(rows[0]) >= 20);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct am_plan p = {.code = rows[i].code, .n_code = rows[i].n, .n_slots = 100};
		struct bytes image = am_make(m, &p);

		assert_true(assert_args_find(image, rows[i].arch, am_back(&p), &a));
		assert_true(a.known[ASSERT_MESSAGE] && a.known[ASSERT_FILE] && a.known[ASSERT_LINE] &&
			    a.known[ASSERT_FUNCTION]);
		assert_int_equal(a.value[ASSERT_LINE], rows[i].line);
		assert_int_equal(a.value[ASSERT_MESSAGE], AM_DATA + rows[i].message / 8 * 256);
		assert_int_equal(a.value[ASSERT_FILE], AM_DATA + rows[i].file / 8 * 256);
		assert_int_equal(a.value[ASSERT_FUNCTION], AM_DATA + rows[i].function / 8 * 256);
		/* no call there, and none at an address outside the code */
		assert_false(assert_args_find(image, rows[i].arch, am_back(&p) - 16, &a));
		assert_false(assert_args_find(image, rows[i].arch, 8, &a));
		assert_false(assert_args_find(image, rows[i].arch, ~0ull, &a));
	}
	free(m);
}

/* sm_90 */
#define MOV_R8_F5	0x000000f500087802, 0x000fe20000000f00
#define MOV_R8_F5_IF	0x000000f500080802, 0x000fe20000000f00	/* @P0 */
#define NOP		0x0000000000007918, 0x000fc00000000000
#define EXIT_IF		0x000000000000094d, 0x000fea0003800000	/* @P0 */
#define EXIT		0x000000000000794d, 0x000fea0003800000
#define BRA_MINUS_2	0xfffffffc00f80947, 0x000fea000383ffff	/* @P0, to the instruction before this one */
#define BRA_MINUS_3	0xfffffffc00f40947, 0x000fea000383ffff
#define CALL		0x0000000002007343, 0x001fea0003c00000
#define BRX		0xfffffe0004007949, 0x003fde000383ffff
#define STRANGE		0x00000000000473ff, 0x000fe20000000000	/* not an operation that is listed */
#define LDG_R5_128	0x0000000402057981, 0x000ea2000c1e1d00	/* writes R5 to R8 */
#define MOV_R9		0x0000000700097802, 0x000fe20000000f00

static bool line_known(const uint64_t *code, size_t n)
{
	struct am *m = malloc(sizeof(*m));
	struct am_plan p = {.code = code, .n_code = n / 8, .n_slots = 4};
	struct assert_args a;
	bool known;

	assert_true(assert_args_find(am_make(m, &p), 90, am_back(&p), &a));
	known = a.known[ASSERT_LINE];
	if (known)
		assert_int_equal(a.value[ASSERT_LINE], 0xf5);
	free(m);
	return known;
}

#define KNOWN(...) line_known((const uint64_t[]){__VA_ARGS__}, sizeof((const uint64_t[]){__VA_ARGS__}))

static void args__a_value_that_may_be_another_is_unknown(void **state)
{
	(void)state;
	assert_true(KNOWN(NOP, MOV_R8_F5, NOP, CALL));
	assert_true(KNOWN(NOP, MOV_R8_F5, EXIT_IF, MOV_R9, CALL));
	assert_true(KNOWN(NOP, BRA_MINUS_2, MOV_R8_F5, CALL));		/* a branch to somewhere before */
	assert_false(KNOWN(NOP, MOV_R8_F5_IF, NOP, CALL));		/* perhaps not executed */
	assert_false(KNOWN(NOP, MOV_R8_F5, NOP, BRA_MINUS_2, CALL));	/* a branch between it and the call */
	assert_true(KNOWN(NOP, MOV_R8_F5, NOP, BRA_MINUS_3, CALL));	/* a branch to it */
	assert_false(KNOWN(NOP, MOV_R8_F5, CALL, CALL));		/* a call in between */
	assert_false(KNOWN(NOP, MOV_R8_F5, EXIT, CALL));		/* never gets there */
	assert_false(KNOWN(NOP, MOV_R8_F5, STRANGE, CALL));		/* may write anything */
	assert_false(KNOWN(NOP, MOV_R8_F5, LDG_R5_128, CALL));		/* overwrites it */
	assert_false(KNOWN(BRX, MOV_R8_F5, NOP, CALL));			/* a jump to anywhere */
	assert_false(KNOWN(NOP, NOP, CALL));
}

/* A dump with nothing in it, except perhaps the memory that contains the message. */
static struct dump *dump_with(const char *memory)
{
	struct dump_make m;
	struct dump *d;
	uint8_t row[88] = {0};

	dump_make_init(&m);
	make_table(&m, DUMP_DEVICE, row, sizeof(row), sizeof(row), 0, 0);
	if (memory) {
		make_table(&m, DUMP_GLOBAL, memory, strlen(memory) + 1, 0, 0, 0);
		m.section[m.n - 1].sh_addr = AM_DATA + 256;
	}
	dump_make_finish(&m, 0);
	d = dump_from_bytes(m.data, m.len, NULL);
	assert_non_null(d);
	return d;
}

static void args__cut_images_are_survived(void **state)
{
	struct am *m = malloc(sizeof(*m));
	struct am_plan p = {.code = rows[8].code, .n_code = rows[8].n, .n_slots = 100,
			    .object = {{"$str", "a < b"}, {"$str$1", "x.cu"}, {"__unnamed_1", "f"}}};
	struct bytes image = am_make(m, &p);

	(void)state;
	for (size_t len = 0; len < image.len; len++) {
		uint8_t *copy = malloc(len + 1);
		struct assert_args args;
		struct assertion a;

		memcpy(copy, image.data, len);
		assert_args_find((struct bytes){copy, len}, 90, am_back(&p), &args);
		if (len % 64 == 0) {
			struct assertion_source s = {
				.dump = dump_with(NULL), .image = {copy, len}, .arch = 90, .back = am_back(&p)};

			assertion_find(&a, &s);
			assertion_free(&a);
			dump_free(s.dump);
		}
		free(copy);
	}
	free(m);
}

#define CONDITION	"i < n && n"
#define FILE_NAME	"src/k.cu"

/* The first row of sm_90 takes message, file and function from slots 1, 2 and 3. */
static struct assertion asserted(const struct am_plan *texts, const struct am_plan *before, const char *memory)
{
	const struct row *r = rows;
	struct am *m = malloc(sizeof(*m)), *o = malloc(sizeof(*o));
	struct am_plan p = *texts, q = before ? *before : *texts;
	struct assertion_source s = {.dump = dump_with(memory), .arch = 90, .name = "void ns::kernel<int>(int)"};
	struct assertion a;

	while (r->arch != 90)
		r++;
	p.code = q.code = r->code;
	p.n_code = q.n_code = r->n;
	q.original = 1;
	s.image = am_make(m, &p);
	s.back = am_back(&p);
	if (before)
		s.original = am_make(o, &q);
	assert_true(assertion_find(&a, &s));
	assert_int_equal(a.line, r->line);
	dump_free(s.dump);
	free(m);
	free(o);
	return a;
}

static void same_text(const char *have, const char *want)
{
	if (!want)
		assert_null(have);
	else
		assert_string_equal(have ? have : "(none)", want);
}

static void text__those_that_fit_are_kept(void **state)
{
	struct am_plan p = {.object = {{"$str", "!_isinf(val)"}, {"$str$1", FILE_NAME}, {"__unnamed_1", "kernel"},
				       {"$str$2", "!_isinf(sum)"}}};
	static const char *const more[] = {"!_isinf(a12)", "!_isinf(b12)", "!_isinf(c12)", "!_isinf(d12)"};
	struct assertion a = asserted(&p, NULL, NULL);

	(void)state;
	assert_null(a.condition);
	assert_int_equal(a.n_one_of, 2);
	assert_string_equal(a.one_of[0], "!_isinf(val)");
	assert_string_equal(a.one_of[1], "!_isinf(sum)");
	assertion_free(&a);
	/* too many count as none */
	for (int i = 4; i < 8; i++)
		p.object[i] = (struct am_object){"$x", more[i - 4]};
	a = asserted(&p, NULL, NULL);
	assert_int_equal(a.n_one_of, 0);
	assertion_free(&a);
}

static void check_texts(struct assertion a, const char *condition, const char *file, const char *function)
{
	same_text(a.condition, condition);
	same_text(a.file, file);
	same_text(a.function, function);
	assertion_free(&a);
}

static void text__a_string_is_known_by_its_length(void **state)
{
	struct am_plan p = {.object = {{"$str", CONDITION}, {"$str$1", FILE_NAME}, {"__unnamed_1", "kernel"},
				       {"$str$2", "longer < than all"}, {"$str$3", "other/file.h"}}};

	(void)state;
	check_texts(asserted(&p, NULL, NULL), CONDITION, FILE_NAME, "kernel");
	/* a name and a path as long as the condition are not mistaken for it */
	p.object[5] = (struct am_object){"__unnamed_2", "operator()"};
	p.object[6] = (struct am_object){"$str$4", "src/ab.cuh"};
	check_texts(asserted(&p, NULL, NULL), CONDITION, FILE_NAME, "kernel");
	/* the same text twice is one text */
	p.object[7] = (struct am_object){"$str$5", CONDITION};
	check_texts(asserted(&p, NULL, NULL), CONDITION, FILE_NAME, "kernel");
}

static void text__of_two_that_fit_none_is_chosen(void **state)
{
	struct am_plan p = {.object = {{"$str", CONDITION}, {"$str$1", FILE_NAME}, {"__unnamed_1", "kernel"},
				       {"$str$2", "j < n && n"}, {"$str$3", "src/j.cu"}, {"__unnamed_2", "common"}}};

	(void)state;
	/* among the functions, the one with the kernel's own name is the right one */
	check_texts(asserted(&p, NULL, NULL), NULL, NULL, "kernel");
	p.object[2].text = "helper";
	check_texts(asserted(&p, NULL, NULL), NULL, NULL, NULL);
	/* a condition that looks like a name: more names than functions */
	p = (struct am_plan){.object = {{"$str", "ok_now"}, {"$str$1", FILE_NAME}, {"__unnamed_1", "kernel"}}};
	check_texts(asserted(&p, NULL, NULL), NULL, FILE_NAME, "kernel");
}

static void text__memory_and_the_image_before_relocation_are_exact(void **state)
{
	struct am_plan p = {.object = {{"$str", CONDITION}, {"$str$1", FILE_NAME}, {"__unnamed_1", "kernel"},
				       {"$str$2", "j < n && n"}, {"$str$3", "src/j.cu"}, {"__unnamed_2", "common"}}};

	(void)state;
	check_texts(asserted(&p, NULL, CONDITION), CONDITION, NULL, "kernel");
	check_texts(asserted(&p, &p, NULL), CONDITION, FILE_NAME, "kernel");
}

static void text__signatures_and_triton_names(void **state)
{
	struct am_plan p = {.object = {{"assertMessage_0", "index out of bounds: 0 <= tmp4 < 10"},
				       {"assertFile_0", "/c/x.py"},
				       {"assertFunc_0", "unknown"}}};

	(void)state;
	check_texts(asserted(&p, NULL, NULL), "index out of bounds: 0 <= tmp4 < 10", "/c/x.py", "unknown");
	p = (struct am_plan){.object = {{"$str", "b[i] >= 0 && (c == d(e))"}, {"$str$1", FILE_NAME},
					{"__unnamed_1", "void pick(float *, bool)"}}};
	check_texts(asserted(&p, NULL, NULL), "b[i] >= 0 && (c == d(e))", FILE_NAME, "void pick(float *, bool)");
}

/* A thread that is still inside __assertfail: only its stack says where it was called. */
static void text__a_call_is_found_on_the_stack(void **state)
{
	const struct row *r = rows;
	struct dump_plan plan = {.lane_exception = 12, .lanes_hit = 1, .lane_pc = 32, .code = {MAKE_MOV_R9, MAKE_BRA}};
	struct am_plan p = {.object = {{"$str", CONDITION}, {"$str$1", FILE_NAME}, {"__unnamed_1", "kernel"}}};
	struct am *image = malloc(sizeof(*image));
	uint64_t frame[6] = {0, 0x1230, 0, 0, 0, 1};	/* another call, then ours */
	struct dump_make m;
	struct culprit *c;
	struct dump *d;

	(void)state;
	while (r->arch != 90)
		r++;
	p.code = r->code;
	p.n_code = r->n;
	frame[4] = am_back(&p);
	dump_make_init(&m);
	make_host_side(&m, &plan);
	m.section[m.image].sh_size = am_make(image, &p).len;
	m.section[m.image].sh_offset = make_append(&m, image->bytes, image->len);
	make_device_side(&m, &plan);
	make_table(&m, DUMP_BACKTRACE, frame, sizeof(frame), 24, m.lane, 0);
	dump_make_finish(&m, 0);
	d = dump_from_bytes(m.data, m.len, NULL);
	assert_non_null(d);
	c = culprit_find(d);
	assert_int_equal(c->fault, FAULT_ASSERT);
	same_text(c->assertion.condition, CONDITION);
	same_text(c->assertion.file, FILE_NAME);
	assert_int_equal(c->assertion.line, r->line);
	culprit_free(c);
	dump_free(d);
	free(image);
}

static void signature__parameters_lie_where_their_types_put_them(void **state)
{
	static const char loss[] = "void at::native::(anonymous namespace)::loss<float, long>(float*, float const*, "
				   "long const*, bool, int, long, unsigned char, double)";
	static const size_t offset[] = {0, 8, 16, 24, 28, 32, 40, 48};
	struct signature_param p;
	uint8_t bytes[56] = {0};
	int64_t v, n = -7, m = 3;

	(void)state;
	for (unsigned i = 0; i < 8; i++) {
		assert_true(signature_param(loss, i, &p));
		assert_int_equal(p.offset, offset[i]);
	}
	assert_false(signature_param(loss, 8, &p));
	assert_true(signature_param(loss, 2, &p));
	assert_string_equal(p.points_to_dtype, "int64");
	memcpy(bytes + 28, &n, 4);
	memcpy(bytes + 32, &m, 8);
	assert_true(signature_integer(loss, 4, bytes, sizeof(bytes), &v) && v == -7);
	assert_true(signature_integer(loss, 5, bytes, sizeof(bytes), &v) && v == 3);
	assert_false(signature_integer(loss, 5, bytes, 39, &v));	/* cut short */
	assert_false(signature_integer(loss, 0, bytes, sizeof(bytes), &v));	/* a pointer */
	assert_false(signature_integer(loss, 7, bytes, sizeof(bytes), &v));	/* not an integer */
	/* after a structure nothing is known */
	assert_true(signature_param("f(int, at::TensorInfo<float, int>, int)", 0, &p));
	assert_false(signature_param("f(int, at::TensorInfo<float, int>, int)", 2, &p));
	assert_true(signature_param("f(void (*)(int, int), int)", 0, &p) == false);
	/* but the last one is right before the end */
	memcpy(bytes + 48, &m, 8);
	assert_true(signature_integer("f(at::TensorInfo<float, int>, int, long)", SIGNATURE_LAST, bytes, 56, &v) &&
		    v == 3);
	assert_false(signature_integer("f(at::TensorInfo<float, int>, int, long)", SIGNATURE_LAST, bytes, 52, &v));
	assert_false(signature_integer("f(int, at::TensorInfo<float, int>)", SIGNATURE_LAST, bytes, 56, &v));
	assert_false(signature_integer("f()", SIGNATURE_LAST, bytes, 56, &v));
	assert_false(signature_param("f", 0, &p));
	assert_false(signature_param("f()", 0, &p));
	assert_false(signature_param("", 0, &p));
	assert_false(signature_param(")", 0, &p));
}

struct said_assert {
	const char *kernel, *condition, *cause, *certainty;
};

static json_t *judge_one_of(const char *kernel, const char *condition, const char *other, const void *params, size_t len)
{
	struct culprit_lane lane = {.block = {0}};
	struct culprit c = {.fault = FAULT_ASSERT, .source = CULPRIT_LANE, .exception = 12,
			    .exception_name = "WARP_ASSERT", .grid_known = true, .lanes = &lane, .n_lanes = 1,
			    .n_kept = 1, .device_name = "", .sm_type = "", .insn = {.name = ""}};
	struct verdict *v;
	json_t *j;

	c.kernel = c.kernel_text = strdup(kernel);
	c.params = (struct bytes){params, len};
	c.assertion.condition = condition && !other ? strdup(condition) : NULL;
	if (other) {
		c.assertion.one_of[0] = strdup(condition);
		c.assertion.one_of[1] = strdup(other);
		c.assertion.n_one_of = 2;
	}
	v = verdict_of_dump(&c);
	j = verdict_object(v);
	verdict_free(v);
	free(c.kernel);
	assertion_free(&c.assertion);
	return j;
}

static json_t *judge_assert(const char *kernel, const char *condition, const void *params, size_t len)
{
	return judge_one_of(kernel, condition, NULL, params, len);
}

static void cause__of_several_conditions_is_what_all_are_about(void **state)
{
	json_t *j = judge_one_of("at::native::sampleMultinomialOnce()", "!_isinf(val)", "!_isinf(sum)", NULL, 0), *a;

	(void)state;
	assert_string_equal(field(j, "cause"), "invalid-probability");
	assert_string_equal(field(j, "certainty"), "certain");
	a = json_object_get(json_object_get(j, "fault"), "assert");
	assert_true(json_is_null(json_object_get(a, "condition")));
	assert_string_equal(field(a, "one_of"), "`!_isinf(val)` or `!_isinf(sum)`");
	json_decref(j);
	j = judge_one_of("merge()", "t < n_classes", "left < right!", NULL, 0);
	assert_string_equal(field(j, "cause"), "kernel-assert");
	json_decref(j);
}

static void cause__is_told_by_kernel_and_condition(void **state)
{
	static const struct said_assert list[] = {
		{"at::native::nll_loss2d_forward_kernel()", "cur_target >= 0 && cur_target < n_classes",
		 "label-out-of-range", "certain"},
		{"at::native::nll_loss_forward_reduce_cuda_kernel_1d()", NULL, "label-out-of-range", "likely"},
		{"my_loss()", "t >= 0 && t < n_classes", "label-out-of-range", "certain"},
		{"my_loss()", "n_classes > 0", "kernel-assert", "certain"},
		{"at::native::indexSelectLargeIndex()", "srcIndex < srcSelectDimSize", "index-out-of-range", "likely"},
		{"at::native::index_elementwise_kernel()",
		 "-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"", "index-out-of-range", "certain"},
		{"at::native::_scatter_gather_elementwise_kernel()",
		 "idx_dim >= 0 && idx_dim < index_size && \"index out of bounds\"", "index-out-of-range", "certain"},
		{"at::native::sampleMultinomialOnce()", "val >= zero", "invalid-probability", "certain"},
		{"at::native::sampleMultinomialWithReplacement()", "cumdist[size - 1] > static_cast<scalar_t>(0)",
		 "invalid-probability", "certain"},
		{"at::native::sampleMultinomialOnce()", "!at::_isnan(val)", "invalid-probability", "certain"},
		{"merge()", "val >= zero", "kernel-assert", "certain"},
		{"at::native::vectorized_elementwise_kernel()", "input_val >= zero && input_val <= one",
		 "input-out-of-range", "likely"},
		{"at::native::vectorized_elementwise_kernel()", "target_val >= zero && target_val <= one",
		 "input-out-of-range", "likely"},
		{"at::native::vectorized_elementwise_kernel()", "lambda >= 0 && \"invalid Poisson rate\"",
		 "input-out-of-range", "likely"},
		{"at::native::EmbeddingBag_updateOutputKernel_sum_mean()",
		 "!has_invalid_index && \"Invalid input index in EmbeddingBag: index out of range [0, numRows)\"",
		 "embedding-index-out-of-range", "certain"},
		{"at::native::MultiMarginLoss_forward_kernel()",
		 "target_k >= 0 && target_k < dim && \"target index is out of bounds\"",
		 "label-out-of-range", "certain"},
		{"at::native::nll_loss_backward_reduce_cuda_kernel_2d()", "index >= 0", "kernel-assert", "certain"},
		{"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::binary_cross_entropy_out_cuda("
		 "at::Tensor const&)::{lambda()#1}>(int)::{lambda(int)#1}>(int)", NULL, "input-out-of-range", "likely"},
		{"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::binary_cross_entropy_out_cuda("
		 "at::Tensor const&)::{lambda()#1}>(int)::{lambda(int)#1}>(int)", "false", "kernel-assert", "certain"},
		{"focal()", "!isnan(loss)", "nan-in-loss-assert", "certain"},
		{"merge()", "left < right", "kernel-assert", "certain"},
		{"merge()", NULL, "kernel-assert", "certain"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		json_t *j = judge_assert(list[i].kernel, list[i].condition, NULL, 0);

		if (strcmp(field(j, "cause"), list[i].cause) || strcmp(field(j, "certainty"), list[i].certainty))
			fail_msg("%s, %s: %s, %s", list[i].kernel, list[i].condition ? list[i].condition : "-",
				 field(j, "cause"), field(j, "certainty"));
		json_decref(j);
	}
}

static void cause__the_exceeded_size_comes_from_the_parameters(void **state)
{
	static const char gather[] =
		"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, "
		"long, long, long, bool)";
	struct { uint64_t out, in, index; int32_t n; int64_t slice, size, stride[2]; bool negative; } params = {
		.n = 4, .slice = 1024, .size = 50257};
	json_t *j = judge_assert(gather,
				 "ind >=0 && ind < ind_dim_size && \"vectorized gather kernel index out of bounds\"",
				 &params, sizeof(params));

	(void)state;
	assert_true(mentions(j, "why", "50,257 elements"));
	assert_true(mentions(j, "why", "the indices are int64"));
	json_decref(j);
	/* after structures, but the last one */
	j = judge_assert("void at::native::(anonymous namespace)::indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>("
			 "at::cuda::detail::TensorInfo<float, unsigned int>, int, unsigned int, long)",
			 "srcIndex < srcSelectDimSize", (const int64_t[]){1, 2, 30522}, 24);
	assert_true(mentions(j, "why", "30,522 elements"));
	json_decref(j);
	/* another condition of the same kernel is not about it */
	j = judge_assert(gather, "index out of bounds", &params, sizeof(params));
	assert_false(mentions(j, "why", "50,257"));
	json_decref(j);
	/* a size that cannot be one */
	params.size = -1;
	j = judge_assert(gather, "ind < ind_dim_size", &params, sizeof(params));
	assert_false(mentions(j, "why", "elements"));
	json_decref(j);
}

static void cause__classes_and_the_ignored_label_are_said(void **state)
{
	struct { uint64_t p[5]; bool average; int64_t frames, dim, classes, ignored; } params = {
		.frames = 4, .dim = 3, .classes = 3, .ignored = -1};
	json_t *j = judge_assert("void at::native::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, "
				 "float const*, long const*, float const*, bool, long, long, long, long)",
				 "t >= 0 && t < n_classes", &params, sizeof(params));
	json_t *fix = json_array_get(json_object_get(j, "fix"), 0);

	(void)state;
	assert_true(mentions(j, "why", "3 classes, so labels must be 0 to 2"));
	assert_true(mentions(j, "why", "only -1 is skipped"));
	assert_non_null(strstr(field(fix, "command"), "(labels >= 3)) & (labels != -1)"));
	json_decref(j);
}

static void cause__a_message_can_be_a_parameter(void **state)
{
	struct { uint64_t input; char message[256]; } params = {
		.message = "probability tensor contains either `inf`, `nan` or element < 0"};
	json_t *j = judge_assert("void at::native::_assert_async_cuda_kernel<bool>(bool const*, at::native::Msg)", NULL,
				 &params, sizeof(params));

	(void)state;
	assert_string_equal(field(j, "cause"), "invalid-probability");
	assert_string_equal(field(json_object_get(json_object_get(j, "fault"), "assert"), "condition"), params.message);
	json_decref(j);
	memset(params.message, 'x', sizeof(params.message));	/* not terminated */
	j = judge_assert("void at::native::_assert_async_cuda_kernel<bool>(bool const*, at::native::Msg)", NULL,
			 &params, sizeof(params));
	assert_string_equal(field(j, "cause"), "kernel-assert");
	json_decref(j);
}

static json_t *judge_values(const char *kernel, const char *condition, const struct values *values)
{
	struct culprit c = {.fault = FAULT_ASSERT, .source = CULPRIT_LANE, .exception = 12, .exception_name = "WARP_ASSERT",
			    .exception_text = "", .n_lanes = 1, .values = *values};
	struct verdict *v;
	json_t *j;

	c.kernel_text = (char *)kernel;
	c.assertion.condition = strdup(condition);
	v = verdict_of_dump(&c);
	j = verdict_object(v);
	verdict_free(v);
	assertion_free(&c.assertion);
	return j;
}

static struct values one_value(uint64_t raw, unsigned n, bool real, uint64_t bound)
{
	struct values v = {.answer = VALUES_FOUND, .n_kept = 1, .n_found = 1, .n_threads = 1};

	v.value[0] = (struct checked){
		.at = 0x7f0000001000 + 5ull * n, .base = 0x7f0000001000, .n = n, .n_raw = 8, .compared = true};
	memcpy(v.value[0].raw, &raw, sizeof(raw));
	v.value[0].compare = (struct sass_compare){.how = SASS_GE,
						   .real = real,
						   .is_signed = true,
						   .known = true,
						   .width = n < 8 ? 4 : 8,
						   .a = raw, .b = bound, .n_a = n};
	return v;
}

static void value__decides_between_a_number_and_nan(void **state)
{
	static const char condition[] = "input_val >= zero && input_val <= one";
	static const char kernel[] = "at::native::vectorized_elementwise_kernel()";
	struct values number = one_value(0x3fc00000, 4, true, 0), nan = one_value(0x7fc00000, 4, true, 0);
	json_t *j = judge_values(kernel, condition, &number);

	(void)state;
	assert_string_equal(field(j, "cause"), "input-out-of-range");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "the input at position 5 is 1.5"));
	json_decref(j);
	j = judge_values(kernel, condition, &nan);
	assert_string_equal(field(j, "cause"), "nan-in-loss-assert");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "the input at position 5 is nan"));
	json_decref(j);
}

/* A probability that is infinite makes every later sum NaN: where the sum is checked is not where the mistake is. */
static void value__of_a_sum_is_not_one_of_the_probabilities(void **state)
{
	struct values nan = one_value(0x7fc00000, 4, true, 0);
	json_t *j = judge_values("void at::native::sampleMultinomialWithReplacement<float>()",
				 "cumdist[size - 1] > static_cast<scalar_t>(0)", &nan);
	json_t *a = json_object_get(json_object_get(j, "fault"), "assert");

	(void)state;
	assert_string_equal(field(j, "cause"), "invalid-probability");
	assert_string_equal(field(a, "values"), "the sum up to position 5 is nan");
	assert_false(json_is_number(json_object_get(a, "at")));
	json_decref(j);
	j = judge_values("void at::native::sampleMultinomialOnce<float, float>()", "val >= zero", &nan);
	a = json_object_get(json_object_get(j, "fault"), "assert");
	assert_string_equal(field(a, "values"), "the probability at position 5 is nan");
	json_decref(j);
}

static void value__of_an_index_has_its_bound_and_its_whole_width(void **state)
{
	struct values v = one_value(200, 4, false, 100);
	json_t *j, *a;

	(void)state;
	/* the kernel compared half of an index of eight bytes */
	v.value[0].at = 0x7f0000001000 + 5 * 8;
	j = judge_values("void at::native::indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>()",
			 "srcIndex < srcSelectDimSize", &v);
	a = json_object_get(json_object_get(j, "fault"), "assert");
	assert_string_equal(field(a, "values"), "the index at position 5 is 200");
	assert_true(mentions(j, "why", "100 elements"));
	json_decref(j);
	/* of four bytes */
	j = judge_values("void at::native::indexSelectSmallIndex<float, int, unsigned int, 2, 2, -2>()",
			 "srcIndex < srcSelectDimSize", &v);
	a = json_object_get(json_object_get(j, "fault"), "assert");
	assert_string_equal(field(a, "values"), "the index at position 10 is 200");
	json_decref(j);
}

static void value__that_an_address_was_computed_from_is_said(void **state)
{
	struct culprit c = {.fault = FAULT_ILLEGAL_ADDRESS, .source = CULPRIT_LANE, .exception = 14,
			    .exception_name = "WARP_ILLEGAL_ADDRESS", .exception_text = "", .n_lanes = 1};
	struct verdict *v;
	json_t *j;

	(void)state;
	c.values = one_value(123456789, 4, false, 0);
	v = verdict_of_dump(&c);
	j = verdict_object(v);
	assert_true(mentions(j, "why", "a number that the kernel read from memory: 123456789, at position 5"));
	json_decref(j);
	verdict_free(v);
	/* a pointer is no index */
	c.values = one_value(0x7f0000001000, 8, false, 0);
	v = verdict_of_dump(&c);
	j = verdict_object(v);
	assert_false(mentions(j, "why", "from memory"));
	json_decref(j);
	verdict_free(v);
}

static void value__that_the_condition_allows_is_not_said(void **state)
{
	struct values v = one_value(0x3f000000, 4, true, 0);
	json_t *j = judge_values("at::native::vectorized_elementwise_kernel()", "input_val >= zero && input_val <= one", &v), *a;

	(void)state;
	a = json_object_get(json_object_get(j, "fault"), "assert");
	assert_true(json_is_null(json_object_get(a, "values")) && json_is_null(json_object_get(a, "value")));
	assert_true(mentions(j, "why", "cannot be followed"));
	json_decref(j);
}

static void value__that_is_unknown_is_said_to_be(void **state)
{
	struct values lost = {.answer = VALUES_LOST, .n_threads = 1}, place = one_value(0, 8, false, 3),
		      unread = {.answer = VALUES_UNREAD};
	json_t *j = judge_values("my_loss()", "t >= 0 && t < n_classes", &lost);

	(void)state;
	assert_true(mentions(j, "why", "cannot be followed"));
	json_decref(j);
	place.answer = VALUES_PLACES;
	place.value[0].n_raw = 0;
	j = judge_values("my_loss()", "t >= 0 && t < n_classes", &place);
	assert_true(mentions(j, "why", "what failed the check is the label at position 5"));
	assert_true(mentions(j, "fix", "contain the GPU's memory"));
	json_decref(j);
	j = judge_values("my_loss()", "t >= 0 && t < n_classes", &unread);
	assert_false(mentions(j, "why", "what failed the check"));
	assert_true(mentions(j, "fix", "contain the GPU's memory"));
	json_decref(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(args__of_calls_that_ptxas_made_are_known_on_every_architecture),
		cmocka_unit_test(args__a_value_that_may_be_another_is_unknown),
		cmocka_unit_test(args__cut_images_are_survived),
		cmocka_unit_test(text__a_string_is_known_by_its_length),
		cmocka_unit_test(text__of_two_that_fit_none_is_chosen),
		cmocka_unit_test(text__those_that_fit_are_kept),
		cmocka_unit_test(text__memory_and_the_image_before_relocation_are_exact),
		cmocka_unit_test(text__signatures_and_triton_names),
		cmocka_unit_test(text__a_call_is_found_on_the_stack),
		cmocka_unit_test(signature__parameters_lie_where_their_types_put_them),
		cmocka_unit_test(cause__is_told_by_kernel_and_condition),
		cmocka_unit_test(cause__the_exceeded_size_comes_from_the_parameters),
		cmocka_unit_test(cause__of_several_conditions_is_what_all_are_about),
		cmocka_unit_test(cause__classes_and_the_ignored_label_are_said),
		cmocka_unit_test(cause__a_message_can_be_a_parameter),
		cmocka_unit_test(value__decides_between_a_number_and_nan),
		cmocka_unit_test(value__of_a_sum_is_not_one_of_the_probabilities),
		cmocka_unit_test(value__of_an_index_has_its_bound_and_its_whole_width),
		cmocka_unit_test(value__that_an_address_was_computed_from_is_said),
		cmocka_unit_test(value__that_the_condition_allows_is_not_said),
		cmocka_unit_test(value__that_is_unknown_is_said_to_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
