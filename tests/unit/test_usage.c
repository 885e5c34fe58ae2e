/* SPDX-License-Identifier: Apache-2.0
 * Who is using the GPUs: sums, names, pids from other namespaces, and JSON written and read back.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "read/recording/usage_json.h"
#include "probe/holder.h"
#include "probe/usage.h"

#define UUID "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
static const uint8_t uuid[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

static struct gpu_usage *one_gpu(void)
{
	struct gpu_card c = {.index = 3, .uuid = UUID, .pci = "00000000:01:00.0", .name = "a card", .total = 1000,
			     .reserved = 100, .used = 600, .free = 300};
	struct gpu_usage *u = usage_new();

	usage_add_gpu(u, &c);
	return u;
}

static void add(struct gpu_usage *u, uint32_t pid, uint32_t instance, uint32_t kind, uint64_t bytes)
{
	struct gpu_holder h = {.pid = pid, .instance = instance, .kind = kind, .bytes = bytes};

	usage_add_holder(&u->gpu[0], &h);
}

static void holders__one_process_in_two_lists_counts_once(void **state)
{
	struct gpu_usage *u = one_gpu();

	(void)state;
	add(u, 7, UINT32_MAX, HOLDER_COMPUTE, 50);
	add(u, 7, UINT32_MAX, HOLDER_GRAPHICS, 50);
	assert_int_equal(u->gpu[0].n, 1);
	assert_int_equal(u->gpu[0].holder[0].kind, HOLDER_COMPUTE | HOLDER_GRAPHICS);
	assert_int_equal(u->gpu[0].holder[0].bytes, 50);
	assert_int_equal(usage_unattributed(&u->gpu[0]), 550);
	usage_free(u);
}

static void holders__instances_of_one_process_add_up(void **state)
{
	struct gpu_usage *u = one_gpu();

	(void)state;
	add(u, 7, 1, HOLDER_COMPUTE, 50);
	add(u, 7, 2, HOLDER_COMPUTE, 60);
	assert_int_equal(u->gpu[0].n, 2);
	assert_int_equal(usage_unattributed(&u->gpu[0]), 490);
	usage_free(u);
}

static void holders__unknown_bytes_are_no_bytes(void **state)
{
	struct gpu_usage *u = one_gpu();

	(void)state;
	add(u, 7, UINT32_MAX, HOLDER_COMPUTE, USAGE_UNKNOWN);
	add(u, 8, UINT32_MAX, HOLDER_COMPUTE, 10);
	add(u, 9, UINT32_MAX, HOLDER_COMPUTE, 20);
	usage_sort(u);
	assert_int_equal(u->gpu[0].holder[0].pid, 9);
	assert_int_equal(u->gpu[0].holder[2].pid, 7);
	assert_true(u->gpu[0].holder[2].bytes == USAGE_UNKNOWN);
	assert_int_equal(usage_unattributed(&u->gpu[0]), 570);
	add(u, 7, UINT32_MAX, HOLDER_MPS, 30);
	assert_int_equal(u->gpu[0].holder[2].bytes, 30);
	usage_free(u);
}

static void unattributed__never_below_nothing(void **state)
{
	struct gpu_usage *u = one_gpu();

	(void)state;
	add(u, 7, UINT32_MAX, HOLDER_COMPUTE, 700);
	assert_int_equal(usage_unattributed(&u->gpu[0]), 0);
	u->gpu[0].card.used = USAGE_UNKNOWN;
	assert_true(usage_unattributed(&u->gpu[0]) == USAGE_UNKNOWN);
	usage_free(u);
}

static void find__by_the_bytes_of_the_uuid(void **state)
{
	struct gpu_usage *u = one_gpu();
	uint8_t other[16];

	(void)state;
	assert_ptr_equal(usage_find(u, uuid), &u->gpu[0]);
	memcpy(other, uuid, sizeof(other));
	other[15]++;
	assert_null(usage_find(u, other));
	snprintf(u->gpu[0].card.uuid, sizeof(u->gpu[0].card.uuid), "MIG%s", &UUID[3]);
	assert_null(usage_find(u, uuid));
	u->gpu[0].card.uuid[0] = '\0';
	assert_null(usage_find(u, uuid));
	assert_null(usage_find(NULL, uuid));
	usage_free(u);
}

static void look__our_own_process_is_named(void **state)
{
	struct gpu_holder h = {.pid = (uint32_t)getpid()};

	(void)state;
	holder_look(&h, true);
	assert_int_equal(h.state, HOLDER_RUNNING);
	assert_int_equal(h.own_user, 1);
	assert_non_null(strstr(h.command, program_invocation_short_name));
}

/* In a container a pid of the host may be that of a process here that has nothing to do with the GPU. */
static void look__a_pid_of_the_host_is_not_mistaken_for_ours(void **state)
{
	struct gpu_holder h = {.pid = (uint32_t)getpid()};

	(void)state;
	holder_look(&h, false);
	assert_int_equal(h.state, HOLDER_OUTSIDE);
	assert_string_equal(h.command, "");
}

