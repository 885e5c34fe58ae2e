/* SPDX-License-Identifier: Apache-2.0
 * The host's memory: read from captured trees, including broken ones; which limit stopped a request; and the verdict on
 * it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/fs.h"
#include "base/mem.h"
#include "read/recording/ram_json.h"
#include "judge.h"
#include "probe/ram.h"

#define GIB (1ull << 30)
#define MIB (1ull << 20)

static void put(const char *root, const char *path, const char *text)
{
	char *full = fs_join(root, path), *dir = xstrdup(full);

	*strrchr(dir, '/') = '\0';
	assert_int_equal(fs_mkdirs(dir, NULL), 0);
	assert_int_equal(fs_write(full, text, strlen(text), NULL), 0);
	free(dir);
	free(full);
}

static char *new_root(void)
{
	char *root = xstrdup("/tmp/cuwhy-test-ram-XXXXXX");

	assert_non_null(mkdtemp(root));
	return root;
}

static void drop_root(char *root)
{
	fs_remove_dir(root, 12);
	free(root);
}

static void put_machine(const char *root, const char *locked, const char *caps, const char *version)
{
	char *limits = xasprintf("Limit                     Soft Limit           Hard Limit           Units     \n"
				 "Max processes             100                  100                  processes \n"
				 "Max locked memory         %s              %s              bytes     \n",
				 locked, locked);

	put(root, "proc/meminfo", "MemTotal:       67108864 kB\nMemFree:         1 kB\nMemAvailable:   10485760 kB\n");
	put(root, "proc/version", version);
	put(root, "proc/7/limits", limits);
	put(root, "proc/7/status", caps);
	free(limits);
}

static void look__a_machine_with_cgroups_of_version_2(void **state)
{
	char *root = new_root();
	struct ram_state r;

	(void)state;
	put_machine(root, "8388608", "Name:\tx\nCapEff:\t00000000a80425fb\n", "Linux version 6.1.0\n");
	put(root, "proc/7/cgroup", "0::/user.slice/job\n");
	put(root, "sys/fs/cgroup/user.slice/memory.max", "34359738368\n");
	put(root, "sys/fs/cgroup/user.slice/memory.current", "21474836480\n");
	put(root, "sys/fs/cgroup/user.slice/memory.stat", "anon 5\ninactive_file 1073741824\nactive_file 1073741824\n");
	put(root, "sys/fs/cgroup/user.slice/job/memory.max", "max\n");
	put(root, "sys/fs/cgroup/user.slice/job/memory.current", "5\n");
	ram_look(&r, root, 7);
	assert_int_equal(r.total, 64 * GIB);
	assert_int_equal(r.available, 10 * GIB);
	assert_int_equal(r.lock_limit, 8 * MIB);
	assert_int_equal(r.group_limit, 32 * GIB);
	assert_int_equal(r.group_used, 18 * GIB);
	assert_false(r.wsl);
	drop_root(root);
}

static void look__version_1_wsl_and_a_process_that_may_lock(void **state)
{
	char *root = new_root();
	struct ram_state r;

	(void)state;
	put_machine(root, "65536", "CapEff:\t0000000000004000\n", "Linux version 5.15.1-microsoft-standard-WSL2\n");
	put(root, "proc/7/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/\n");
	put(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	put(root, "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "1073741824\n");
	put(root, "sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "536870912\n");
	ram_look(&r, root, 7);
	assert_int_equal(r.lock_limit, RAM_UNLIMITED);
	assert_int_equal(r.group_limit, GIB);
	assert_int_equal(r.group_used, GIB / 2);
	assert_true(r.wsl);
	drop_root(root);
}

/* In a container the path is the host's, and only the root is visible. */
static void look__in_a_container_the_root_has_the_limit(void **state)
{
	char *root = new_root();
	struct ram_state r;

	(void)state;
	put_machine(root, "unlimited", "", "Linux\n");
	put(root, "proc/7/cgroup", "0::/system.slice/docker-abc.scope\n");
	put(root, "sys/fs/cgroup/memory.max", "2147483648\n");
	put(root, "sys/fs/cgroup/memory.current", "1073741824\n");
	ram_look(&r, root, 7);
	assert_int_equal(r.lock_limit, RAM_UNLIMITED);
	assert_int_equal(r.group_limit, 2 * GIB);
	assert_int_equal(r.group_used, GIB);
	drop_root(root);
}

