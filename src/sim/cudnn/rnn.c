/* SPDX-License-Identifier: Apache-2.0
 * Recurrent networks: plain, LSTM and GRU.
 */
#include "sim/cudnn/descriptors.h"
#include "sim/cudnn/sizes.h"

/* cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t, cudnnRNNInputMode_t, cudnnForwardMode_t */
enum { CELL_RELU, CELL_TANH, CELL_LSTM, CELL_GRU };
enum { BIAS_NONE, BIAS_INPUT, BIAS_DOUBLE, BIAS_RECURRENT };
enum { UNIDIRECTIONAL, BIDIRECTIONAL };
enum { INPUT_LINEAR, INPUT_SKIP };
enum { FORWARD_INFERENCE, FORWARD_TRAINING };
enum { ALGORITHM_SMALL_HIDDEN = 3, ALGORITHM_MAX = 3 };
enum { LAYOUT_UNPACKED, LAYOUT_PACKED, LAYOUT_BATCH_MAJOR, LAYOUT_MAX = LAYOUT_BATCH_MAJOR };

DNN(cudnnSetRNNDescriptor_v8, (struct dnn_rnn * r, int algorithm, int cell, int bias, int direction, int input_mode,
			       int type, int math_type, int math, int input, int hidden, int projection, int layers,
			       const struct dnn_dropout *dropout, unsigned int flags))
{
	DNN_NEEDS(r);
	DNN_REQUIRE(algorithm >= 0 && algorithm <= ALGORITHM_MAX, DNN_BAD_PARAM);
	DNN_REQUIRE(cell >= CELL_RELU && cell <= CELL_GRU && bias >= BIAS_NONE && bias <= BIAS_RECURRENT, DNN_BAD_PARAM);
	DNN_REQUIRE(direction == UNIDIRECTIONAL || direction == BIDIRECTIONAL, DNN_BAD_PARAM);
	DNN_REQUIRE(input_mode == INPUT_LINEAR || input_mode == INPUT_SKIP, DNN_BAD_PARAM);
	DNN_REQUIRE(math >= DNN_MATH_DEFAULT && math <= DNN_MATH_FMA, DNN_BAD_PARAM);
	DNN_REQUIRE(input > 0 && hidden > 0 && layers > 0 && projection > 0 && projection <= hidden, DNN_BAD_PARAM);
	DNN_REQUIRE(input_mode != INPUT_SKIP || input == hidden, DNN_BAD_PARAM);
	/* documented: only an LSTM has a projection */
	DNN_REQUIRE(projection == hidden || cell == CELL_LSTM, DNN_NOT_SUPPORTED);
	DNN_REQUIRE(type == DNN_FLOAT || type == DNN_DOUBLE || type == DNN_HALF || type == DNN_BFLOAT16,
		    DNN_NOT_SUPPORTED);
	*r = (struct dnn_rnn){.algorithm = algorithm,
			      .cell = cell,
			      .bias = bias,
			      .direction = direction,
			      .input_mode = input_mode,
			      .type = type, .math_type = math_type, .math = math, .input = input, .hidden = hidden,
			      .projection = projection, .layers = layers, .flags = flags,
			      .dropout = dropout && dropout->rate > 0};
	return DNN_SUCCESS;
}

DNN(cudnnSetRNNDataDescriptor, (struct dnn_rnn_data * d, int type, int layout, int steps, int batch, int width,
				const int *lengths, const void *fill))
{
	struct dnn_rnn_data set = {type, layout, steps, batch, width, 0};

	(void)fill;
	DNN_NEEDS(d && lengths);
	DNN_REQUIRE(dnn_type_bits(type), DNN_NOT_SUPPORTED);
	DNN_REQUIRE(layout >= 0 && layout <= LAYOUT_MAX, DNN_BAD_PARAM);
	DNN_REQUIRE(steps > 0 && batch > 0 && width > 0, DNN_BAD_PARAM);
	for (int i = 0; i < batch; i++) {
		DNN_REQUIRE(lengths[i] >= 0 && lengths[i] <= steps, DNN_BAD_PARAM);
		set.total += lengths[i];
	}
	*d = set;
	return DNN_SUCCESS;
}

