/* SPDX-License-Identifier: Apache-2.0
 * What goes with what: drivers, toolkits, GPUs, code and wheels.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "compat/compat.h"

static struct compat_driver driver(const char *text)
{
	struct compat_driver d;

	assert_true(compat_driver_parse(text, &d));
	return d;
}

static void driver__versions_are_read_and_written(void **state)
{
	struct compat_driver d;
	char text[32];

	(void)state;
	assert_string_equal(compat_driver_text(driver("580.65.06"), text), "580.65.06");
	assert_string_equal(compat_driver_text(driver("440.33"), text), "440.33");
	assert_string_equal(compat_driver_text(driver("580"), text), "580");
	assert_string_equal(compat_driver_text(driver("535.104.05 Release Build"), text), "535.104.05");
	assert_true(compat_driver_compare(driver("580.65.06"), driver("580.65.07")) < 0);
	assert_true(compat_driver_compare(driver("580.126.09"), driver("580.65.06")) > 0);
	assert_true(compat_driver_compare(driver("570.26"), driver("570.26.00")) == 0);
	for (size_t i = 0; i < 9; i++) {
		static const char *const bad[] = {"",	   "x",		  "-1", ".5",  "580.65.06.1",
						  "580.x", "99999999999", "0",	"580a"};

		assert_false(compat_driver_parse(bad[i], &d));
		assert_int_equal(d.major, 0);
	}
	assert_false(compat_driver_parse(NULL, &d));
}

static void driver__its_cuda_version(void **state)
{
	(void)state;
	assert_int_equal(compat_driver_cuda(driver("580.159.04")), 13000);
	assert_int_equal(compat_driver_cuda(driver("565.57.01")), 12070);
	assert_int_equal(compat_driver_cuda(driver("470.256.02")), 11040);
	assert_int_equal(compat_driver_cuda(driver("430.50")), 0);
	assert_int_equal(compat_driver_cuda(driver("900.10")), 0);
	assert_true(compat_driver_is_newer(driver("900.10")));
	assert_false(compat_driver_is_newer(driver("615.10")));
}

static void driver__runs_a_toolkit(void **state)
{
	static const struct {
		const char *driver;
		int cuda;
		enum compat_run run;
	} cases[] = {
		{"580.65.06", 13000, COMPAT_RUN_NATIVE}, {"580.65.06", 13020, COMPAT_RUN_MINOR},
		{"580.65.06", 12080, COMPAT_RUN_NATIVE}, {"580.65.06", 11080, COMPAT_RUN_NATIVE},
		{"575.57.08", 13000, COMPAT_RUN_FORWARD}, {"535.54.03", 13000, COMPAT_RUN_FORWARD},
		{"530.30.02", 13000, COMPAT_RUN_NO}, {"525.60.13", 12080, COMPAT_RUN_MINOR},
		{"525.60.12", 12080, COMPAT_RUN_FORWARD}, {"570.86.16", 12080, COMPAT_RUN_NATIVE},
		{"520.61.05", 12010, COMPAT_RUN_FORWARD}, {"470.82.01", 12060, COMPAT_RUN_FORWARD},
		{"460.32.03", 12060, COMPAT_RUN_NO}, {"450.80.02", 11080, COMPAT_RUN_MINOR},
		{"450.51.06", 11080, COMPAT_RUN_FORWARD}, {"450.51.06", 11000, COMPAT_RUN_NATIVE},
		{"440.33", 10020, COMPAT_RUN_NATIVE}, {"418.87", 10020, COMPAT_RUN_NO},
		/* versions that are newer than the tables */
		{"900.10", 13000, COMPAT_RUN_NATIVE}, {"580.65.06", 13090, COMPAT_RUN_MINOR},
		{"900.10", 14000, COMPAT_RUN_UNKNOWN}, {"580.65.06", 0, COMPAT_RUN_UNKNOWN},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (compat_driver_runs(driver(cases[i].driver), cases[i].cuda) != cases[i].run)
			fail_msg("driver %s, CUDA %d: %d", cases[i].driver, cases[i].cuda,
				 compat_driver_runs(driver(cases[i].driver), cases[i].cuda));
	assert_int_equal(compat_driver_runs((struct compat_driver){0}, 13000), COMPAT_RUN_UNKNOWN);
}