/* A group may briefly use more than its limit, and may not report what it uses. */
static void look__the_group_that_leaves_least(void **state)
{
	char *root = new_root();
	struct ram_state r;

	(void)state;
	put(root, "proc/7/cgroup", "0::/a/b\n");
	put(root, "sys/fs/cgroup/a/memory.max", "2147483648\n");
	put(root, "sys/fs/cgroup/a/memory.current", "2147483649\n");
	put(root, "sys/fs/cgroup/a/b/memory.max", "1073741824\n");
	put(root, "sys/fs/cgroup/a/b/memory.current", "1048576\n");
	ram_look(&r, root, 7);
	assert_int_equal(r.group_limit, 2 * GIB);
	assert_int_equal(r.group_used, 2 * GIB);
	put(root, "sys/fs/cgroup/a/memory.current", "");
	ram_look(&r, root, 7);
	assert_int_equal(r.group_limit, GIB);
	assert_int_equal(r.group_used, MIB);
	put(root, "proc/7/cgroup", "5:cpu,memory,pids:/c\n");
	put(root, "sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1048576\n");
	ram_look(&r, root, 7);
	assert_int_equal(r.group_limit, MIB);
	drop_root(root);
}

static void look__links_and_pipes_do_not_lead_out_or_block(void **state)
{
	char *root = new_root(), *path = fs_join(root, "proc/version");
	struct ram_state r;

	(void)state;
	put_machine(root, "unlimited", "", "x");
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	free(path);
	path = fs_join(root, "proc/meminfo");
	unlink(path);
	assert_int_equal(symlink("/proc/meminfo", path), 0);	/* a link to itself, inside the root */
	free(path);
	ram_look(&r, root, 7);
	assert_true(r.total == RAM_UNKNOWN && !r.wsl && r.lock_hard == RAM_UNLIMITED);
	drop_root(root);
}

static void look__nothing_or_nonsense_is_unknown(void **state)
{
	static const char *const nonsense[] = {"", "MemTotal:\nMemAvailable: x kB\n", "MemTotal: 99999999999999999999999 kB",
					       "MemTotal: -18446744073709551615 kB\nMemTotalX: 1 kB\n",
					       "Max locked memory", "0::", "0::/../../etc\n5:memory:", ":::::\n\n\n", "max"};
	char *root = new_root();
	struct ram_state r;

	(void)state;
	ram_look(&r, root, 7);
	assert_true(r.total == RAM_UNKNOWN && r.available == RAM_UNKNOWN && r.lock_limit == RAM_UNKNOWN &&
		    r.group_limit == RAM_UNKNOWN && !r.wsl);
	for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
		static const char *const files[] = {"proc/meminfo", "proc/7/limits", "proc/7/status", "proc/7/cgroup",
						    "sys/fs/cgroup/memory.stat", "sys/fs/cgroup/memory.current"};

		for (size_t k = 0; k < sizeof(files) / sizeof(files[0]); k++)
			put(root, files[k], nonsense[i]);
		ram_look(&r, root, 7);
		assert_true(r.total == RAM_UNKNOWN && r.lock_limit == RAM_UNKNOWN && r.group_limit == RAM_UNKNOWN);
	}
	drop_root(root);
}

static const struct ram_state roomy = {.total = 64 * GIB, .available = 60 * GIB, .lock_limit = RAM_UNLIMITED,
				       .group_limit = RAM_UNLIMITED, .group_used = RAM_UNKNOWN};

static const struct {
	uint64_t available, lock, group, used, pinned, peak;
	bool wsl;
	enum ram_limit limit;
	uint64_t room;
	const char *why, *fix;
} cases[] = {	/* all of them request 8 GiB */
	{60 * GIB, RAM_UNLIMITED, RAM_UNLIMITED, RAM_UNKNOWN, 0, 0, false, RAM_LIMIT_NONE, 0, "the driver's own limits",
	 "pin less"},
	{5 * GIB, RAM_UNLIMITED, RAM_UNLIMITED, RAM_UNKNOWN, 0, 0, false, RAM_LIMIT_RAM, 5 * GIB,
	 "had 5.0 GiB of 64.0 GiB", "free 3.0 GiB of RAM"},
	{60 * GIB, RAM_UNLIMITED, 16 * GIB, 10 * GIB, 0, 0, false, RAM_LIMIT_GROUP, 6 * GIB, "limited to 16.0 GiB",
	 "--memory=18g"},
	{5 * GIB, RAM_UNLIMITED, 16 * GIB, 14 * GIB, 0, 0, false, RAM_LIMIT_GROUP, 2 * GIB, "limited to 16.0 GiB",
	 "--memory=22g"},
	{60 * GIB, 8 * MIB, RAM_UNLIMITED, RAM_UNKNOWN, 0, 0, false, RAM_LIMIT_LOCKED, 8 * MIB, "may lock 8.0 MiB",
	 "8388608 KiB or more"},
	{60 * GIB, 8 * MIB, RAM_UNLIMITED, RAM_UNKNOWN, GIB, GIB, false, RAM_LIMIT_NONE, 0, "the driver's own limits",
	 "pin less"},
	{5 * GIB, 8 * MIB, RAM_UNLIMITED, RAM_UNKNOWN, 0, 0, false, RAM_LIMIT_RAM, 5 * GIB, "had 5.0 GiB of 64.0 GiB",
	 "3.0 GiB"},
	{60 * GIB, RAM_UNLIMITED, RAM_UNLIMITED, RAM_UNKNOWN, 30 * GIB, 31 * GIB, true, RAM_LIMIT_WSL, 2 * GIB,
	 "half of its RAM, 32.0 GiB of 64.0 GiB: 6.0 GiB too little", "memory=76GB"},
	{60 * GIB, RAM_UNLIMITED, RAM_UNLIMITED, RAM_UNKNOWN, 30 * GIB, 40 * GIB, true, RAM_LIMIT_NONE, 0,
	 "the driver's own limits", "pin less"},
};

