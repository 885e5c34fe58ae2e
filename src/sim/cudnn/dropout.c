/* SPDX-License-Identifier: Apache-2.0
 * Dropout: the states of its random numbers, which the program allocates.
 */
#include "sim/cudnn/descriptors.h"
#include "sim/cudnn/sizes.h"

static size_t states_bytes(const struct dnn_handle *h)
{
	return (size_t)h->device.sms * (size_t)h->device.threads_per_sm * DROPOUT_STATE_BYTES;
}

DNN(cudnnDropoutGetStatesSize, (struct dnn_handle * h, size_t *bytes))
{
	DNN_NEEDS(h && bytes);
	*bytes = states_bytes(h);
	return DNN_SUCCESS;
}

static int set(struct dnn_dropout *d, const struct dnn_handle *h, float rate, void *states, size_t bytes)
{
	DNN_NEEDS(d && h);
	DNN_REQUIRE(rate >= 0 && rate <= 1, DNN_BAD_PARAM);
	/* without states only a rate of 0 makes sense */
	DNN_REQUIRE(!states || bytes >= states_bytes(h), DNN_INVALID_VALUE);
	*d = (struct dnn_dropout){rate, states, bytes};
	return DNN_SUCCESS;
}

DNN(cudnnSetDropoutDescriptor,
    (struct dnn_dropout * d, struct dnn_handle *h, float rate, void *states, size_t bytes, unsigned long long seed))
{
	int status = set(d, h, rate, states, bytes);

	(void)seed;
	return status || !states ? status : dnn_launch(h, "dropout_init", DNN_INT32, NULL);
}

/* The states are there already: nothing runs. */
DNN(cudnnRestoreDropoutDescriptor,
    (struct dnn_dropout * d, struct dnn_handle *h, float rate, void *states, size_t bytes, unsigned long long seed))
{
	(void)seed;
	return set(d, h, rate, states, bytes);
}
