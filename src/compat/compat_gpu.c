/* SPDX-License-Identifier: Apache-2.0
 * GPUs: capabilities, generations, cards.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"
#include "compat/compat.h"

#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))

static const struct compat_generation generations[] = {
#define COMPAT_GENERATION(name, first, last, branch) {name, first, last, branch},
#include "kb/compat_drivers.def"
};

#define TEGRA	true
#define CARD	false
static const struct compat_capability capabilities[] = {
#define COMPAT_CC(cc, first, last, tegra, name) {cc, name, first, last, tegra},
#include "kb/compat_capabilities.def"
};
#undef TEGRA
#undef CARD

static const struct compat_gpu cards[] = {
#define COMPAT_CARD(id, name, chip, cc, class) {id, name, chip, cc, COMPAT_CLASS_##class},
#include "kb/compat_gpus.def"
};

static const struct compat_gpu names[] = {
#define COMPAT_NAME(pattern, cc, class) {0, pattern, NULL, cc, COMPAT_CLASS_##class},
#include "kb/compat_gpus.def"
};

static const struct chip {
	uint16_t first, last;
	const char *name;
	int cc;
} chips[] = {
#define COMPAT_CHIP(first, last, chip, cc) {first, last, chip, cc},
#include "kb/compat_gpus.def"
};

const struct compat_generation *compat_generation(int cc)
{
	for (size_t i = 0; i < COUNT(generations); i++)
		if (cc >= generations[i].cc_first && cc <= generations[i].cc_last)
			return &generations[i];
	return NULL;
}

const struct compat_capability *compat_capability(int cc)
{
	for (size_t i = 0; i < COUNT(capabilities); i++)
		if (capabilities[i].cc == cc)
			return &capabilities[i];
	return NULL;
}

const struct compat_gpu *compat_gpu_by_pci(uint16_t device)
{
	static struct compat_gpu found;

	for (size_t i = 0; i < COUNT(cards); i++)
		if (cards[i].pci == device)
			return &cards[i];
	for (size_t i = 0; i < COUNT(chips); i++)
		if (device >= chips[i].first && device <= chips[i].last) {
			found = (struct compat_gpu){device, NULL, chips[i].name, chips[i].cc, COMPAT_CLASS_UNKNOWN};
			return &found;
		}
	return NULL;
}

static const char *without_maker(const char *name)
{
	static const char maker[] = "NVIDIA ";

	return str_starts(name, maker) ? name + sizeof(maker) - 1 : name;
}

const struct compat_gpu *compat_gpu_by_name(const char *name)
{
	if (!name)
		return NULL;
	name = without_maker(name);
	for (size_t i = 0; i < COUNT(names); i++)
		if (fnmatch(names[i].name, name, 0) == 0)
			return &names[i];
	return NULL;
}

/* "nvidia geforce  rtx4090ti-laptop" as "rtx 4090 ti laptop": without the maker, single blanks, letters of a series apart from numbers. */
static void words_plain(char *to, size_t size, const char *from)
{
	static const char *const drop[] = {"nvidia ", "geforce "}, *const apart[] = {"rtx", "gtx"};
	size_t n = 0;

	for (; *from && n + 2 < size; from++) {
		bool blank = *from == ' ' || *from == '-' || *from == '_' || *from == '\t';

		if (!blank)
			to[n++] = (char)tolower((unsigned char)*from);
		else if (n && to[n - 1] != ' ')
			to[n++] = ' ';
		to[n] = '\0';
		for (size_t i = 0; blank && i < COUNT(drop); i++)
			if (strcmp(to, drop[i]) == 0)
				n = 0;
		for (size_t i = 0; i < COUNT(apart); i++)
			if (n == 3 && strncmp(to, apart[i], 3) == 0 && isdigit((unsigned char)from[1]))
				to[n++] = ' ';
	}
	while (n && to[n - 1] == ' ')
		n--;
	to[n] = '\0';
}

static const struct compat_gpu *card_called(const char *name)
{
	for (size_t i = 0; i < COUNT(cards); i++)
		if (strcasecmp(cards[i].name, name) == 0)
			return &cards[i];
	return NULL;
}