static void driver__what_a_toolkit_needs(void **state)
{
	struct compat_need need;
	char text[32];

	(void)state;
	assert_true(compat_driver_needed(12080, &need));
	assert_string_equal(compat_driver_text(need.least, text), "525.60.13");
	assert_string_equal(compat_driver_text(need.full, text), "570.26");
	assert_true(compat_driver_needed(11000, &need));
	assert_string_equal(compat_driver_text(need.least, text), "450.51.05");
	assert_true(compat_driver_needed(10020, &need));
	assert_string_equal(compat_driver_text(need.least, text), "440.33");
	assert_true(compat_driver_needed(13090, &need));
	assert_int_equal(need.full.major, 0);
	assert_false(compat_driver_needed(14000, &need));
	assert_false(compat_driver_needed(0, &need));
}

/* What a toolkit needs must run it, and what came with it must run it natively. */
static void driver__needs_and_runs_agree(void **state)
{
	struct compat_need need;

	(void)state;
	for (int cuda = 9000; cuda < 14000; cuda += 10) {
		if (!compat_driver_needed(cuda, &need))
			continue;
		assert_in_range(compat_driver_runs(need.least, cuda), COMPAT_RUN_NATIVE, COMPAT_RUN_MINOR);
		if (need.full.major)
			assert_int_equal(compat_driver_runs(need.full, cuda), COMPAT_RUN_NATIVE);
		need.least.major--;
		assert_in_range(compat_driver_runs(need.least, cuda), COMPAT_RUN_FORWARD, COMPAT_RUN_NO);
	}
}

static void gpu__newest_driver(void **state)
{
	(void)state;
	assert_int_equal(compat_branch_for(37), 470);
	assert_int_equal(compat_branch_for(52), 580);
	assert_int_equal(compat_branch_for(70), 580);
	assert_int_equal(compat_branch_for(75), compat_branch_for(120));
	assert_int_equal(compat_branch_for(990), 0);
	assert_int_equal(compat_driver_cuda((struct compat_driver){.major = compat_branch_for(37)}), 11040);
	assert_int_equal(compat_driver_cuda((struct compat_driver){.major = compat_branch_for(61)}), 13000);
	assert_int_equal(compat_first_branch_for(120), 570);
	assert_int_equal(compat_first_branch_for(90), 520);
	assert_int_equal(compat_first_branch_for(50), 0);
}

static void gpu__supported_by_a_driver(void **state)
{
	(void)state;
	assert_int_equal(compat_driver_supports(driver("580.82.07"), 70), 1);
	assert_int_equal(compat_driver_supports(driver("590.44.01"), 70), 0);
	assert_int_equal(compat_driver_supports(driver("470.256.02"), 37), 1);
	assert_int_equal(compat_driver_supports(driver("495.29.05"), 37), 0);
	assert_int_equal(compat_driver_supports(driver("590.44.01"), 75), 1);
	assert_int_equal(compat_driver_supports(driver("550.54.14"), 120), 0);
	assert_int_equal(compat_driver_supports(driver("900.1"), 90), -1);
	assert_int_equal(compat_driver_supports((struct compat_driver){0}, 90), -1);
	assert_int_equal(compat_driver_supports(driver("580.82.07"), 990), -1);
}

static void gpu__by_pci_id(void **state)
{
	const struct compat_gpu *g;

	(void)state;
	g = compat_gpu_by_pci(0x2335);
	assert_string_equal(g->name, "H200");
	assert_int_equal(g->cc, 90);
	assert_int_equal(g->class, COMPAT_CLASS_DATACENTER);
	assert_int_equal(compat_gpu_by_pci(0x102d)->cc, 37);	/* K80, inside another chip's range */
	g = compat_gpu_by_pci(0x24dd);				/* a laptop GPU: not listed itself */
	assert_null(g->name);
	assert_int_equal(g->cc, 86);
	assert_string_equal(g->chip, "GA104");
	assert_null(compat_gpu_by_pci(0x0001));
	assert_null(compat_gpu_by_pci(0xffff));
}

