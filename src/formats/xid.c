/* SPDX-License-Identifier: Apache-2.0
 * Reads Xid lines out of the kernel log (see xid.h).
 *
 *   NVRM: GPU at PCI:0000:10:1c: GPU-b850f46d-d5ea-c752-ddf3-c4453e44d3f7
 *   NVRM: Xid (PCI:0000:10:1c): 94, pid=1896, name=python3, Contained: ...
 */
#include "formats/xid.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "formats/klog.h"

static const struct {
	uint32_t number;
	enum xid_class class;
	const char *text;
} xids[] = {
#define XID(number, class, text)	{number, XID_##class, text},
#include "kb/xid.def"
};

enum xid_class xid_class(uint32_t number)
{
	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++)
		if (xids[i].number == number)
			return xids[i].class;
	return XID_UNCLEAR;
}

const char *xid_meaning(uint32_t number)
{
	for (size_t i = 0; i < sizeof(xids) / sizeof(xids[0]); i++)
		if (xids[i].number == number)
			return xids[i].text;
	return "";
}

const char *xid_class_id(enum xid_class c)
{
	static const char *const id[] = {"program", "unclear", "driver", "hardware"};

	return id[c];
}

/* Copies a GPU's bus address, "0000:10:1c", from where it begins; returns what follows. */
static const char *take_pci(const char *s, char pci[24])
{
	size_t n;

	if (str_starts(s, "PCI:"))
		s += 4;
	n = strspn(s, "0123456789abcdefABCDEF:.");
	while (n > 0 && s[n - 1] == ':')	/* the one that ends the address */
		n--;
	if (n < 7 || n >= 24)
		return NULL;
	memcpy(pci, s, n);
	pci[n] = '\0';
	return s + n;
}

static int hex_value(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static bool take_uuid(const char *s, uint8_t uuid[16])
{
	size_t n = 0;

	for (; n < 32 && *s; s++) {
		if (*s == '-')
			continue;
		if (!isxdigit((unsigned char)*s))
			return false;
		uuid[n / 2] = (uint8_t)(n % 2 ? uuid[n / 2] | hex_value(*s) : hex_value(*s) << 4);
		n++;
	}
	return n == 32;
}

static void take_gpu(struct xid_log *log, const char *s)
{
	struct xid_gpu *g = &log->gpu[log->n_gpus];
	const char *id;

	if (log->n_gpus == XID_GPUS_MAX)
		return;
	s = take_pci(s, g->pci);
	id = s ? strstr(s, "GPU-") : NULL;
	if (id && take_uuid(id + 4, g->uuid))
		log->n_gpus++;
}

static void take_xid(struct xid_log *log, const char *line)
{
	struct xid *x = &log->line[log->n];
	const char *s = strchr(line, '('), *pid;
	char *end;
	unsigned long number;

	if (log->n == XID_LINES_MAX)
		return;
	*x = (struct xid){0};
	s = s ? take_pci(s + 1, x->pci) : NULL;
	if (!s || s[0] != ')' || s[1] != ':')
		return;
	number = strtoul(s + 2, &end, 10);
	if (end == s + 2 || number == 0 || number > 100000)
		return;
	x->number = (uint32_t)number;
	pid = strstr(end, "pid=");
	if (pid)	/* some drivers put it in quotes */
		x->pid = (uint32_t)strtoul(pid + 4 + (pid[4] == '\''), NULL, 10);
	str_copy(x->text, sizeof(x->text), line);
	log->n++;
}

/* "Out of memory: Killed process 4711 (python3) total-vm:…", "Memory cgroup out of memory: Killed process …"; "Kill process" before Linux 4.19. */
static void take_kill(struct xid_log *log, const char *text)
{
	const char *memory = strstr(text, "ut of memory: "), *s = memory ? strstr(memory, "process ") : NULL;
	unsigned long pid = s ? strtoul(s + strlen("process "), NULL, 10) : 0;

	if (!pid || pid > UINT32_MAX || !str_starts(memory + strlen("ut of memory: "), "Kill") ||
	    log->n_kills == KILLS_MAX)
		return;
	log->kill[log->n_kills].pid = (uint32_t)pid;
	str_copy(log->kill[log->n_kills].text, sizeof(log->kill[0].text), text + (memory > text ? memory - text - 1 : 0));
	log->n_kills++;
}

const struct oom_kill *xid_oom_kill(const struct xid_log *log, uint32_t pid)
{
	for (size_t i = 0; log && pid && i < log->n_kills; i++)
		if (log->kill[i].pid == pid)
			return &log->kill[i];
	return NULL;
}

void xid_line(struct xid_log *log, const char *text, bool gpus_only)
{
	const char *s = strstr(text, "NVRM: ");

	if (!gpus_only)
		take_kill(log, text);
	if (!s)
		return;
	s += strlen("NVRM: ");
	if (str_starts(s, "GPU at "))
		take_gpu(log, s + strlen("GPU at "));
	else if (!gpus_only && str_starts(s, "Xid ("))
		take_xid(log, s);
}

struct reading {
	struct xid_log *log;
	bool gpus_only;
};

static void xid_take_line(void *user, const char *line)
{
	struct reading *r = user;

	xid_line(r->log, line, r->gpus_only);
}

void xid_read(struct xid_log *log, int fd, bool gpus_only)
{
	struct reading r = {log, gpus_only};
	bool lost = false, fine;

	if (!gpus_only)
		log->readable = fd >= 0;
	if (fd < 0)
		return;
	fine = klog_read(fd, &lost, xid_take_line, &r);
	if (!gpus_only)
		log->lost = log->lost || lost;
	log->readable = log->readable && (fine || gpus_only);
}

int xid_is_about(const struct xid_log *log, const struct xid *x, uint32_t pid, const uint8_t *uuid)
{
	if (pid && x->pid == pid)
		return 1;
	for (size_t i = 0; uuid && i < log->n_gpus; i++)
		if (strcmp(log->gpu[i].pci, x->pci) == 0)
			return memcmp(log->gpu[i].uuid, uuid, 16) == 0;
	return -1;
}
