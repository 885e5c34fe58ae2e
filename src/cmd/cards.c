/* SPDX-License-Identifier: Apache-2.0
 * Cards by the names that commands take (see cards.h).
 */
#include "cmd/cards.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"
#include "sim/cuda/sim_spec.h"

const struct card_model *card_find(const char *id, struct err *e)
{
	const struct sim_model *model = sim_model_find(id, strlen(id));
	const char *names[CARDS + 1] = {NULL}, *near;

	for (size_t i = 0; i < CARDS; i++) {
		if (model && strcmp(card_models[i].id, model->id) == 0)
			return &card_models[i];
		names[i] = card_models[i].id;
	}
	err_set(e, -EINVAL, "there is no GPU '%s' in cuwhy's table", id);
	near = str_nearest(id, names);
	if (near)
		err_hint(e, "did you mean '%s'?", near);
	else
		err_hint(e, "for example rtx3060, rtx4090, l4, a100-40gb, h100-80gb; with any other amount of memory: memory=24GiB");
	return NULL;
}
