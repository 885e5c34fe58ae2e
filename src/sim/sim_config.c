/* SPDX-License-Identifier: Apache-2.0
 * Reads CUWHY_SIM and CUDA_VISIBLE_DEVICES: which GPUs exist, and what is planned to fail. */
#include "sim/sim.h"
#include "sim/sim_cards.h"
#include "sim/sim_uuid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)

static const struct sim_model models[] = {
#define SIM_MODEL(id, name, major, minor, memory, context, ...) {#id, name, major, minor, memory * KIB, context * KIB, __VA_ARGS__},
#include "sim/sim_models.def"
#undef SIM_MODEL
};

/* Newest PTX ISA (times ten) that a driver of this CUDA version compiles. */
static const struct { int driver, ptx; } ptx_of_driver[] = {
	{13020, 92}, {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
	{12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {0, 70},
};

static pthread_mutex_t config_lock = PTHREAD_MUTEX_INITIALIZER;

const struct sim_model *sim_model_find(const char *id, size_t length)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		if (strlen(models[i].id) == length && !memcmp(models[i].id, id, length))
			return &models[i];
	return NULL;
}

/* One sentence, in one write: several processes may share the terminal. */
static int refuse(const char *what, const char *text, size_t length)
{
	char line[1024];
	int used = snprintf(line, sizeof(line), "cuwhy: cannot simulate a GPU: %s%s%.*s%s; "
			    "CUWHY_SIM is MODEL[*N][,key=value]... with model",
			    what, length ? " '" : "", (int)(length > 80 ? 80 : length), text, length ? "'" : "");

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++)
		used += snprintf(line + used, sizeof(line) - (size_t)used, " %s", models[i].id);
	used += snprintf(line + used, sizeof(line) - (size_t)used,
		" and key devices memory hidden taken ram driver ptx contents values fail sticky nodevice warp_exits late_dumps full_gpu lost_dumps error_first load_waits load_takes debugger_crashes\n");
	if (write(STDERR_FILENO, line, (size_t)used) < 0)
		return -1;
	return -1;
}

static bool parse_long(const char *text, size_t length, long *out)
{
	char copy[24], *end;

	if (!length || length >= sizeof(copy))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*out = strtol(copy, &end, 10);
	return !*end && *out >= 0;
}

static bool parse_bytes(const char *text, size_t length, size_t *out)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	int shift = 0;
	long value;

	if (length && (suffix = strchr(suffixes, toupper((unsigned char)text[length - 1]))) &&
	    *suffix) {
		shift = 10 * (int)(suffix - suffixes + 1);
		length--;
	}
	if (!parse_long(text, length, &value) || (size_t)value > SIZE_MAX >> (shift + 8))
		return false;
	*out = (size_t)value << shift;
	return true;
}

/* NAME:N:CODE */
static bool parse_plan(const char *text, size_t length, bool sticky)
{
	struct sim_plan *plan = &sim.config.plans[sim.config.plan_count];
	const char *end = text + length;
	const char *number = memchr(text, ':', length);
	const char *code = number ? memchr(number + 1, ':', (size_t)(end - number - 1)) : NULL;
	size_t name = number ? (size_t)(number - text) : 0;
	long n, c;

	if (!code || !name || name >= sizeof(plan->name) ||
	    sim.config.plan_count == SIM_PLANS_MAX ||
	    !parse_long(number + 1, (size_t)(code - number - 1), &n) || !n ||
	    !parse_long(code + 1, (size_t)(end - code - 1), &c) || !c || c > 999)
		return false;
	memcpy(plan->name, text, name);
	plan->name[name] = '\0';
	plan->number = n;
	plan->code = (int)c;
	plan->sticky = sticky;
	sim.config.plan_count++;
	return true;
}

static bool set_int(int *out, const char *text, size_t length, long min, long max)
{
	long value;

	if (!parse_long(text, length, &value) || value < min || value > max)
		return false;
	*out = (int)value;
	return true;
}

static bool parse_values(const char *text, size_t length)
{
	static const char *const names[] = {"zeros", "ones", "random"};

	for (int i = 0; i < 3; i++)
		if (strlen(names[i]) == length && !memcmp(names[i], text, length)) {
			sim.config.values = (enum sim_values)i;
			return true;
		}
	return false;
}

