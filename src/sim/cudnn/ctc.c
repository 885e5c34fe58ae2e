/* SPDX-License-Identifier: Apache-2.0
 * The CTC loss.
 */
#include "sim/cudnn/descriptors.h"
#include "sim/cudnn/sizes.h"

/* Documented: labels of at most 256 characters. */
enum { LABEL_MAX = 256, ALGORITHM_DETERMINISTIC = 0, ALGORITHM_NONDETERMINISTIC = 1 };

static int set(struct dnn_ctc *c, int type, int normalization, int gradient, int longest)
{
	DNN_NEEDS(c);
	DNN_REQUIRE(dnn_type_bits(type), DNN_BAD_PARAM);
	DNN_REQUIRE((normalization == 0 || normalization == 1) && (gradient == 0 || gradient == 1), DNN_BAD_PARAM);
	DNN_REQUIRE(longest >= 0 && longest <= LABEL_MAX, DNN_BAD_PARAM);
	*c = (struct dnn_ctc){type, normalization, gradient, longest};
	return DNN_SUCCESS;
}

DNN(cudnnSetCTCLossDescriptorEx, (struct dnn_ctc * c, int type, int normalization, int gradient))
{
	return set(c, type, normalization, gradient, 0);
}

DNN(cudnnSetCTCLossDescriptor_v9, (struct dnn_ctc * c, int type, int normalization, int gradient, int longest))
{
	return set(c, type, normalization, gradient, longest);
}

/* Probabilities are steps x batch x characters, in float. */
static int check(const struct dnn_ctc *c, const struct dnn_shape *probabilities, const struct dnn_shape *gradients,
		 int algorithm)
{
	DNN_NEEDS(c && probabilities);
	DNN_REQUIRE(algorithm == ALGORITHM_DETERMINISTIC || algorithm == ALGORITHM_NONDETERMINISTIC, DNN_BAD_PARAM);
	DNN_REQUIRE(probabilities->dims == 3, DNN_BAD_PARAM);
	DNN_REQUIRE(!gradients || dnn_same_dims(probabilities, gradients), DNN_BAD_PARAM);
	DNN_REQUIRE(c->type == DNN_FLOAT && probabilities->type == DNN_FLOAT, DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

/* Each label has a blank between its characters, at its beginning and at its end. */
static size_t workspace(const struct dnn_shape *p, int longest)
{
	size_t states = 2 * (size_t)longest + 1;

	return (size_t)p->dim[0] * (size_t)p->dim[1] * states * CTC_TABLES * sizeof(float) + dnn_bytes(p);
}

static int longest_label(const struct dnn_shape *p, const int *label_lengths, const int *input_lengths, int *longest)
{
	DNN_NEEDS(label_lengths && input_lengths);
	*longest = 0;
	for (int64_t i = 0; i < p->dim[1]; i++) {
		DNN_REQUIRE(label_lengths[i] <= LABEL_MAX, DNN_NOT_SUPPORTED);
		DNN_REQUIRE(label_lengths[i] >= 0 && input_lengths[i] > 0 && input_lengths[i] <= p->dim[0],
			    DNN_BAD_PARAM);
		if (label_lengths[i] > *longest)
			*longest = label_lengths[i];
	}
	return DNN_SUCCESS;
}

DNN(cudnnGetCTCLossWorkspaceSize,
    (struct dnn_handle * h, const struct dnn_shape *probabilities, const struct dnn_shape *gradients, const int *labels,
     const int *label_lengths, const int *input_lengths, int algorithm, const struct dnn_ctc *c, size_t *bytes))
{
	int longest = 0, status;

	DNN_NEEDS(h && bytes && labels);
	status = check(c, probabilities, gradients, algorithm);
	if (status == DNN_SUCCESS)
		status = longest_label(probabilities, label_lengths, input_lengths, &longest);
	if (status == DNN_SUCCESS)
		*bytes = workspace(probabilities, longest);
	return status;
}

DNN(cudnnCTCLoss, (struct dnn_handle * h, const struct dnn_shape *probabilities, const void *data, const int *labels,
		   const int *label_lengths, const int *input_lengths, void *costs, const struct dnn_shape *gradients,
		   void *gradient_data, int algorithm, const struct dnn_ctc *c, void *space, size_t bytes))
{
	int longest = 0, status;

	DNN_NEEDS(h && data && labels && costs && (gradient_data || !gradients));
	status = check(c, probabilities, gradients, algorithm);
	if (status == DNN_SUCCESS)
		status = longest_label(probabilities, label_lengths, input_lengths, &longest);
	if (status)
		return status;
	DNN_REQUIRE(space && bytes >= workspace(probabilities, longest), DNN_BAD_PARAM);
	return dnn_launch(h, "ctc_loss", DNN_FLOAT, NULL);
}

DNN(cudnnGetCTCLossWorkspaceSize_v8,
    (struct dnn_handle * h, int algorithm, const struct dnn_ctc *c, const struct dnn_shape *probabilities,
     const struct dnn_shape *gradients, size_t *bytes))
{
	int status;

	DNN_NEEDS(h && bytes);
	status = check(c, probabilities, gradients, algorithm);
	if (status == DNN_SUCCESS)
		*bytes = workspace(probabilities, c->longest_label);
	return status;
}

DNN(cudnnCTCLoss_v8, (struct dnn_handle * h, int algorithm, const struct dnn_ctc *c, const struct dnn_shape *probabilities,
		      const void *data, const int *labels, const int *label_lengths, const int *input_lengths,
		      void *costs, const struct dnn_shape *gradients, void *gradient_data, size_t bytes, void *space))
{
	int status;

	DNN_NEEDS(h && data && labels && label_lengths && input_lengths && costs && (gradient_data || !gradients));
	status = check(c, probabilities, gradients, algorithm);
	if (status)
		return status;
	DNN_REQUIRE(space && bytes >= workspace(probabilities, c->longest_label), DNN_BAD_PARAM);
	return dnn_launch(h, "ctc_loss", DNN_FLOAT, NULL);
}