static int gates(const struct dnn_rnn *r)
{
	return r->cell == CELL_LSTM ? 4 : r->cell == CELL_GRU ? 3 : 1;
}

static int directions(const struct dnn_rnn *r)
{
	return r->direction == BIDIRECTIONAL ? 2 : 1;
}

static bool has_projection(const struct dnn_rnn *r)
{
	return r->projection != r->hidden;
}

static int64_t layer_input(const struct dnn_rnn *r, int pseudo_layer)
{
	return pseudo_layer < directions(r) ? r->input : (int64_t)r->projection * directions(r);
}

/* One matrix of a layer: gates of the input, gates of the recurrence, then the projection. 0 elements: there is none. */
struct matrix {
	int64_t rows, columns;
};

static struct matrix layer_matrix(const struct dnn_rnn *r, int pseudo_layer, int id)
{
	if (id < gates(r))
		return r->input_mode == INPUT_SKIP && pseudo_layer < directions(r) ?
			(struct matrix){0, 0} : (struct matrix){r->hidden, layer_input(r, pseudo_layer)};
	if (id < 2 * gates(r))
		return (struct matrix){r->hidden, r->projection};
	return has_projection(r) ? (struct matrix){r->projection, r->hidden} : (struct matrix){0, 0};
}

static bool has_bias(const struct dnn_rnn *r, int id)
{
	switch (r->bias) {
	case BIAS_INPUT:
		return id < gates(r);
	case BIAS_RECURRENT:
		return id >= gates(r) && id < 2 * gates(r);
	}
	return r->bias == BIAS_DOUBLE && id < 2 * gates(r);
}

/* Elements before matrix `id` of a layer. All matrices of all layers come first, layer by layer, then all biases: this order makes the
 * gates of a layer one block, on which PyTorch relies. */
static int64_t matrix_offset(const struct dnn_rnn *r, int pseudo_layer, int id)
{
	int64_t offset = 0;

	for (int layer = 0; layer <= pseudo_layer; layer++)
		for (int i = 0; i < (layer == pseudo_layer ? id : (2 * gates(r) + has_projection(r))); i++) {
			struct matrix m = layer_matrix(r, layer, i);

			offset += m.rows * m.columns;
		}
	return offset;
}

static int pseudo_layers(const struct dnn_rnn *r)
{
	return r->layers * directions(r);
}

static int64_t bias_offset(const struct dnn_rnn *r, int pseudo_layer, int id)
{
	int64_t offset = matrix_offset(r, pseudo_layers(r), 0), per_layer = 0, before = 0;

	for (int i = 0; i < 2 * gates(r); i++) {
		per_layer += has_bias(r, i) ? r->hidden : 0;
		before += i < id && has_bias(r, i) ? r->hidden : 0;
	}
	return offset + per_layer * pseudo_layer + before;
}

static size_t weight_bytes(const struct dnn_rnn *r)
{
	return (size_t)bias_offset(r, pseudo_layers(r), 0) * (size_t)dnn_type_bits(r->type) / 8;
}

DNN(cudnnGetRNNWeightSpaceSize, (struct dnn_handle * h, const struct dnn_rnn *r, size_t *bytes))
{
	DNN_NEEDS(h && r && bytes);
	*bytes = weight_bytes(r);
	return DNN_SUCCESS;
}

/* What a layer does not have is described by no dimensions at a null address. */
static void locate(const struct dnn_rnn *r, const char *space, int64_t offset, struct matrix m, struct dnn_shape *s,
		   void **address)
{
	size_t bytes = (size_t)offset * (size_t)dnn_type_bits(r->type) / 8;

	if (s) {
		*s = (struct dnn_shape){0};
		if (m.rows) {
			*s = (struct dnn_shape){.type = r->type, .dims = 3, .dim = {1, m.rows, m.columns}};
			dnn_pack(s, false);
		}
	}
	if (address)
		*address = m.rows ? (void *)((uintptr_t)space + bytes) : NULL;
}

DNN(cudnnGetRNNWeightParams,
    (struct dnn_handle * h, const struct dnn_rnn *r, int pseudo_layer, size_t bytes, const void *space, int id,
     struct dnn_shape *matrix, void **matrix_address, struct dnn_shape *bias, void **bias_address))
{
	struct matrix none = {0, 0};

