/* SPDX-License-Identifier: Apache-2.0
 * The probe: a process of its own, because a driver may hang or crash. Writes messages (message.h) to its standard output,
 * numbers first: finding out what a process is may block on that process.
 *
 *   cuwhy-probe            NVML: GPUs, their memory and processes
 *   cuwhy-probe details    and what else NVML knows about them
 *   cuwhy-probe cuda       libcuda
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "probe/holder.h"
#include "probe/message.h"

static struct {
	uint32_t *pid;
	size_t n, cap;
} seen;

static void remember(uint32_t pid)
{
	size_t i;

	for (i = 0; i < seen.n; i++)
		if (seen.pid[i] == pid)
			return;
	seen.pid = xgrow(seen.pid, seen.n, &seen.cap, sizeof(*seen.pid));
	seen.pid[seen.n++] = pid;
}

static void write_message(const struct probe_message *m)
{
	const char *at = (const char *)m;
	size_t left = sizeof(*m);
	ssize_t n;

	while (left > 0) {
		n = write(STDOUT_FILENO, at, left);
		if (n < 0 && errno != EINTR)
			_exit(1);	/* nobody is reading anymore */
		at += n < 0 ? 0 : n;
		left -= n < 0 ? 0 : (size_t)n;
	}
	if (m->word == PROBE_HOLDER)
		remember(m->holder.pid);
}

static bool ask_nvml(bool details)
{
	struct probe_message m = {.word = PROBE_NAME};
	bool ours = holder_pids_are_ours(), asked = nvml_ask(write_message, details);
	size_t i;

	for (i = 0; i < seen.n; i++) {
		m.holder = (struct gpu_holder){.pid = seen.pid[i]};
		holder_look(&m.holder, ours);
		write_message(&m);
	}
	return asked;
}

int main(int argc, char **argv)
{
	const struct probe_message m = {.word = PROBE_END};
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "cuda") == 0 ? cuda_ask(write_message) : ask_nvml(strcmp(what, "details") == 0))
		write_message(&m);
	/* skip the library's own cleanup: it could hang, and we need nothing from it */
	_exit(0);
}
