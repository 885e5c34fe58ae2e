/* SPDX-License-Identifier: Apache-2.0
 * Every GPU and who holds its memory (see usage.h).
 */
#include "probe/usage.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void gpu_details_unknown(struct gpu_details *d)
{
#define DETAIL(field, text) d->field = -1;
#include "probe/details.def"
#undef DETAIL
}

struct gpu_usage *usage_new(void)
{
	struct gpu_usage *u = xcalloc(1, sizeof(*u));

	u->cuda = -1;
	return u;
}

void usage_free(struct gpu_usage *u)
{
	size_t i;

	if (!u)
		return;
	for (i = 0; i < u->n; i++)
		free(u->gpu[i].holder);
	free(u->gpu);
	free(u);
}

struct gpu_state *usage_add_gpu(struct gpu_usage *u, const struct gpu_card *card)
{
	u->gpu = xgrow(u->gpu, u->n, &u->cap, sizeof(*u->gpu));
	u->gpu[u->n] = (struct gpu_state){.card = *card};
	gpu_details_unknown(&u->gpu[u->n].details);
	return &u->gpu[u->n++];
}

static uint64_t more_bytes(uint64_t a, uint64_t b)
{
	if (a == USAGE_UNKNOWN || b == USAGE_UNKNOWN)
		return a == USAGE_UNKNOWN ? b : a;
	return a > b ? a : b;
}

void usage_add_holder(struct gpu_state *g, const struct gpu_holder *h)
{
	size_t i;

	for (i = 0; i < g->n; i++) {
		if (g->holder[i].pid != h->pid || g->holder[i].instance != h->instance)
			continue;
		g->holder[i].kind |= h->kind;
		g->holder[i].bytes = more_bytes(g->holder[i].bytes, h->bytes);
		return;
	}
	g->holder = xgrow(g->holder, g->n, &g->cap, sizeof(*g->holder));
	g->holder[g->n++] = *h;
}

void usage_name_holder(struct gpu_usage *u, const struct gpu_holder *who)
{
	struct gpu_holder *h;
	size_t i, k;

	for (i = 0; i < u->n; i++) {
		for (k = 0; k < u->gpu[i].n; k++) {
			h = &u->gpu[i].holder[k];
			if (h->pid != who->pid)
				continue;
			h->state = who->state;
			h->own_user = who->own_user;
			str_copy(h->command, sizeof(h->command), who->command);
		}
	}
}

static int holder_by_bytes(const void *a, const void *b)
{
	const struct gpu_holder *x = a, *y = b;
	uint64_t xb = x->bytes + 1, yb = y->bytes + 1;	/* unknown becomes 0: last */

	if (xb != yb)
		return xb < yb ? 1 : -1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void usage_sort(struct gpu_usage *u)
{
	size_t i;

	for (i = 0; i < u->n; i++)
		xsort(u->gpu[i].holder, u->gpu[i].n, sizeof(*u->gpu[i].holder), holder_by_bytes);
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "GPU-8-4-4-4-12", hexadecimal, in the order of the bytes. */
static bool same_uuid(const char *text, const uint8_t uuid[16])
{
	size_t i;
	int high, low;

	if (!str_starts(text, "GPU-"))
		return false;
	text += strlen("GPU-");
	for (i = 0; i < 16; i++) {
		text += *text == '-';
		high = hex_digit((char)tolower((unsigned char)text[0]));
		low = high < 0 ? -1 : hex_digit((char)tolower((unsigned char)text[1]));
		if (low < 0 || (high << 4 | low) != uuid[i])
			return false;
		text += 2;
	}
	return *text == '\0';
}

const struct gpu_state *usage_find(const struct gpu_usage *u, const uint8_t uuid[16])
{
	size_t i;

	for (i = 0; u && i < u->n; i++)
		if (same_uuid(u->gpu[i].card.uuid, uuid))
			return &u->gpu[i];
	return NULL;
}

uint64_t usage_unattributed(const struct gpu_state *g)
{
	uint64_t left = g->card.used;
	size_t i;

	if (left == USAGE_UNKNOWN)
		return USAGE_UNKNOWN;
	for (i = 0; i < g->n; i++)
		if (g->holder[i].bytes != USAGE_UNKNOWN)
			left = left > g->holder[i].bytes ? left - g->holder[i].bytes : 0;
	return left;
}

const char *const usage_states[] = {
	[HOLDER_UNKNOWN] = "unknown", [HOLDER_RUNNING] = "running", [HOLDER_ZOMBIE] = "zombie",
	[HOLDER_GONE] = "gone",	      [HOLDER_OUTSIDE] = "outside", NULL};

const char *usage_state_name(enum holder_state s)
{
	return s <= HOLDER_OUTSIDE ? usage_states[s] : "unknown";
}

const char *const usage_troubles[] = {[USAGE_COMPLETE] = "none", [USAGE_NO_PROBE] = "no-probe", [USAGE_NO_LIBRARY] = "no-library",
				      [USAGE_REFUSED] = "refused", [USAGE_HUNG] = "hung", [USAGE_DIED] = "died", NULL};

const char *usage_trouble_name(enum usage_trouble t)
{
	return t <= USAGE_DIED ? usage_troubles[t] : "died";
}