static void gpu__by_name(void **state)
{
	static const struct {
		const char *name;
		int cc;
		enum compat_class class;
	} cases[] = {
		{"NVIDIA GeForce RTX 3090", 86, COMPAT_CLASS_GEFORCE},
		{"NVIDIA GeForce RTX 3080 Laptop GPU", 86, COMPAT_CLASS_GEFORCE},
		{"GeForce GTX 1080 Ti", 61, COMPAT_CLASS_GEFORCE},
		{"NVIDIA GeForce GTX 1650", 75, COMPAT_CLASS_GEFORCE},
		{"NVIDIA GeForce RTX 2050", 86, COMPAT_CLASS_GEFORCE}, {"NVIDIA TITAN V", 70, COMPAT_CLASS_GEFORCE},
		{"NVIDIA A100-SXM4-80GB", 80, COMPAT_CLASS_DATACENTER}, {"NVIDIA A10", 86, COMPAT_CLASS_DATACENTER},
		{"NVIDIA A10G", 86, COMPAT_CLASS_DATACENTER}, {"NVIDIA A2", 86, COMPAT_CLASS_DATACENTER},
		{"NVIDIA A30", 80, COMPAT_CLASS_DATACENTER}, {"NVIDIA L4", 89, COMPAT_CLASS_DATACENTER},
		{"NVIDIA L40S", 89, COMPAT_CLASS_DATACENTER}, {"Tesla T4", 75, COMPAT_CLASS_DATACENTER},
		{"Tesla V100-SXM2-16GB", 70, COMPAT_CLASS_DATACENTER}, {"Tesla P40", 61, COMPAT_CLASS_DATACENTER},
		{"Tesla P100-PCIE-16GB", 60, COMPAT_CLASS_DATACENTER}, {"Tesla K80", 37, COMPAT_CLASS_DATACENTER},
		{"NVIDIA H100 80GB HBM3", 90, COMPAT_CLASS_DATACENTER}, {"NVIDIA H20", 90, COMPAT_CLASS_DATACENTER},
		{"NVIDIA GH200 480GB", 90, COMPAT_CLASS_DATACENTER}, {"NVIDIA B200", 100, COMPAT_CLASS_DATACENTER},
		{"NVIDIA GB10", 121, COMPAT_CLASS_WORKSTATION}, {"NVIDIA RTX A6000", 86, COMPAT_CLASS_WORKSTATION},
		{"NVIDIA RTX 6000 Ada Generation", 89, COMPAT_CLASS_WORKSTATION},
		{"Quadro RTX 6000", 75, COMPAT_CLASS_WORKSTATION}, {"Quadro P2000", 61, COMPAT_CLASS_WORKSTATION},
		{"NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 120, COMPAT_CLASS_WORKSTATION},
		{"NVIDIA GeForce RTX 5090", 120, COMPAT_CLASS_GEFORCE},
		{"NVIDIA T1000 8GB", 75, COMPAT_CLASS_WORKSTATION},
		{"Orin (nvgpu)", 87, COMPAT_CLASS_JETSON},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct compat_gpu *g = compat_gpu_by_name(cases[i].name);

		if (!g || g->cc != cases[i].cc || compat_class_of(cases[i].name) != cases[i].class)
			fail_msg("%s: %d, class %d", cases[i].name, g ? g->cc : 0, compat_class_of(cases[i].name));
	}
	assert_null(compat_gpu_by_name("NVIDIA Zeus 9000"));
	assert_null(compat_gpu_by_name(NULL));
	assert_int_equal(compat_class_of("NVIDIA GeForce RTX 9090"), COMPAT_CLASS_GEFORCE);
	assert_int_equal(compat_class_of("Zeus"), COMPAT_CLASS_UNKNOWN);
	assert_false(compat_class_forward(compat_class_of("NVIDIA GeForce RTX 3090")));
	assert_true(compat_class_forward(compat_class_of("Tesla T4")));
}

static void gpu__is_known_by_what_people_call_it(void **state)
{
	static const struct { const char *words, *shown; int cc; } cases[] = {
		{"RTX 5090", "GeForce RTX 5090", 120},
		{"rtx5090", "GeForce RTX 5090", 120},
		{"5090", "GeForce RTX 5090", 120},
		{"NVIDIA GeForce RTX 3060", "GeForce RTX 3060", 86},
		{"nvidia geforce rtx 4090 laptop gpu", "GeForce RTX 4090 Laptop GPU", 89},
		{"gtx 1080 ti", "GeForce GTX 1080 Ti", 61},
		{"a100-40gb", "A100 40GB", 80},
		{"v100", "Tesla V100", 70},
		{"T4", "Tesla T4", 75},
		{"rtx a6000", "RTX A6000", 86},
		{"gh200", "GH200", 90},
		{"sm_120", "a GPU of compute capability 12.0", 120},
		{"9.0", "a GPU of compute capability 9.0", 90},
	};
	char shown[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct compat_gpu *g = compat_gpu_by_words(cases[i].words, shown, sizeof(shown));

		if (!g)
			fail_msg("'%s' is not known", cases[i].words);
		assert_int_equal(g->cc, cases[i].cc);
		assert_string_equal(shown, cases[i].shown);
	}
	assert_null(compat_gpu_by_words("Zeus 9000", shown, sizeof(shown)));
	assert_null(compat_gpu_by_words("", shown, sizeof(shown)));
	assert_null(compat_gpu_by_words("3.1415", shown, sizeof(shown)));
}

static void wheel__for_windows_goes_by_the_branch(void **state)
{
	struct compat_choice list[COMPAT_CHOICES_MAX];
	int cc = 75;
	struct compat_ask ask = {.driver = {528, 49, 0}, .cc = &cc, .n_cc = 1, .windows = true};
	char command[256];

	(void)state;
	assert_true(compat_recommend(&ask, list, COMPAT_CHOICES_MAX) > 0);
	assert_int_equal(list[0].wheel->cuda / 1000, 12);
	assert_non_null(strstr(compat_wheel_command_windows(list[0].wheel, command, sizeof(command)), "--index-url"));
	/* on Linux, 525.60.13 is enough for CUDA 12, and 450.80.02 for CUDA 11 */
	static const struct {
		struct compat_driver driver;
		int cuda;
	} floors[] = {
		{{528, 33, 0}, 12},
		{{528, 2, 0}, 11},
		{{527, 41, 0}, 11},
		{{525, COMPAT_ANY_RELEASE, 0}, 11},
		{{528, COMPAT_ANY_RELEASE, 0}, 12},
		{{452, 39, 0}, 11},
		{{452, 6, 0}, 0},
		{{451, 48, 0}, 0},
		{{580, 88, 0}, 13},
		{{576, 2, 0}, 12},
	};
	for (size_t i = 0; i < sizeof(floors) / sizeof(floors[0]); i++) {
		size_t n;

		ask.driver = floors[i].driver;
		n = compat_recommend(&ask, list, COMPAT_CHOICES_MAX);
		assert_int_equal(n > 0 && list[0].fit <= COMPAT_FIT_MINOR ? list[0].wheel->cuda / 1000 : 0,
				 floors[i].cuda);
	}
}

/* Every card in the table is also found by its name, as the same GPU. */
static void gpu__names_and_ids_agree(void **state)
{
	size_t n = 0;

	(void)state;
	for (int id = 0; id <= 0xffff; id++) {
		const struct compat_gpu *g = compat_gpu_by_pci((uint16_t)id), *same;

		if (!g)
			continue;
		assert_non_null(compat_generation(g->cc));
		assert_non_null(compat_capability(g->cc));
		same = g->name ? compat_gpu_by_name(g->name) : NULL;
		n += same != NULL;
		if (same && (same->cc != g->cc || same->class != g->class))
			fail_msg("%04x %s: %d/%d by id, %d/%d by name (%s)", id, g->name, g->cc, g->class, same->cc,
				 same->class, same->name);
	}
	assert_true(n > 200);
}

static enum compat_code sass(int arch, char suffix, int cc)
{
	return compat_sass_runs((struct compat_target){arch, suffix}, cc);
}

static enum compat_code ptx(int arch, char suffix, int version, int cc, int cuda)
{
	return compat_ptx_runs((struct compat_target){arch, suffix}, version, cc, cuda);
}

static void code__sass_of_the_same_major(void **state)
{
	(void)state;
	assert_int_equal(sass(80, 0, 89), COMPAT_CODE_RUNS);
	assert_int_equal(sass(86, 0, 89), COMPAT_CODE_RUNS);
	assert_int_equal(sass(70, 0, 75), COMPAT_CODE_RUNS);
	assert_int_equal(sass(60, 0, 61), COMPAT_CODE_RUNS);
	assert_int_equal(sass(100, 0, 103), COMPAT_CODE_RUNS);
	assert_int_equal(sass(120, 0, 121), COMPAT_CODE_RUNS);
	assert_int_equal(sass(86, 0, 80), COMPAT_CODE_OTHER_MAJOR);
	assert_int_equal(sass(90, 0, 100), COMPAT_CODE_OTHER_MAJOR);
	assert_int_equal(sass(100, 0, 120), COMPAT_CODE_OTHER_MAJOR);
	assert_int_equal(sass(100, 0, 110), COMPAT_CODE_OTHER_MAJOR);
	assert_int_equal(sass(90, 0, 0), COMPAT_CODE_UNKNOWN);
	/* a capability that no table knows follows the same rule */
	assert_int_equal(sass(120, 0, 129), COMPAT_CODE_RUNS);
}

static void code__systems_on_a_chip(void **state)
{
	(void)state;
	assert_int_equal(sass(87, 0, 87), COMPAT_CODE_RUNS);
	assert_int_equal(sass(80, 0, 87), COMPAT_CODE_TEGRA);
	assert_int_equal(sass(87, 0, 89), COMPAT_CODE_TEGRA);
	assert_int_equal(sass(70, 0, 72), COMPAT_CODE_TEGRA);
	assert_int_equal(sass(101, 0, 110), COMPAT_CODE_RUNS);	/* the same one, before it was renamed */
}

static void code__specific_targets(void **state)
{
	(void)state;
	assert_int_equal(sass(90, 'a', 90), COMPAT_CODE_RUNS);
	assert_int_equal(sass(100, 'a', 103), COMPAT_CODE_SPECIFIC);
	assert_int_equal(sass(90, 'a', 100), COMPAT_CODE_SPECIFIC);
	assert_int_equal(sass(100, 'f', 103), COMPAT_CODE_RUNS);
	assert_int_equal(sass(120, 'f', 121), COMPAT_CODE_RUNS);
	assert_int_equal(sass(103, 'f', 100), COMPAT_CODE_SPECIFIC);
	assert_int_equal(sass(100, 'f', 120), COMPAT_CODE_SPECIFIC);
	assert_int_equal(ptx(90, 'a', 80, 100, 13000), COMPAT_CODE_SPECIFIC);
	assert_int_equal(ptx(90, 'a', 80, 90, 13000), COMPAT_CODE_RUNS);
	assert_int_equal(ptx(100, 'f', 88, 103, 13000), COMPAT_CODE_RUNS);
	assert_int_equal(ptx(100, 'f', 88, 120, 13000), COMPAT_CODE_SPECIFIC);
}

static void code__ptx_needs_a_driver_that_reads_it(void **state)
{
	(void)state;
	assert_int_equal(ptx(80, 0, 87, 120, 12080), COMPAT_CODE_RUNS);
	assert_int_equal(ptx(90, 0, 87, 80, 12080), COMPAT_CODE_TOO_NEW);
	assert_int_equal(ptx(80, 0, 88, 90, 12080), COMPAT_CODE_PTX_VERSION);
	assert_int_equal(ptx(80, 0, 86, 90, 12060), COMPAT_CODE_PTX_VERSION);
	assert_int_equal(ptx(80, 0, 85, 90, 12060), COMPAT_CODE_RUNS);
	assert_int_equal(ptx(80, 0, 87, 90, 0), COMPAT_CODE_UNKNOWN);
	assert_int_equal(ptx(80, 0, 0, 90, 12080), COMPAT_CODE_UNKNOWN);
	/* future PTX: no current driver reads it, a future one may */
	assert_int_equal(ptx(80, 0, 990, 90, 13000), COMPAT_CODE_PTX_VERSION);
	assert_int_equal(ptx(80, 0, 990, 90, 99000), COMPAT_CODE_UNKNOWN);
	assert_int_equal(compat_ptx_of_cuda(12080), 87);
	assert_int_equal(compat_ptx_of_cuda(12060), 85);
	assert_int_equal(compat_ptx_of_cuda(99000), 0);
	assert_int_equal(compat_cuda_of_ptx(90), 13000);
}

static void wheel__by_version(void **state)
{
	const struct compat_wheel *w;

	(void)state;
	assert_string_equal(compat_torch("2.7.1+cu128")->release, "2.7");
	assert_string_equal(compat_torch("2.10.0")->release, "2.10");
	assert_string_equal(compat_torch("2.1")->release, "2.1");
	assert_null(compat_torch("2.71"));
	assert_null(compat_torch("3.0"));
	assert_null(compat_torch(NULL));
	w = compat_wheel("2.7.1+cu128", 0, COMPAT_X86_64);
	assert_int_equal(w->cuda, 12080);
	w = compat_wheel("2.7.1", 0, COMPAT_X86_64);
	assert_string_equal(w->variant, "cu126");
	assert_true(w->is_default);
	assert_string_equal(compat_wheel("2.7.1", 12080, COMPAT_X86_64)->variant, "cu128");
	assert_null(compat_wheel("2.7.1+cpu", 0, COMPAT_X86_64));
	assert_null(compat_wheel("2.9.1", 0, COMPAT_AARCH64));	/* the index had only CPU builds */
	assert_true(compat_torch_has_python(compat_torch("2.7"), 313, true));
	assert_false(compat_torch_has_python(compat_torch("2.7"), 312, true));
	assert_false(compat_torch_has_python(compat_torch("2.7"), 314, false));
}

static void wheel__lists_are_read(void **state)
{
	const char *list = "75 90a 100f 120+PTX";
	struct compat_arch a;

	(void)state;
	assert_true(compat_arch_next(&list, &a) && a.target.arch == 75 && !a.target.suffix && !a.ptx);
	assert_true(compat_arch_next(&list, &a) && a.target.arch == 90 && a.target.suffix == 'a');
	assert_true(compat_arch_next(&list, &a) && a.target.arch == 100 && a.target.suffix == 'f');
	assert_true(compat_arch_next(&list, &a) && a.target.arch == 120 && a.ptx);
	assert_false(compat_arch_next(&list, &a));
	list = NULL;
	assert_false(compat_arch_next(&list, &a));
}

/* Every row makes sense: its variant is its CUDA version, its release is listed, its list can be read to the end. */
static void wheel__rows_are_whole(void **state)
{
	const struct compat_wheel *w;
	size_t i, defaults = 0;

	(void)state;
	for (i = 0; (w = compat_wheel_at(i)); i++) {
		const char *list = w->archs;
		struct compat_arch a;
		char variant[16];
		int before = 0;

		snprintf(variant, sizeof(variant), "cu%d%d", w->cuda / 1000, w->cuda % 1000 / 10);
		assert_string_equal(w->variant, variant);
		assert_non_null(compat_torch(w->release));
		assert_ptr_equal(compat_wheel(w->release, w->cuda, w->machine), w);
		assert_false(w->is_default && w->experimental);
		defaults += w->is_default && w->machine == COMPAT_X86_64;
		while (compat_arch_next(&list, &a)) {
			assert_true(a.target.arch > before);
			before = a.target.arch;
			assert_non_null(compat_capability(a.target.arch));
			assert_int_equal(compat_wheel_code(w, a.target.arch, w->cuda), COMPAT_CODE_RUNS);
		}
		assert_true(!w->archs || (before && *list == '\0'));
	}
	assert_true(i > 50 && i <= COMPAT_CHOICES_MAX);
	assert_int_equal(defaults, 17);
}

static void wheel__code_for_a_gpu(void **state)
{
	const struct compat_wheel *cu128 = compat_wheel("2.10", 12080, COMPAT_X86_64);
	const struct compat_wheel *ptx_too = compat_wheel("2.8", 12090, COMPAT_X86_64);

	(void)state;
	assert_int_equal(compat_wheel_code(cu128, 89, 12080), COMPAT_CODE_RUNS);
	assert_int_equal(compat_wheel_code(cu128, 61, 12080), COMPAT_CODE_OTHER_MAJOR);
	assert_int_equal(compat_wheel_code(cu128, 87, 12080), COMPAT_CODE_TEGRA);
	/* a GPU of the future runs PTX, if its driver reads it */
	assert_int_equal(compat_wheel_code(ptx_too, 130, 13000), COMPAT_CODE_RUNS);
	assert_int_equal(compat_wheel_code(ptx_too, 130, 12080), COMPAT_CODE_PTX_VERSION);
	assert_int_equal(compat_wheel_code(compat_wheel("2.7", 11080, COMPAT_X86_64), 90, 12080), COMPAT_CODE_UNKNOWN);
}

static struct compat_choice choices[COMPAT_CHOICES_MAX];

static size_t recommend(const char *version, int cc, int python, bool forward)
{
	struct compat_ask ask = {.cc = &cc, .n_cc = 1, .python = python, .forward = forward};

	if (version)
		ask.driver = driver(version);
	return compat_recommend(&ask, choices, COMPAT_CHOICES_MAX);
}

static const struct compat_choice *choice(size_t n, const char *release, const char *variant)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(choices[i].wheel->release, release) == 0 && strcmp(choices[i].wheel->variant, variant) == 0)
			return &choices[i];
	fail_msg("no choice %s %s", release, variant);
	return NULL;
}

