/* SPDX-License-Identifier: Apache-2.0
 * MODEL[*N][,key=value]...: see README.md.
 */
#include "sim/cuda/sim_spec.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIB ((size_t)1 << 10)
#define QUOTED(length) ((int)((length) > 80 ? 80 : (length)))	/* how much of the user's words a sentence repeats */

static const struct sim_model models[] = {
#define SIM_MODEL(id, name, major, minor, memory, context, ...) {#id, name, major, minor, memory * KIB, context * KIB, __VA_ARGS__},
#include "sim/cuda/sim_models.def"
#undef SIM_MODEL
};
#define N_MODELS (sizeof(models) / sizeof(models[0]))

enum key_kind { KEY_NUMBER, KEY_BYTES, KEY_FLAG, KEY_VALUES, KEY_FAIL, KEY_STICKY };

static const struct key {
	const char *name;
	enum key_kind kind;
	size_t offset;
	long min, max;		/* of a number */
} keys[] = {
#define KEY(name, kind, field, ...) {name, kind, offsetof(struct sim_config, field), __VA_ARGS__}
	KEY("devices", KEY_NUMBER, devices, 0, SIM_DEVICES_MAX),
	KEY("memory", KEY_BYTES, memory, 0, 0),
	KEY("hidden", KEY_BYTES, hidden, 0, 0),
	KEY("taken", KEY_BYTES, taken, 0, 0),
	KEY("ram", KEY_BYTES, ram, 0, 0),
	KEY("driver", KEY_NUMBER, driver, 11000, 99990),
	KEY("ptx", KEY_NUMBER, ptx, 10, 999),
	KEY("contents", KEY_BYTES, contents, 0, 0),
	KEY("values", KEY_VALUES, values, 0, 0),
	KEY("fail", KEY_FAIL, plans, 0, 0),
	KEY("sticky", KEY_STICKY, plans, 0, 0),
	KEY("nodevice", KEY_FLAG, no_device, 0, 0),
	KEY("warp_exits", KEY_FLAG, warp_exits, 0, 0),
	KEY("late_dumps", KEY_FLAG, late_dumps, 0, 0),
	KEY("full_gpu", KEY_FLAG, full_gpu, 0, 0),
	KEY("pointers", KEY_FLAG, pointers, 0, 0),
	KEY("lost_dumps", KEY_FLAG, lost_dumps, 0, 0),
	KEY("error_first", KEY_NUMBER, error_first, 1, 3600000),
	KEY("load_waits", KEY_FLAG, load_waits, 0, 0),
	KEY("load_takes", KEY_NUMBER, load_takes, 1, 3600000),
	KEY("debugger_crashes", KEY_FLAG, debugger_crashes, 0, 0),
	KEY("own_words", KEY_FLAG, own_words, 0, 0),
#undef KEY
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static const char *const values[] = {"zeros", "ones", "random"};	/* enum sim_values */
#define N_VALUES (sizeof(values) / sizeof(values[0]))

/* Newest PTX ISA (times ten) that a driver of this CUDA version compiles. */
static const struct { int driver, ptx; } ptx_of_driver[] = {
	{13020, 92}, {13010, 91}, {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12050, 85},
	{12040, 84}, {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {0, 70},
};

static bool is_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && memcmp(text, word, length) == 0;
}

static void hint_add(struct sim_spec_error *why, const char *word)
{
	size_t used = strlen(why->hint);

	snprintf(why->hint + used, sizeof(why->hint) - used, " %s", word);
}

static bool bad_model(const char *text, size_t length, struct sim_spec_error *why)
{
	snprintf(why->what, sizeof(why->what), "there is no simulated GPU '%.*s'", QUOTED(length), text);
	snprintf(why->hint, sizeof(why->hint), "the form is MODEL[*N][,KEY=VALUE]..., the models are");
	for (size_t i = 0; i < N_MODELS; i++)
		hint_add(why, models[i].id);
	return false;
}

static bool bad_key(const char *text, size_t length, struct sim_spec_error *why)
{
	snprintf(why->what, sizeof(why->what), "a simulated GPU has no key '%.*s'", QUOTED(length), text);
	snprintf(why->hint, sizeof(why->hint), "the keys are");
	for (size_t i = 0; i < N_KEYS; i++)
		hint_add(why, keys[i].name);
	return false;
}

static bool bad_value(const struct key *k, const char *text, size_t length, struct sim_spec_error *why)
{
	snprintf(why->what, sizeof(why->what), "bad value in '%.*s'", QUOTED(length), text);
	switch (k->kind) {
	case KEY_NUMBER:
		snprintf(why->hint, sizeof(why->hint), "%s is a number from %ld to %ld", k->name, k->min, k->max);
		break;
	case KEY_BYTES:
		snprintf(why->hint, sizeof(why->hint), "%s is a number of bytes, with K, M, G or T behind it: %s=24G",
			 k->name, k->name);
		break;
	case KEY_FLAG: snprintf(why->hint, sizeof(why->hint), "%s takes no value", k->name); break;
	case KEY_VALUES:
		snprintf(why->hint, sizeof(why->hint), "%s is one of", k->name);
		for (size_t i = 0; i < N_VALUES; i++)
			hint_add(why, values[i]);
		break;
	case KEY_FAIL:
	case KEY_STICKY:
		snprintf(why->hint, sizeof(why->hint), "%s is NAME:N:CODE, at most %d of them", k->name, SIM_PLANS_MAX);
		break;
	}
	return false;
}

static bool read_number(const char *text, size_t length, long *out)
{
	char copy[24], *end;

	if (!length || length >= sizeof(copy) || !isdigit((unsigned char)*text))
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	*out = strtol(copy, &end, 10);
	return !*end;
}

static bool read_bytes(const char *text, size_t length, size_t *out)
{
	static const char suffixes[] = "KMGT";
	const char *suffix;
	int shift = 0;
	long value;

	if (length && (suffix = strchr(suffixes, toupper((unsigned char)text[length - 1]))) && *suffix) {
		shift = 10 * (int)(suffix - suffixes + 1);
		length--;
	}
	if (!read_number(text, length, &value) || (size_t)value > SIZE_MAX >> (shift + 8))
		return false;
	*out = (size_t)value << shift;
	return true;
}

static bool read_values(const char *text, size_t length, enum sim_values *out)
{
	for (size_t i = 0; i < N_VALUES; i++)
		if (is_word(text, length, values[i])) {
			*out = (enum sim_values)i;
			return true;
		}
	return false;
}

/* NAME:N:CODE */
static bool read_plan(struct sim_config *c, const char *text, size_t length, bool sticky)
{
	struct sim_plan *plan = &c->plans[c->plan_count];
	const char *end = text + length;
	const char *number = memchr(text, ':', length);
	const char *code = number ? memchr(number + 1, ':', (size_t)(end - number - 1)) : NULL;
	size_t name = number ? (size_t)(number - text) : 0;
	long n, result;

	if (!code || !name || name >= sizeof(plan->name) || c->plan_count == SIM_PLANS_MAX ||
	    !read_number(number + 1, (size_t)(code - number - 1), &n) || !n ||
	    !read_number(code + 1, (size_t)(end - code - 1), &result) || !result || result > 999)
		return false;
	memcpy(plan->name, text, name);
	plan->name[name] = '\0';
	plan->number = n;
	plan->code = (int)result;
	plan->sticky = sticky;
	c->plan_count++;
	return true;
}

static bool read_value(struct sim_config *c, const struct key *k, const char *text, size_t length)
{
	void *field = (char *)c + k->offset;
	long number;

	switch (k->kind) {
	case KEY_NUMBER:
		if (!read_number(text, length, &number) || number < k->min || number > k->max)
			return false;
		*(int *)field = (int)number;
		return true;
	case KEY_BYTES: return read_bytes(text, length, field);
	case KEY_VALUES: return read_values(text, length, field);
	case KEY_FAIL: return read_plan(c, text, length, false);
	case KEY_STICKY: return read_plan(c, text, length, true);
	case KEY_FLAG: break;
	}
	return false;
}

static bool read_pair(struct sim_config *c, const char *pair, size_t length, struct sim_spec_error *why)
{
	const char *eq = memchr(pair, '=', length);
	size_t name = eq ? (size_t)(eq - pair) : length;
	const struct key *k = NULL;

	for (size_t i = 0; !k && i < N_KEYS; i++)
		if (is_word(pair, name, keys[i].name))
			k = &keys[i];
	if (!k)
		return bad_key(pair, name, why);
	if (k->kind == KEY_FLAG && !eq)
		return *(bool *)((char *)c + k->offset) = true;
	if (!eq || !read_value(c, k, eq + 1, length - name - 1))
		return bad_value(k, pair, length, why);
	return true;
}

static void set_defaults(struct sim_config *c, const struct sim_model *model)
{
	memset(c, 0, sizeof(*c));
	c->model = model;
	c->devices = 1;
	c->memory = model->memory;
	c->driver = 13000;
	c->contents = (size_t)1 << 20;
	c->ram = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Lower case letters and digits: "RTX 4090" and "rtx-4090" are one name. */
static size_t fold(char *to, size_t room, const char *text, size_t length)
{
	size_t n = 0;

	for (size_t i = 0; i < length && n < room - 1; i++)
		if (isalnum((unsigned char)text[i]))
			to[n++] = (char)tolower((unsigned char)text[i]);
	to[n] = '\0';
	return n;
}

static const char *without(const char *name, const char *maker)
{
	size_t n = strlen(maker);

	return strncmp(name, maker, n) == 0 && name[n] ? name + n : name;
}

/* As people type it: with the maker's words, or without the line's ("4090"). */
static bool is_model(const char *typed, const char *id)
{
	char folded[64];

	fold(folded, sizeof(folded), id, strlen(id));
	typed = without(without(without(typed, "nvidia"), "geforce"), "tesla");
	return strcmp(typed, folded) == 0 ||
	       (isdigit((unsigned char)typed[0]) && strcmp(typed, without(folded, "rtx")) == 0);
}

const struct sim_model *sim_model_find(const char *id, size_t length)
{
	char typed[64];

	for (size_t i = 0; i < N_MODELS; i++)
		if (is_word(id, length, models[i].id))
			return &models[i];
	fold(typed, sizeof(typed), id, length);
	for (size_t i = 0; i < N_MODELS && typed[0]; i++)
		if (is_model(typed, models[i].id))
			return &models[i];
	return NULL;
}

bool sim_spec_read(struct sim_config *c, const char *text, struct sim_spec_error *why)
{
	size_t length = strcspn(text, ",*");
	const struct sim_model *model = sim_model_find(text, length);

	if (!model)
		return bad_model(text, length, why);
	set_defaults(c, model);
	if (text[length] == '*') {		/* MODEL*8 is devices=8 */
		size_t all = strcspn(text, ",");

		if (!read_value(c, &keys[0], text + length + 1, all - length - 1))
			return bad_value(&keys[0], text, all, why);
		length = all;
	}
	while (text[length] == ',') {
		text += length + 1;
		length = strcspn(text, ",");
		if (!read_pair(c, text, length, why))
			return false;
	}
	for (size_t i = 0; !c->ptx; i++)
		if (c->driver >= ptx_of_driver[i].driver)
			c->ptx = ptx_of_driver[i].ptx;
	return true;
}