static struct ram_state state_of(size_t i)
{
	struct ram_state r = roomy;

	r.available = cases[i].available;
	r.lock_limit = cases[i].lock;
	r.group_limit = cases[i].group;
	r.group_used = cases[i].used;
	r.wsl = cases[i].wsl;
	return r;
}

static void limit__the_one_that_leaves_least(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ram_state r = state_of(i);
		uint64_t room = 0;

		assert_int_equal(ram_limit_of(&r, 8 * GIB, cases[i].pinned, cases[i].peak, &room), cases[i].limit);
		assert_int_equal(room, cases[i].room);
	}
}

static json_t *judge_pinned(const struct ram_state *r, uint64_t pinned, uint64_t peak)
{
	struct process_end end = {.pid = 100, .status_known = true, .exit = 1, .ram = r};
	struct verdict *v;
	struct cw_failure *f;
	struct trace *t;
	struct tb b;
	json_t *j;

	tb_init(&b);
	b.h->torch_path[0] = '\0';
	b.h->pinned_bytes = pinned;
	b.h->pinned_peak_bytes = peak;
	f = tb_fail(&b, CW_SRC_DRIVER, 2, tb_stack(&b, USER, NULL));
	for (f->api = 1; f->api < 1000 && strcmp(api_name(f->api), "cuMemHostAlloc"); f->api++)
		;
	f->request_bytes = 8 * GIB;
	t = tb_trace(&b);
	v = verdict_of_process(t, &end);
	trace_free(t);
	j = verdict_object(v);
	verdict_free(v);
	return j;
}

static void limit__is_in_the_verdict_with_its_number(void **state)
{
	json_t *j;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ram_state r = state_of(i);

		j = judge_pinned(&r, cases[i].pinned, cases[i].peak);
		assert_string_equal(field(j, "cause"), "oom-pinned-host");
		assert_true(mentions(j, "why", cases[i].why));
		assert_true(mentions(j, "fix", cases[i].fix));
		assert_false(mentions(j, "fix", "free -g"));
		json_decref(j);
	}
	j = judge_pinned(NULL, 0, 0);
	assert_true(mentions(j, "fix", "free -g"));
	assert_false(mentions(j, "why", "too little"));
	json_decref(j);
}

static void json__there_and_back(void **state)
{
	struct ram_state r = {.mono_ns = 5, .total = 64 * GIB, .available = RAM_UNKNOWN, .lock_limit = RAM_UNLIMITED,
			      .group_limit = 3, .group_used = 0, .wsl = true}, back;
	json_t *o = ram_to_json(&r),
	       *bad = json_loads("{\"schema\":1,\"total\":-4,\"lock_limit\":\"no\",\"wsl\":7}", 0, NULL);

	(void)state;
	assert_true(ram_from_json(&back, o));
	assert_true(back.mono_ns == 5 && back.total == r.total && back.available == RAM_UNKNOWN &&
		    back.lock_limit == RAM_UNLIMITED && back.group_limit == 3 && back.group_used == 0 && back.wsl);
	assert_true(ram_from_json(&back, bad));
	assert_true(back.total == RAM_UNKNOWN && back.lock_limit == RAM_UNKNOWN && !back.wsl);
	assert_false(ram_from_json(&back, NULL));
	json_decref(bad);
	json_decref(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(look__a_machine_with_cgroups_of_version_2),
		cmocka_unit_test(look__version_1_wsl_and_a_process_that_may_lock),
		cmocka_unit_test(look__in_a_container_the_root_has_the_limit),
		cmocka_unit_test(look__the_group_that_leaves_least),
		cmocka_unit_test(look__links_and_pipes_do_not_lead_out_or_block),
		cmocka_unit_test(look__nothing_or_nonsense_is_unknown),
		cmocka_unit_test(limit__the_one_that_leaves_least),
		cmocka_unit_test(limit__is_in_the_verdict_with_its_number),
		cmocka_unit_test(json__there_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