static void recommend__the_newest_that_runs(void **state)
{
	size_t n;

	(void)state;
	n = recommend("580.159.04", 90, 312, true);
	assert_string_equal(choices[0].wheel->release, compat_wheel_at(0)->release);
	assert_int_equal(choices[0].fit, COMPAT_FIT_MINOR);	/* 13.2 on a driver of 13.0 */
	for (size_t i = 0; i < n; i++)
		assert_true(choices[i].why[0] != '\0');
	/* of one release, what the driver runs natively */
	assert_true(choice(n, "2.14", "cu130") < choice(n, "2.14", "cu132"));
}

static void recommend__volta_stays_with_cuda_12(void **state)
{
	size_t n;

	(void)state;
	n = recommend("580.159.04", 70, 312, true);
	assert_string_equal(choices[0].wheel->variant, "cu126");
	assert_string_equal(choices[0].wheel->release, "2.14");
	assert_int_equal(choice(n, "2.15", "cu132")->fit, COMPAT_FIT_CODE);
	assert_non_null(strstr(choice(n, "2.15", "cu132")->why, "7.0"));
}

static void recommend__kepler_has_no_driver_for_cuda_12(void **state)
{
	size_t n;

	(void)state;
	n = recommend("470.256.02", 37, 0, false);
	assert_int_equal(choices[0].wheel->cuda / 1000, 11);
	assert_string_equal(choices[0].wheel->release, "2.6");
	assert_string_equal(choices[0].wheel->variant, "cu118");
	assert_int_equal(choice(n, "2.5", "cu124")->fit, COMPAT_FIT_CODE);
}

