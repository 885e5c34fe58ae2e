/* SPDX-License-Identifier: Apache-2.0
 * Numbers, names and words of codes, side by side (see contradiction.h).
 */
#include "find/words/contradiction.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case/message.h"
#include "compat/cuda_errors.h"
#include "find/words/observe.h"
#include "read/text/said.h"

#define COUNT(list)  (sizeof(list) / sizeof((list)[0]))
#define BESIDE	     16 /* characters at most between two that belong together: ": ", " (error code " */
#define ITEMS_MAX    32
#define MESSAGE_LEFT 4096
#define OLD_LAUNCH_FAILED 4	/* of the runtime before CUDA 10.1; today's 4 is another one */

enum kind { NUMBER, NAME, WORDS };

struct item {
	size_t at, len;
	uint32_t code;
	enum kind kind;
};

struct items {
	struct item item[ITEMS_MAX];
	size_t n;
};

static const uint32_t codes[] = {
#define CUDA_ERROR_ROW(code, driver, runtime, sticky, text) code,
#include "kb/cuda_errors.def"
#undef CUDA_ERROR_ROW
};

/* A longer one that covers a shorter one is what was said: "invalid argument" is part of other descriptions. */
static void add(struct items *all, struct item new)
{
	for (size_t i = 0; i < all->n; i++) {
		struct item *old = &all->item[i];

		if (new.at >= old->at + old->len || old->at >= new.at + new.len)
			continue;
		if (new.len > old->len)
			*old = new;
		return;
	}
	if (all->n < ITEMS_MAX)
		all->item[all->n++] = new;
}

static void find_all(struct items *all, const char *s, const char *what, uint32_t code, enum kind kind)
{
	size_t n = strlen(what);

	for (const char *at = s; n && (at = kind == NAME ? strstr(at, what) : strcasestr(at, what)); at += n)
		if ((at == s || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) && !isalnum((unsigned char)at[n]) &&
		    at[n] != '_')
			add(all, (struct item){(size_t)(at - s), n, code, kind});
}

/* "CUDA error 805", "error=77", "code 2", "(2)" */
static void find_numbers(struct items *all, const char *s)
{
	static const char *const before[] = {"error", "code", "err", "failure", "failed", "status", "[", "("};

	for (const char *at = s; *at; at++) {
		size_t digits = strspn(at, "0123456789"), gap = 0;
		uint32_t code = digits && digits < 4 ? (uint32_t)strtoul(at, NULL, 10) : 0;
		bool led = false;

		while (at - s > (ptrdiff_t)gap && gap < 4 && strchr(" :=(#", at[-1 - (ptrdiff_t)gap]))
			gap++;
		for (size_t i = 0; digits && i < COUNT(before) && !led; i++) {
			size_t n = strlen(before[i]), back = isalpha((unsigned char)before[i][0]) ? gap : 0;

			led = (size_t)(at - s) >= n + back && (back || !isalpha((unsigned char)before[i][0])) &&
			      !strncasecmp(at - back - n, before[i], n);
		}
		if (led && code && at[digits] != '.' && !isalpha((unsigned char)at[digits]) &&
		    cuda_error_text(text_number_today(code))[0])
			add(all, (struct item){(size_t)(at - s), digits, code, NUMBER});
		at += digits ? digits - 1 : 0;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* The runtime had numbers of its own before CUDA 10.1, and some programs show those. */
static bool agree(const struct item *a, const struct item *b)
{
	uint32_t number = a->kind == NUMBER ? a->code : b->code, other = a->kind == NUMBER ? b->code : a->code;
	bool numbered = a->kind == NUMBER || b->kind == NUMBER;

	if (a->code == b->code || !strcmp(cuda_error_text(a->code), cuda_error_text(b->code)))
		return true;
	if ((a->kind == WORDS && a->code == CODE_UNKNOWN) || (b->kind == WORDS && b->code == CODE_UNKNOWN))
		return true;	/* a program that does not know a code says so */
	return numbered &&
	       (text_number_today(number) == other || (number == OLD_LAUNCH_FAILED && other == CODE_LAUNCH_FAILED));
}

/* Between what was said and its number. Other words say whose number it is: "Error Code 1: Cuda Runtime (out of memory)" is TensorRT's. */
static bool is_link(const char *word, size_t n, bool number_follows)
{
	static const char *const links[] = {"error", "code", "err", "status", "cuda"};

	for (size_t i = 0; i < COUNT(links); i++)
		if (strlen(links[i]) == n && !strncasecmp(word, links[i], n))
			return number_follows || strcmp(links[i], "cuda") != 0;
	return false;
}

/* Nothing but signs and a word like "code" between them. */
static bool belong_together(const char *s, const struct item *a, const struct item *b)
{
	size_t from = a->at + a->len;

	if (b->at < from || b->at - from > BESIDE || (a->kind == b->kind))
		return false;
	for (size_t i = from, n; i < b->at; i += n ? n : 1) {
		for (n = 0; i + n < b->at && isalnum((unsigned char)s[i + n]);)
			n++;
		if (s[i] == '\n' || s[i] == '.' || s[i] == ';' || (n && !is_link(s + i, n, b->kind == NUMBER)))
			return false;
	}
	return true;
}

static void tell(const char *s, const struct item *i, uint32_t *code, char *said, size_t room)
{
	*code = i->kind == NUMBER && !cuda_error_text(i->code)[0] ? text_number_today(i->code) : i->code;
	snprintf(said, room, "%.*s", (int)i->len, s + i->at);
}

bool text_contradiction(const char *message, struct contradiction *c)
{
	struct items all = {0};
	char s[MESSAGE_LEFT];

	if (!says(message, SAID_of_cuda))
		return false;
	snprintf(s, sizeof(s), "%s", message);
	for (size_t i = 0; i < COUNT(codes); i++) {
		if (!codes[i])
			continue;	/* "err == cudaSuccess (2 vs. 0)" is what was expected */
		find_all(&all, s, cuda_error_text(codes[i]), codes[i], WORDS);
		find_all(&all, s, cuda_error_driver_name(codes[i]), codes[i], NAME);
		find_all(&all, s, cuda_error_runtime_name(codes[i]), codes[i], NAME);
	}
	find_numbers(&all, s);
	xsort(all.item, all.n, sizeof(all.item[0]), by_place);
	for (size_t i = 0; i + 1 < all.n; i++) {
		const struct item *a = &all.item[i], *b = &all.item[i + 1];

		if (!belong_together(s, a, b) || agree(a, b))
			continue;
		tell(s, a, &c->code[0], c->said[0], sizeof(c->said[0]));
		tell(s, b, &c->code[1], c->said[1], sizeof(c->said[1]));
		return true;
	}
	return false;
}