static void look__in_a_container_a_process_with_the_driver_is_it(void **state)
{
	char path[] = "/tmp/cuwhy-libcuda.so.XXXXXX";
	struct gpu_holder h = {.pid = (uint32_t)getpid()};
	int fd = mkstemp(path);
	void *map;

	(void)state;
	assert_true(fd >= 0 && ftruncate(fd, 4096) == 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	holder_look(&h, false);
	munmap(map, 4096);
	close(fd);
	unlink(path);
	assert_int_equal(h.state, HOLDER_RUNNING);
	assert_non_null(strstr(h.command, program_invocation_short_name));
}

static void look__who_is_not_there(void **state)
{
	struct gpu_holder h = {.pid = 0x7ffffff0};

	(void)state;
	holder_look(&h, true);
	assert_int_equal(h.state, HOLDER_GONE);
	holder_look(&h, false);
	assert_int_equal(h.state, HOLDER_OUTSIDE);
	h.pid = 0;	/* never kill(0): that would be ourselves */
	holder_look(&h, true);
	assert_int_equal(h.state, HOLDER_UNKNOWN);
}

static void look__a_zombie(void **state)
{
	struct gpu_holder h = {.pid = (uint32_t)fork()};
	siginfo_t info;

	(void)state;
	if (h.pid == 0)
		_exit(0);
	waitid(P_PID, h.pid, &info, WEXITED | WNOWAIT);
	holder_look(&h, true);
	waitpid((pid_t)h.pid, NULL, 0);
	assert_int_equal(h.state, HOLDER_ZOMBIE);
}

static void json__there_and_back(void **state)
{
	struct gpu_holder name = {.pid = 7, .state = HOLDER_OUTSIDE};
	struct gpu_usage *u = one_gpu(), *back;
	json_t *o;

	(void)state;
	add(u, 7, 2, HOLDER_COMPUTE | HOLDER_MPS, USAGE_UNKNOWN);
	add(u, 8, UINT32_MAX, HOLDER_GRAPHICS, 12);
	usage_name_holder(u, &name);
	name = (struct gpu_holder){.pid = 8, .state = HOLDER_RUNNING, .own_user = 1, .command = "caf\xc3\xa9 \xff"};
	usage_name_holder(u, &name);
	usage_sort(u);
	u->trouble = USAGE_HUNG;
	snprintf(u->why, sizeof(u->why), "why");
	snprintf(u->driver, sizeof(u->driver), "580");
	u->mono_ns = 5;
	u->gpu[0].card.reserved = USAGE_UNKNOWN;
	o = usage_to_json(u);
	back = usage_from_json(o);
	json_decref(o);
	assert_non_null(back);
	assert_string_equal(back->gpu[0].holder[0].command, "caf\xc3\xa9 ?");
	memcpy(back->gpu[0].holder[0].command, u->gpu[0].holder[0].command, sizeof(name.command));
	assert_int_equal(back->n, 1);
	assert_memory_equal(&back->gpu[0].card, &u->gpu[0].card, sizeof(u->gpu[0].card));
	assert_int_equal(back->gpu[0].n, 2);
	assert_memory_equal(back->gpu[0].holder, u->gpu[0].holder, 2 * sizeof(*u->gpu[0].holder));
	assert_int_equal(back->trouble, USAGE_HUNG);
	assert_string_equal(back->why, "why");
	assert_string_equal(back->driver, "580");
	assert_int_equal(back->mono_ns, 5);
	usage_free(back);
	usage_free(u);
}

static void json__anything_else_is_none(void **state)
{
	static const char *const texts[] = {"{}", "[]", "{\"gpus\": 3}", "{\"gpus\": [3, {\"processes\": [3, null]}]}",
					    "{\"gpus\": [], \"trouble\": 99, \"mono_ns\": -4}"};
	struct gpu_usage *u;
	json_t *o;

	(void)state;
	assert_null(usage_from_json(NULL));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		o = json_loads(texts[i], 0, NULL);
		u = usage_from_json(o);
		assert_true((u != NULL) == (i >= 3));
		usage_free(u);
		json_decref(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holders__one_process_in_two_lists_counts_once),
		cmocka_unit_test(holders__instances_of_one_process_add_up),
		cmocka_unit_test(holders__unknown_bytes_are_no_bytes),
		cmocka_unit_test(unattributed__never_below_nothing),
		cmocka_unit_test(find__by_the_bytes_of_the_uuid),
		cmocka_unit_test(look__our_own_process_is_named),
		cmocka_unit_test(look__a_pid_of_the_host_is_not_mistaken_for_ours),
		cmocka_unit_test(look__in_a_container_a_process_with_the_driver_is_it),
		cmocka_unit_test(look__who_is_not_there),
		cmocka_unit_test(look__a_zombie),
		cmocka_unit_test(json__there_and_back),
		cmocka_unit_test(json__anything_else_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