static void recommend__an_old_driver_on_a_gaming_card(void **state)
{
	const struct compat_choice *c;
	size_t n;

	(void)state;
	n = recommend("550.54.14", 89, 311, false);
	assert_int_equal(choices[0].wheel->cuda / 1000, 12);
	c = choice(n, "2.11", "cu130");
	assert_int_equal(c->fit, COMPAT_FIT_DRIVER);
	assert_non_null(strstr(c->why, "580.65.06"));
	/* the same with a data-center card: the compat package helps, but what runs without it comes first */
	n = recommend("550.54.14", 80, 311, true);
	assert_true(choices[0].fit <= COMPAT_FIT_MINOR);
	assert_int_equal(choice(n, "2.11", "cu130")->fit, COMPAT_FIT_FORWARD);
}

static void recommend__python_decides(void **state)
{
	size_t n;

	(void)state;
	n = recommend("580.159.04", 90, 308, true);
	assert_string_equal(choices[0].wheel->release, "2.4");
	assert_int_equal(choice(n, "2.15", "cu132")->fit, COMPAT_FIT_PYTHON);
	assert_non_null(strstr(choice(n, "2.15", "cu132")->why, "3.11"));
}

static void recommend__several_gpus(void **state)
{
	static const int both[] = {61, 89}, apart[] = {61, 120};
	struct compat_ask ask = {.driver = driver("580.159.04"), .cc = both, .n_cc = 2, .python = 312};
	size_t n = compat_recommend(&ask, choices, COMPAT_CHOICES_MAX);

	(void)state;
	assert_string_equal(choices[0].wheel->variant, "cu126");
	assert_int_equal(choice(n, "2.11", "cu130")->cc, 61);
	ask.cc = apart;		/* no wheel is known to have code for both */
	n = compat_recommend(&ask, choices, COMPAT_CHOICES_MAX);
	for (size_t i = 0; i < n; i++)
		assert_true(choices[i].wheel->archs ? choices[i].fit == COMPAT_FIT_CODE
						    : choices[i].fit == COMPAT_FIT_UNKNOWN);
}