	DNN_NEEDS(h && r);
	DNN_REQUIRE(pseudo_layer >= 0 && pseudo_layer < pseudo_layers(r), DNN_BAD_PARAM);
	DNN_REQUIRE(id >= 0 && id < 2 * gates(r) + (r->cell == CELL_LSTM), DNN_BAD_PARAM);
	DNN_REQUIRE(bytes >= weight_bytes(r), DNN_BAD_PARAM);
	locate(r, space, matrix_offset(r, pseudo_layer, id), layer_matrix(r, pseudo_layer, id), matrix, matrix_address);
	locate(r, space, bias_offset(r, pseudo_layer, id), has_bias(r, id) ? (struct matrix){r->hidden, 1} : none, bias,
	       bias_address);
	return DNN_SUCCESS;
}

static size_t element(const struct dnn_rnn *r)
{
	return (size_t)dnn_type_bits(r->type) / 8;
}

static size_t by_cell(const struct dnn_rnn *r, size_t plain, size_t lstm, size_t gru)
{
	return r->cell == CELL_LSTM ? lstm : r->cell == CELL_GRU ? gru : plain;
}

/* One layer's output in one direction: hidden values of every step of every sequence. */
static size_t output(const struct dnn_rnn *r, const struct dnn_rnn_data *x)
{
	return (size_t)x->total * (size_t)r->hidden * element(r);
}

/* How much of a network there is, in bytes: what every term of the workspace is a multiple of. */
struct extent {
	size_t input, output, both, states, step; /* step: one layer's output of one step, in one direction */
};

static struct extent extent(const struct dnn_rnn *r, const struct dnn_rnn_data *x)
{
	size_t step = (size_t)x->batch * (size_t)r->hidden * element(r), one = output(r, x);

