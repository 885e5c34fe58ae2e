/* SPDX-License-Identifier: Apache-2.0
 * CUWHY_SIM and CUDA_VISIBLE_DEVICES: which GPUs this process has. */
#include "sim/cuda/sim.h"
#include "sim/cuda/sim_cards.h"
#include "sim/cuda/sim_uuid.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static pthread_mutex_t config_lock = PTHREAD_MUTEX_INITIALIZER;

/* One sentence, in one write: several processes may share the terminal. */
static int refuse(const struct sim_spec_error *why)
{
	char line[512];
	int used = snprintf(line, sizeof(line), "cuwhy: cannot simulate a GPU: %s (CUWHY_SIM; %s)\n", why->what, why->hint);

	if (write(STDERR_FILENO, line, (size_t)used) < 0)
		return SIM_UNKNOWN;
	return SIM_UNKNOWN;
}

static int read_config(const char *text)
{
	struct sim_spec_error why = {"CUWHY_SIM is not set", "cuwhy run --gpu sim:MODEL sets it"};

	if (text && *text && sim_spec_read(&sim.config, text, &why))
		return 0;
	return refuse(&why);
}

int sim_config_load(void)
{
	static int result = -1;
	int code;

	pthread_mutex_lock(&config_lock);
	if (result < 0)
		result = read_config(getenv("CUWHY_SIM"));
	code = result;
	pthread_mutex_unlock(&config_lock);
	return code;
}

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
	int number = 0;

	while (length && isspace((unsigned char)*text))
		text++, length--;
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (length >= 4 && !strncasecmp(text, "GPU-", 4))
		return physical_by_uuid(text, length);
	/* Like the driver (measured on R580), ignores what follows the digits: 0abc is 0. */
	for (digits = 0; digits < length && isdigit((unsigned char)text[digits]); digits++)
		if (number < SIM_DEVICES_MAX)
			number = number * 10 + (text[digits] - '0');
	return digits && number < sim.config.devices ? number : -1;
}

static void device_add(int physical)
{
	struct sim_device *d = &sim.devices[sim.device_count++];

	d->model = sim.config.model;
	d->physical = physical;
	d->total = sim.config.memory;
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
