/* SPDX-License-Identifier: Apache-2.0
 * Core dump settings: accepted and remembered; no dump is ever written. */
#include "sim/sim.h"

#include <string.h>

/* CUcoredumpSettings: 1 on exception, 2 trigger host, 3 lightweight, 4 user trigger, 5 file,
 * 6 pipe, 7 generation flags */
enum { SETTINGS = 8, VALUE_MAX = 1024 };

static struct setting {
	char value[VALUE_MAX];
	size_t size;
} settings[2][SETTINGS];		/* of the context, of the process */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t default_size(int attribute)
{
	return attribute == 5 || attribute == 6 ? 1 : attribute == 7 ? sizeof(int) : sizeof(bool);
}

static int setting_get(int global, int attribute, void *value, size_t *size)
{
	struct setting *s;
	size_t have;
	int code = 0;

	if (attribute < 1 || attribute >= SETTINGS || !size)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	s = &settings[global][attribute];
	if (!s->size)
		s = &settings[1][attribute];
	have = s->size ? s->size : default_size(attribute);
	if (!value)
		*size = have;
	else if (*size < have)
		code = SIM_INVALID_VALUE;
	else {
		memcpy(value, s->value, have);
		*size = have;
	}
	pthread_mutex_unlock(&lock);
	return code;
}

static int setting_set(int global, int attribute, const void *value, const size_t *size)
{
	if (attribute < 1 || attribute >= SETTINGS || !value || !size || !*size ||
	    *size > VALUE_MAX)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	memcpy(settings[global][attribute].value, value, *size);
	settings[global][attribute].size = *size;
	pthread_mutex_unlock(&lock);
	return 0;
}

int sim_cuCoredumpGetAttribute(int attribute, void *value, size_t *size)
{
	return setting_get(0, attribute, value, size);
}

int sim_cuCoredumpSetAttribute(int attribute, void *value, size_t *size)
{
	return setting_set(0, attribute, value, size);
}

int sim_cuCoredumpGetAttributeGlobal(int attribute, void *value, size_t *size)
{
	return setting_get(1, attribute, value, size);
}

int sim_cuCoredumpSetAttributeGlobal(int attribute, void *value, size_t *size)
{
	return setting_set(1, attribute, value, size);
}
