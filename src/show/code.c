/* SPDX-License-Identifier: Apache-2.0
 * Finds codes by number or name (see code.h).
 */
#include "show/code.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "formats/xid.h"
#include "compat/cuda_errors.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const uint32_t cuda_codes[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) code,
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
};

static const struct { uint32_t code; const char *note, *causes; } cuda_notes[] = {
#define CODE_NOTE(code, note, causes) {code, note, causes},
#include "kb/code_notes.def"
};

static const struct { const char *family; int number; const char *name, *note, *causes; } statuses[] = {
#define STATUS(family, number, name, note, causes) {#family, number, #name, note, causes},
#include "kb/code_notes.def"
};

static const struct { uint32_t number; const char *note, *causes; } xid_notes[] = {
#define XID_NOTE(number, note, causes) {number, note, causes},
#include "kb/code_notes.def"
};

static bool fill_cuda(struct code *c, uint32_t code)
{
	*c = (struct code){.family = "CUDA", .number = (int)code, .says = cuda_error_text(code), .note = "", .causes = "",
			   .sticky = cuda_error_sticky(code)};
	if (!c->says[0])
		return false;
	str_copy(c->name, sizeof(c->name), cuda_error_name(code));
	c->other = strcmp(cuda_error_name(code), cuda_error_runtime_name(code)) ? cuda_error_runtime_name(code) : "";
	for (size_t i = 0; i < COUNT(cuda_notes); i++) {
		if (cuda_notes[i].code == code) {
			c->note = cuda_notes[i].note;
			c->causes = cuda_notes[i].causes;
		}
	}
	return true;
}

static bool cuda_by_name(struct code *c, const char *word)
{
	for (size_t i = 0; i < COUNT(cuda_codes); i++) {
		const char *driver = cuda_error_driver_name(cuda_codes[i]),
			   *runtime = cuda_error_runtime_name(cuda_codes[i]);

		if (!strcasecmp(word, driver) || !strcasecmp(word, runtime) ||
		    (strlen(driver) > 11 && !strcasecmp(word, driver + strlen("CUDA_ERROR_"))))
			return fill_cuda(c, cuda_codes[i]);
	}
	return false;
}

static bool fill_status(struct code *c, size_t i)
{
	*c = (struct code){.family = statuses[i].family, .number = statuses[i].number, .other = "", .says = "",
			   .note = statuses[i].note, .causes = statuses[i].causes};
	str_copy(c->name, sizeof(c->name), statuses[i].name);
	return true;
}

/* The longest status that the name begins with: releases append words to it. */
static bool status_by_name(struct code *c, const char *word)
{
	size_t best = COUNT(statuses), longest = 0;

	for (size_t i = 0; i < COUNT(statuses); i++) {
		size_t n = strlen(statuses[i].name);

		if (n > longest && !strncasecmp(word, statuses[i].name, n) && (!word[n] || word[n] == '_')) {
			best = i;
			longest = n;
		}
	}
	if (best == COUNT(statuses))
		return false;
	fill_status(c, best);
	str_copy(c->name, sizeof(c->name), word);
	return true;
}

static bool status_by_number(struct code *c, const char *family, int number)
{
	for (size_t i = 0; i < COUNT(statuses); i++)
		if (!strcasecmp(statuses[i].family, family) && statuses[i].number == number)
			return fill_status(c, i);
	return false;
}

static bool fill_xid(struct code *c, uint32_t number)
{
	static const char *const classes[] = {
		[XID_PROGRAM] = "It follows from what the program did, and says nothing about the hardware.",
		[XID_UNCLEAR] = "The program, the driver or the hardware can cause it.",
		[XID_DRIVER] = "The driver or the GPU's firmware got stuck: reset the GPU, update the driver.",
		[XID_HARDWARE] = "It points to the hardware: the GPU, its memory, a link, the bus or the power.",
	};

	*c = (struct code){.family = "Xid", .number = (int)number, .other = "", .says = xid_meaning(number),
			   .note = classes[xid_class(number)], .causes = ""};
	snprintf(c->name, sizeof(c->name), "Xid %u", number);
	if (!c->says[0])
		c->says = "not in our list of Xid numbers";
	if (xid_class(number) == XID_HARDWARE)
		c->causes = "host-hardware-instability, ecc-hardware-fault";
	for (size_t i = 0; i < COUNT(xid_notes); i++) {
		if (xid_notes[i].number == number) {
			c->note = xid_notes[i].note;
			c->causes = xid_notes[i].causes;
		}
	}
	return true;
}

/* The number that follows one of the words, and nothing else: "error 700", "Xid: 79". */
static bool number_behind(const char *s, const char *word, int *number)
{
	size_t n = strlen(word);
	uint64_t value;

	if (strncasecmp(s, word, n))
		return false;
	s += n + strspn(s + n, " :=#(");
	if (!isdigit((unsigned char)*s) || strlen(s) > 5)
		return false;
	if (!str_u64(s, &value))
		return false;
	*number = (int)value;
	return true;
}

bool code_find(struct code *c, const char *word)
{
	static const char *const cuda[] = {"CUDA error",
					   "CUDA runtime error",
					   "CUDA driver error",
					   "cudaError",
					   "CUresult",
					   "error code",
					   "error",
					   "code",
					   "CUDA",
					   ""};
	static const char *const families[] = {"NCCL", "CUBLAS", "CUSOLVER", "CUSPARSE", "CUFFT", "NVRTC"};
	char words[64];
	int number;

	if (number_behind(word, "Xid", &number))
		return fill_xid(c, (uint32_t)number);
	for (size_t i = 0; i < COUNT(families); i++) {
		snprintf(words, sizeof(words), "%s error", families[i]);
		if (number_behind(word, words, &number) || number_behind(word, families[i], &number))
			return status_by_number(c, families[i], number);
	}
	for (size_t i = 0; i < COUNT(cuda); i++)
		if (number_behind(word, cuda[i], &number))
			return fill_cuda(c, (uint32_t)number) ||
			       (!cuda[i][0] && xid_meaning((uint32_t)number)[0] && fill_xid(c, (uint32_t)number));
	return cuda_by_name(c, word) || status_by_name(c, word);
}