static const struct compat_gpu *name_like(const char *name)
{
	for (size_t i = 0; i < COUNT(names); i++)
		if (fnmatch(names[i].name, name, FNM_CASEFOLD) == 0)
			return &names[i];
	return NULL;
}

/* "rtx 4090 ti laptop" as "RTX 4090 Ti Laptop". */
static void words_spelled(char *name)
{
	for (char *at = name; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " "), digits = strcspn(at, "0123456789");
		bool word = digits >= n && (n > 3 || strncmp(at, "ti", n) == 0);

		for (size_t i = 0; i < (word ? 1 : n); i++)
			at[i] = (char)toupper((unsigned char)at[i]);
		at += n;
	}
}

static const struct compat_gpu *gpu_of_capability(const char *words, char *shown, size_t size)
{
	static struct compat_gpu found;
	int major = 0, minor = 0, all = 0, end = 0, cc;

	if (sscanf(words, "sm %d%n", &all, &end) == 1 && !words[end])
		cc = all;
	else if (sscanf(words, "%d.%d%n", &major, &minor, &end) == 2 && !words[end] && minor >= 0 && minor <= 9)
		cc = major * 10 + minor;
	else
		return NULL;
	if (!compat_capability(cc))
		return NULL;
	found = (struct compat_gpu){0, NULL, NULL, cc, COMPAT_CLASS_UNKNOWN};
	snprintf(shown, size, "a GPU of compute capability %d.%d", cc / 10, cc % 10);
	return &found;
}

const struct compat_gpu *compat_gpu_by_words(const char *words, char *shown, size_t size)
{
	static const char *const series[] = {"",	    "GeForce ", "GeForce RTX ", "GeForce GTX ",
					     "Tesla ", "Quadro ",  "Quadro RTX ",  "Jetson "};
	const struct compat_gpu *found;
	char plain[96], name[128];

	words_plain(plain, sizeof(plain), words);
	if (!plain[0])
		return NULL;
	found = gpu_of_capability(plain, shown, size);
	for (int like = 0; !found && like < 2; like++)	/* a card of that very name is surer than a pattern */
		for (size_t i = 0; !found && i < COUNT(series); i++) {
			snprintf(name, sizeof(name), "%s%s", series[i], plain);
			found = like ? name_like(name) : card_called(name);
			if (found && like)
				words_spelled(name + strlen(series[i]));
			if (found)
				snprintf(shown, size, "%s", like ? name : found->name);
		}
	return found;
}

static const char *const words[] = {
#define COMPAT_CARD(id, name, chip, cc, class) name,
#define COMPAT_WORD(word) word,
#include "kb/compat_gpus.def"
};

bool compat_name_word(const char *word, size_t len)
{
	for (size_t i = 0; i < COUNT(words); i++)
		for (const char *at = words[i]; *at; at += strspn(at, " ")) {
			size_t n = strcspn(at, " ");

			if (n == len && strncasecmp(at, word, n) == 0)
				return true;
			at += n;
		}
	return false;
}

enum compat_class compat_class_of(const char *name)
{
	const struct compat_gpu *known = compat_gpu_by_name(name);

	if (!name || known)
		return known ? known->class : COMPAT_CLASS_UNKNOWN;
	name = without_maker(name);
	if (str_starts(name, "GeForce") || str_starts(name, "TITAN"))
		return COMPAT_CLASS_GEFORCE;
	if (str_starts(name, "Tesla") || str_starts(name, "GRID"))
		return COMPAT_CLASS_DATACENTER;
	if (str_starts(name, "Quadro") || str_starts(name, "RTX "))
		return COMPAT_CLASS_WORKSTATION;
	return COMPAT_CLASS_UNKNOWN;
}

/* Some workstation cards in certified servers may use it, too; nothing on the machine tells which. */
bool compat_class_forward(enum compat_class class)
{
	return class == COMPAT_CLASS_DATACENTER || class == COMPAT_CLASS_JETSON;
}
