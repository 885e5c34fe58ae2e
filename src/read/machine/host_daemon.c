/* SPDX-License-Identifier: Apache-2.0
 * Daemons that CUDA programs need: Fabric Manager, IMEX, the Multi-Process Service.
 */
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "read/machine/look.h"

#define PROCESSES_MAX	8192

struct daemons {
	bool seen;		/* /proc could be read */
	bool fabric, imex, mps_control, mps_server;
};

/* The kernel keeps 15 letters of a name, so both MPS daemons look the same there. */
static void daemon_look_at(const struct looking *l, const char *pid, struct daemons *d)
{
	const char *name = look_line(l, pool_printf(l->pool, "/proc/%s/comm", pid)), *command;

	if (!name || strncmp(name, "nv", 2) != 0)
		return;
	d->fabric |= str_starts(name, "nv-fabricmanage");
	d->imex |= strcmp(name, "nvidia-imex") == 0;
	if (!str_starts(name, "nvidia-cuda-mps"))
		return;
	command = look_file(l, pool_printf(l->pool, "/proc/%s/cmdline", pid), 256, NULL);
	d->mps_control |= command && strstr(command, "mps-control") != NULL;
	d->mps_server |= command && strstr(command, "mps-server") != NULL;
}

static void daemons_look_through(const struct looking *l, struct daemons *d)
{
	char **names;
	int i, n = look_list(l, "/proc", PROCESSES_MAX, &names);

	*d = (struct daemons){0};
	for (i = 0; i < n; i++) {
		if (names[i][strspn(names[i], "0123456789")] != '\0')
			continue;
		d->seen = true;
		daemon_look_at(l, names[i], d);
	}
}

/* A daemon that is not seen inside a container may run outside it. */
static int daemon_runs(const struct looking *l, const struct daemons *d, bool yes)
{
	const char *kind = l->h->container.kind;

	if (yes)
		return 1;
	return d->seen && kind && strcmp(kind, "none") == 0 ? 0 : -1;
}

static const char *fabric_version_in_log(const struct looking *l)
{
	const char *text = look_file(l, "/var/log/fabricmanager.log", 1 << 20, NULL), *found = NULL, *at;

	while (text && (at = strcasestr(text, "fabric manager version"))) {
		at += strlen("fabric manager version");
		found = look_version(l, at);	/* the last start counts */
		text = at;
	}
	return found;
}

static const char *fabric_version_in_packages(const struct looking *l)
{
	const char *text = look_file(l, "/var/lib/dpkg/status", 16u << 20, NULL);
	const char *at = text ? strstr(text, "\nPackage: nvidia-fabricmanager") : NULL;
	const char *end = at ? strstr(at, "\n\n") : NULL, *line = at ? strstr(at, "\nVersion: ") : NULL;

	return line && (!end || line < end) ? look_version(l, line + 1) : NULL;
}

static void take_fabric(const struct looking *l, const struct daemons *d)
{
	static const char *const files[] = {
		"/usr/bin/nv-fabricmanager", "/usr/lib/systemd/system/nvidia-fabricmanager.service",
		"/lib/systemd/system/nvidia-fabricmanager.service", "/etc/systemd/system/nvidia-fabricmanager.service"};
	const char *kind = l->h->container.kind;
	bool here = false;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		here |= look_exists(l, files[i]);
	l->h->fabric.running = daemon_runs(l, d, d->fabric);
	l->h->fabric.imex_running = daemon_runs(l, d, d->imex);
	if (here)
		l->h->fabric.installed = 1;
	else if (kind && strcmp(kind, "none") == 0)
		l->h->fabric.installed = 0;
	if (!here)
		return;
	l->h->fabric.enabled = look_link_name(l, "/etc/systemd/system/multi-user.target.wants", "nvidia-fabricmanager.service") != NULL;
	l->h->fabric.version = fabric_version_in_log(l);
	if (!l->h->fabric.version)
		l->h->fabric.version = fabric_version_in_packages(l);
}

static bool daemon_by_pid_file(const struct looking *l, const char *dir)
{
	int64_t pid = look_number(l, pool_printf(l->pool, "%s/nvidia-cuda-mps-control.pid", dir));
	const char *name = pid > 0 ? look_line(l, pool_printf(l->pool, "/proc/%lld/comm", (long long)pid)) : NULL;

	return name && str_starts(name, "nvidia-cuda-mps");
}

static int pipe_access(const struct looking *l, const char *dir)
{
	const char *control = pool_printf(l->pool, "%s/control", dir);

	if (!l->live)
		return look_open_error(l, control) == 0;
	return access(dir, X_OK) == 0 && access(control, R_OK | W_OK) == 0;
}

static void take_mps(const struct looking *l, const struct daemons *d)
{
	const char *asked = look_env(l, "CUDA_MPS_PIPE_DIRECTORY"), *dir = asked ? asked : "/tmp/nvidia-mps";

	l->h->mps.asked = l->env ? asked != NULL : -1;
	l->h->mps.pipe_dir = look_clean(l, dir, strlen(dir));
	if (dir[0] != '/' || strlen(dir) > 1024)
		return;
	l->h->mps.pipe = look_exists(l, pool_printf(l->pool, "%s/control", dir));
	if (l->h->mps.pipe == 1)
		l->h->mps.pipe_access = pipe_access(l, dir);
	l->h->mps.daemon = daemon_runs(l, d, d->mps_control || daemon_by_pid_file(l, dir));
	l->h->mps.server = daemon_runs(l, d, d->mps_server);
}

void host_look_daemons(const struct looking *l)
{
	struct daemons d;

	daemons_look_through(l, &d);
	take_fabric(l, &d);
	take_mps(l, &d);
}