static int parse_pair(const char *pair, size_t length)
{
	const char *eq = memchr(pair, '=', length);
	size_t key = eq ? (size_t)(eq - pair) : length;
	const char *value = eq ? eq + 1 : pair + length;
	size_t rest = length - key - (eq ? 1 : 0);
	struct sim_config *c = &sim.config;
	bool ok;

#define KEY(text) (key == sizeof(text) - 1 && !memcmp(pair, text, key))
	if (KEY("devices"))
		ok = set_int(&c->devices, value, rest, 0, SIM_DEVICES_MAX);
	else if (KEY("memory"))
		ok = c->memory_set = parse_bytes(value, rest, &c->memory);
	else if (KEY("hidden"))
		ok = parse_bytes(value, rest, &c->hidden);
	else if (KEY("taken"))
		ok = parse_bytes(value, rest, &c->taken);
	else if (KEY("ram"))
		ok = parse_bytes(value, rest, &c->ram);
	else if (KEY("driver"))
		ok = set_int(&c->driver, value, rest, 11000, 99990);
	else if (KEY("ptx"))
		ok = set_int(&c->ptx, value, rest, 10, 999);
	else if (KEY("contents"))
		ok = parse_bytes(value, rest, &c->contents);
	else if (KEY("values"))
		ok = parse_values(value, rest);
	else if (KEY("fail"))
		ok = parse_plan(value, rest, false);
	else if (KEY("sticky"))
		ok = parse_plan(value, rest, true);
	else if (KEY("error_first"))
		ok = set_int(&c->error_first, value, rest, 1, 3600000);
	else if (KEY("load_takes"))
		ok = set_int(&c->load_takes, value, rest, 1, 3600000);
	else if (KEY("load_waits") && !eq)
		ok = c->load_waits = true;
	else if (KEY("nodevice") && !eq)
		ok = c->no_device = true;
	else if (KEY("warp_exits") && !eq)
		ok = c->warp_exits = true;
	else if (KEY("lost_dumps") && !eq)
		ok = c->lost_dumps = true;
	else if (KEY("debugger_crashes") && !eq)
		ok = c->debugger_crashes = true;
	else if (KEY("late_dumps") && !eq)
		ok = c->late_dumps = true;
	else if (KEY("full_gpu") && !eq)
		ok = c->full_gpu = true;
	else
		return refuse("unknown key", pair, key);
#undef KEY
	return ok ? 0 : refuse("bad value in", pair, length);
}

static int parse_config(const char *text)
{
	size_t length;

	if (!text || !*text)
		return refuse("CUWHY_SIM is not set (cuwhy run --gpu sim:MODEL sets it)", "", 0);
	length = strcspn(text, ",*");
	sim.config.model = sim_model_find(text, length);
	if (!sim.config.model)
		return refuse("unknown model", text, length);
	if (text[length] == '*') {		/* MODEL*8: devices=8 */
		text += length + 1;
		length = strcspn(text, ",");
		if (!set_int(&sim.config.devices, text, length, 0, SIM_DEVICES_MAX))
			return refuse("bad number of GPUs", text, length);
	}
	while (text[length] == ',') {
		text += length + 1;
		length = strcspn(text, ",");
		if (parse_pair(text, length))
			return -1;
	}
	return 0;
}

int sim_config_load(void)
{
	static int result = -1;
	int code;

	pthread_mutex_lock(&config_lock);
	if (result < 0) {
		sim.config.devices = 1;
		sim.config.driver = 13000;
		sim.config.contents = (size_t)1 << 20;
		sim.config.ram = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
		result = parse_config(getenv("CUWHY_SIM")) ? SIM_UNKNOWN : 0;
		for (size_t i = 0; !sim.config.ptx; i++)
			if (sim.config.driver >= ptx_of_driver[i].driver)
				sim.config.ptx = ptx_of_driver[i].ptx;
	}
	code = result;
	pthread_mutex_unlock(&config_lock);
	return code;
}

/* ---- devices -------------------------------------------------------------------------------- */

static void device_uuid(struct sim_uuid *uuid, const struct sim_model *model, int physical)
{
	sim_uuid_make(uuid->bytes, model->id, strlen(model->id), physical);
}

/* Like the driver, accepts a prefix if it matches exactly one GPU. -1: no such GPU. */
static int physical_by_uuid(const char *text, size_t length)
{
	struct sim_uuid uuid;
	char full[48];
	int found = -1;

	for (int i = 0; i < sim.config.devices; i++) {
		device_uuid(&uuid, sim.config.model, i);
		sim_uuid_print(uuid.bytes, full);
		if (length > strlen(full) || strncasecmp(full, text, length))
			continue;
		if (found >= 0)
			return -1;
		found = i;
	}
	return found;
}

static int physical_by_entry(const char *text, size_t length)
{
	size_t digits;
	long number;

	while (length && isspace((unsigned char)*text))
		text++, length--;
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (length >= 4 && !strncasecmp(text, "GPU-", 4))
		return physical_by_uuid(text, length);
	/* Like the driver (measured on R580), ignores what follows the digits: 0abc is 0. */
	for (digits = 0; digits < length && isdigit((unsigned char)text[digits]); digits++)
		;
	if (!parse_long(text, digits, &number) || number >= sim.config.devices)
		return -1;
	return (int)number;
}

static void device_add(int physical)
{
	struct sim_device *d = &sim.devices[sim.device_count++];

	d->model = sim.config.model;
	d->physical = physical;
	d->total = sim.config.memory_set ? sim.config.memory : d->model->memory;
	d->overhead = d->model->overhead;
	device_uuid(&d->uuid, d->model, physical);
}

/* A wrong entry ends the list: the entries before it stay visible. A repeated one is an error. */
static int devices_visible(const char *list)
{
	bool seen[SIM_DEVICES_MAX] = {false};

	for (;;) {
		size_t length = strcspn(list, ",");
		int physical = physical_by_entry(list, length);

		if (physical < 0)
			return 0;
		if (seen[physical])
			return SIM_INVALID_DEVICE;
		seen[physical] = true;
		device_add(physical);
		if (!list[length])
			return 0;
		list += length + 1;
	}
}

int sim_devices_load(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	int code = 0;

	sim.device_count = 0;
	if (sim.config.no_device)
		return SIM_NO_DEVICE;
	if (visible)
		code = devices_visible(visible);
	else
		for (int i = 0; i < sim.config.devices; i++)
			device_add(i);
	if (!code && !sim.device_count)
		code = SIM_NO_DEVICE;
	if (!code)
		sim_cards_join(getenv("CUWHY_SIM"), sim.config.devices, sim.devices[0].total, sim.config.taken);
	return code;
}