	return (struct extent){.input = (size_t)x->total * (size_t)x->width * element(r),
			       .output = one,
			       .both = one * (size_t)directions(r),
			       .states = step * (size_t)pseudo_layers(r),
			       .step = step};
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t aligned(size_t bytes)
{
	return (bytes + RNN_ALIGNMENT - 1) / RNN_ALIGNMENT * RNN_ALIGNMENT;
}

/* The algorithm for small hidden layers does not know bfloat16: PyTorch asks for it, and cuDNN takes the standard one. */
static bool runs_small(const struct dnn_rnn *r)
{
	return r->algorithm == ALGORITHM_SMALL_HIDDEN && r->type != DNN_BFLOAT16;
}

/* cuDNN computes with packed sequences only: copies of input, output, and of the states that come and go (an LSTM has hidden and cell states). */
static size_t packing(const struct dnn_rnn *r, const struct dnn_rnn_data *x, const struct extent *e)
{
	return x->layout == LAYOUT_PACKED ? 0 : e->input + e->both + e->states * by_cell(r, 2, 4, 2);
}

static size_t reversed_states(const struct dnn_rnn *r, const struct extent *e)
{
	return r->direction == BIDIRECTIONAL ? RNN_REVERSED * e->states : 0;
}

static size_t forward_bytes(const struct dnn_rnn *r, const struct dnn_rnn_data *x, const struct extent *e)
{
	size_t states = e->states * by_cell(r, RNN_STATES_PLAIN, RNN_STATES_LSTM, RNN_STATES_GRU);
	size_t bytes = packing(r, x, e) + states + reversed_states(r, e);

	if (runs_small(r))
		bytes += RNN_SMALL_GATES * (size_t)gates(r) * e->output;
	if (r->direction == BIDIRECTIONAL)
		return bytes + e->both * (size_t)gates(r) + RNN_REVERSED * e->both;
	return bytes + smaller(e->output, RNN_GATE_STEPS * e->step) * (size_t)gates(r) +
	       (r->dropout && r->layers > 1 ? e->output : 0);
}

/* What a layer hands to the one below. Layers of one direction run at the same time, each some steps behind the one above, and hand over only these. */
static size_t handed_down(const struct dnn_rnn *r, const struct dnn_rnn_data *x, const struct extent *e)
{
	size_t steps = larger(RNN_WAVE_STEPS, RNN_WAVE_ROWS / (size_t)x->batch);

	if (r->layers == 1)
		return e->both;
	if (r->direction == BIDIRECTIONAL || runs_small(r))
		return 2 * e->both;
	return smaller(e->output, ((size_t)r->layers + 1) * steps * e->step);
}

static size_t backward_bytes(const struct dnn_rnn *r, const struct dnn_rnn_data *x, const struct extent *e)
{
	size_t ways = (size_t)directions(r);
	size_t states = e->states * by_cell(r, RNN_GRADIENT_STATES, RNN_GRADIENT_STATES_LSTM, RNN_GRADIENT_STATES);
	size_t bytes = 2 * packing(r, x, e) + states + reversed_states(r, e);

	if (runs_small(r))
		bytes += e->output * by_cell(r, RNN_SMALL_PLAIN, RNN_SMALL_LSTM, RNN_SMALL_GRU) +
			 (r->direction == BIDIRECTIONAL ? 0 : e->states);
	return bytes + larger(e->input, e->output) * ways * ways + handed_down(r, x, e);
}

/* The size is asked for once, for all passes. */
static size_t work_bytes(const struct dnn_rnn *r, const struct dnn_rnn_data *x)
{
	struct extent e = extent(r, x);
	size_t bytes = (size_t)pseudo_layers(r) * RNN_LAYER_BYTES + RNN_TAIL;

	bytes += (size_t)matrix_offset(r, pseudo_layers(r), 0) * element(r);
	if (x->layout != LAYOUT_PACKED)
		bytes += aligned((size_t)x->batch * RNN_LENGTH_BYTES);
	return bytes + larger(forward_bytes(r, x, &e), backward_bytes(r, x, &e));
}

/* Bits that say what dropout kept: of padding, too. */
static size_t mask_bytes(const struct dnn_rnn *r, const struct dnn_rnn_data *x)
{
	size_t bits = (size_t)x->steps * (size_t)x->batch * (size_t)r->hidden * (size_t)directions(r);

	return r->dropout ? aligned(bits / 8) * (size_t)directions(r) : 0;
}

static size_t reserve_bytes(const struct dnn_rnn *r, const struct dnn_rnn_data *x)
{
	size_t layers = (size_t)r->layers, inner = layers - 1;
	size_t kept = layers * by_cell(r, RNN_RESERVE_PLAIN, RNN_RESERVE_LSTM, RNN_RESERVE_GRU) + inner;

	return aligned(output(r, x) * (size_t)directions(r) * kept) + mask_bytes(r, x) * inner + RNN_TAIL;
}

static int check_data(const struct dnn_rnn *r, const struct dnn_rnn_data *d, int64_t width)
{
	DNN_NEEDS(d);
	DNN_REQUIRE(d->steps > 0 && d->type == r->type, DNN_BAD_PARAM);
	DNN_REQUIRE(width == 0 || d->width == width, DNN_BAD_PARAM);
	return DNN_SUCCESS;
}

DNN(cudnnGetRNNTempSpaceSizes, (struct dnn_handle * h, const struct dnn_rnn *r, int mode, const struct dnn_rnn_data *x,
				size_t *work, size_t *reserve))
{
	int status;

	DNN_NEEDS(h && r);
	DNN_REQUIRE(mode == FORWARD_INFERENCE || mode == FORWARD_TRAINING, DNN_BAD_PARAM);
	status = check_data(r, x, 0);
	if (status)
		return status;
	if (work)
		*work = work_bytes(r, x);
	if (reserve)
		*reserve = mode == FORWARD_TRAINING ? reserve_bytes(r, x) : 0;
	return DNN_SUCCESS;
}

static const char *kernel_name(const struct dnn_rnn *r, int pass)
{
	static const char *const names[3][3] = {
		{"rnn_fprop", "rnn_dgrad", "rnn_wgrad"},
		{"lstm_fprop", "lstm_dgrad", "lstm_wgrad"},
		{"gru_fprop", "gru_dgrad", "gru_wgrad"},
	};

	return names[r->cell == CELL_LSTM ? 1 : r->cell == CELL_GRU ? 2 : 0][pass];
}

/* Everything that a pass has: input, output and the three spaces. */
struct spaces {
	const void *weights, *work, *reserve;
	size_t weights_bytes, work_bytes, reserve_bytes;
};

static int run(struct dnn_handle *h, const struct dnn_rnn *r, int pass, bool training, const struct dnn_rnn_data *x,
	       const struct dnn_rnn_data *y, const struct spaces *s)
{
	int status;

	DNN_NEEDS(h && r);
	status = check_data(r, x, r->input);
	if (status == DNN_SUCCESS)
		status = check_data(r, y, (int64_t)r->projection * directions(r));
	if (status)
		return status;
	DNN_REQUIRE(x->steps == y->steps && x->batch == y->batch && x->layout == y->layout, DNN_BAD_PARAM);
	DNN_REQUIRE(s->weights && s->weights_bytes >= weight_bytes(r), DNN_BAD_PARAM);
	DNN_REQUIRE(s->work && s->work_bytes >= work_bytes(r, x), DNN_BAD_PARAM);
	DNN_REQUIRE(!training || (s->reserve && s->reserve_bytes >= reserve_bytes(r, x)), DNN_BAD_PARAM);
	return dnn_launch(h, kernel_name(r, pass), r->type, NULL);
}

DNN(cudnnRNNForward,
    (struct dnn_handle * h, const struct dnn_rnn *r, int mode, const int *lengths, const struct dnn_rnn_data *x,
     const void *x_data, const struct dnn_rnn_data *y, void *y_data, const struct dnn_shape *state, const void *hx,
     void *hy, const struct dnn_shape *cell, const void *cx, void *cy, size_t weights_bytes, const void *weights,
     size_t work_size, void *work, size_t reserve_size, void *reserve))
{
	struct spaces s = {weights, work, reserve, weights_bytes, work_size, reserve_size};

	/* since 8.9.1 the lengths may be left out, because the data descriptor has them, too */
	(void)lengths, (void)hx, (void)hy, (void)cx, (void)cy, (void)cell;
	DNN_NEEDS(x_data && y_data && state);
	DNN_REQUIRE(mode == FORWARD_INFERENCE || mode == FORWARD_TRAINING, DNN_BAD_PARAM);
	return run(h, r, 0, mode == FORWARD_TRAINING, x, y, &s);
}

DNN(cudnnRNNBackwardData_v8,
    (struct dnn_handle * h, const struct dnn_rnn *r, const int *lengths, const struct dnn_rnn_data *y,
     const void *y_data, const void *dy, const struct dnn_rnn_data *x, void *dx, const struct dnn_shape *state,
     const void *hx, const void *dhy, void *dhx, const struct dnn_shape *cell, const void *cx, const void *dcy, void *dcx,
     size_t weights_bytes, const void *weights, size_t work_size, void *work, size_t reserve_size, void *reserve))
{
	struct spaces s = {weights, work, reserve, weights_bytes, work_size, reserve_size};

	(void)lengths, (void)hx, (void)dhy, (void)dhx, (void)cell, (void)cx, (void)dcy, (void)dcx;
	DNN_NEEDS(y_data && dy && dx && state);
	return run(h, r, 1, true, x, y, &s);
}

/* cudnnWgradMode_t: only adding to what is there is supported, as documented. */
enum { WGRAD_ADD, WGRAD_SET };

DNN(cudnnRNNBackwardWeights_v8, (struct dnn_handle * h, const struct dnn_rnn *r, int add, const int *lengths,
				 const struct dnn_rnn_data *x, const void *x_data, const struct dnn_shape *state,
				 const void *hx, const struct dnn_rnn_data *y, const void *y_data, size_t weights_bytes,
				 void *weights, size_t work_size, void *work, size_t reserve_size, void *reserve))
{
	struct spaces s = {weights, work, reserve, weights_bytes, work_size, reserve_size};

	(void)lengths, (void)hx;
	DNN_NEEDS(x_data && y_data && state);
	DNN_REQUIRE(add == WGRAD_ADD || add == WGRAD_SET, DNN_BAD_PARAM);
	DNN_REQUIRE(add == WGRAD_ADD, DNN_NOT_SUPPORTED);
	return run(h, r, 2, true, x, y, &s);
}