static void recommend__what_is_not_known_is_not_refused(void **state)
{
	(void)state;
	recommend(NULL, 90, 312, false);
	assert_int_equal(choices[0].fit, COMPAT_FIT_UNKNOWN);
	recommend("900.10", 90, 312, false);
	assert_int_equal(choices[0].fit, COMPAT_FIT_NATIVE);
	assert_int_equal(compat_recommend(&(struct compat_ask){0}, choices, 3), 3);
}

/* "Upgrade the driver" is never said where no newer driver supports the GPU. */
static void recommend__no_driver_that_does_not_exist(void **state)
{
	static const char *const drivers[] = {"418.87", "470.256.02", "525.60.13", "550.54.14", "580.65.06"};
	static const int ccs[] = {37, 52, 61, 70, 75, 90, 120};
	struct compat_need need;
	size_t n;

	(void)state;
	for (size_t d = 0; d < 5; d++)
		for (size_t c = 0; c < 7; c++) {
			n = recommend(drivers[d], ccs[c], 0, false);
			for (size_t i = 0; i < n; i++)
				if (choices[i].fit == COMPAT_FIT_DRIVER) {
					assert_true(compat_driver_needed(choices[i].wheel->cuda, &need));
					assert_true(need.least.major <= compat_branch_for(ccs[c]));
				}
		}
}

