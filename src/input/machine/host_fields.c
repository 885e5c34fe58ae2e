/* SPDX-License-Identifier: Apache-2.0
 * The rows of host.def as tables, and what all of them have in common: unknown at first, lists that grow.
 */
#include <string.h>

#include "input/machine/host_priv.h"
#include "base/banned.h"

const struct host_field host_fields[] = {
#define GROUP(group)
#define GROUP_END(group)
#define G_FLAG(group, name, what)	{#group, #name, HOST_FLAG, offsetof(struct host, group.name)},
#define G_NUM(group, name, what)	{#group, #name, HOST_NUM, offsetof(struct host, group.name)},
#define G_TEXT(group, name, what)	{#group, #name, HOST_TEXT, offsetof(struct host, group.name)},
#define LIST(list)
#define LIST_END(list)
#define L_FLAG(list, name, what)
#define L_NUM(list, name, what)
#define L_TEXT(list, name, what)
#include "input/machine/host.def"
};
const size_t host_n_fields = sizeof(host_fields) / sizeof(host_fields[0]);

#define GROUP(group)
#define GROUP_END(group)
#define G_FLAG(group, name, what)
#define G_NUM(group, name, what)
#define G_TEXT(group, name, what)
#define LIST(list)			static const struct host_field list##_fields[] = {
#define LIST_END(list)			};
#define L_FLAG(list, name, what)	{#list, #name, HOST_FLAG, offsetof(struct host_##list, name)},
#define L_NUM(list, name, what)		{#list, #name, HOST_NUM, offsetof(struct host_##list, name)},
#define L_TEXT(list, name, what)	{#list, #name, HOST_TEXT, offsetof(struct host_##list, name)},
#include "input/machine/host.def"

const struct host_list host_lists[HOST_LISTS] = {
#define GROUP(group)
#define GROUP_END(group)
#define G_FLAG(group, name, what)
#define G_NUM(group, name, what)
#define G_TEXT(group, name, what)
#define LIST(list)	{#list, offsetof(struct host, list), offsetof(struct host, n_##list), sizeof(struct host_##list), \
			 list##_fields, sizeof(list##_fields) / sizeof(list##_fields[0])},
#define LIST_END(list)
#define L_FLAG(list, name, what)
#define L_NUM(list, name, what)
#define L_TEXT(list, name, what)
#include "input/machine/host.def"
};

static void make_unknown(void *base, const struct host_field *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *at = (char *)base + f[i].offset;

		if (f[i].kind == HOST_FLAG)
			*(int *)(void *)at = -1;
		else if (f[i].kind == HOST_NUM)
			*(int64_t *)(void *)at = -1;
	}
}

void host_unknown(struct host *h)
{
	memset(h, 0, sizeof(*h));
	make_unknown(h, host_fields, host_n_fields);
	for (size_t i = 0; i < HOST_LISTS; i++)
		*(ptrdiff_t *)(void *)((char *)h + host_lists[i].at_n) = -1;
}

void host_looked(struct host *h, enum host_list_id list)
{
	ptrdiff_t *n = (ptrdiff_t *)(void *)((char *)h + host_lists[list].at_n);

	if (*n < 0)
		*n = 0;
}

void *host_add(struct host *h, struct pool *pool, enum host_list_id list)
{
	const struct host_list *l = &host_lists[list];
	void **array = (void **)(void *)((char *)h + l->at);
	ptrdiff_t *n = (ptrdiff_t *)(void *)((char *)h + l->at_n);
	void *bigger;
	char *element;

	if (*n >= HOST_LIST_MAX)
		return NULL;
	if (*n < 0)
		*n = 0;
	if ((*n & (*n - 1)) == 0) {	/* full at every power of two */
		bigger = pool_alloc(pool, (size_t)(*n ? *n * 2 : 1) * l->size);
		if (*n)
			memcpy(bigger, *array, (size_t)*n * l->size);
		*array = bigger;
	}
	element = (char *)*array + (size_t)*n * l->size;
	make_unknown(element, l->field, l->n_fields);
	++*n;
	return element;
}