static void recommend__commands(void **state)
{
	char text[200];

	(void)state;
	assert_string_equal(compat_wheel_command(compat_wheel("2.7", 12060, COMPAT_X86_64), text, sizeof(text)),
			    "pip install 'torch==2.7.*'");
	assert_non_null(strstr(compat_wheel_command(compat_wheel("2.7", 12080, COMPAT_X86_64), text, sizeof(text)),
			       "/whl/cu128"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(driver__versions_are_read_and_written),
		cmocka_unit_test(driver__its_cuda_version),
		cmocka_unit_test(driver__runs_a_toolkit),
		cmocka_unit_test(driver__what_a_toolkit_needs),
		cmocka_unit_test(driver__needs_and_runs_agree),
		cmocka_unit_test(gpu__newest_driver),
		cmocka_unit_test(gpu__supported_by_a_driver),
		cmocka_unit_test(gpu__by_pci_id),
		cmocka_unit_test(gpu__by_name),
		cmocka_unit_test(gpu__names_and_ids_agree),
		cmocka_unit_test(code__sass_of_the_same_major),
		cmocka_unit_test(code__systems_on_a_chip),
		cmocka_unit_test(code__specific_targets),
		cmocka_unit_test(code__ptx_needs_a_driver_that_reads_it),
		cmocka_unit_test(wheel__by_version),
		cmocka_unit_test(wheel__lists_are_read),
		cmocka_unit_test(wheel__rows_are_whole),
		cmocka_unit_test(wheel__code_for_a_gpu),
		cmocka_unit_test(recommend__the_newest_that_runs),
		cmocka_unit_test(recommend__volta_stays_with_cuda_12),
		cmocka_unit_test(recommend__kepler_has_no_driver_for_cuda_12),
		cmocka_unit_test(recommend__an_old_driver_on_a_gaming_card),
		cmocka_unit_test(recommend__python_decides),
		cmocka_unit_test(recommend__several_gpus),
		cmocka_unit_test(recommend__what_is_not_known_is_not_refused),
		cmocka_unit_test(recommend__no_driver_that_does_not_exist),
		cmocka_unit_test(recommend__commands),
		cmocka_unit_test(gpu__is_known_by_what_people_call_it),
		cmocka_unit_test(wheel__for_windows_goes_by_the_branch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
