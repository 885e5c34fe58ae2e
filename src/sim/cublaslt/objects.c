/* SPDX-License-Identifier: Apache-2.0
 * cuBLASLt's handles, and its objects with attributes.
 */
#include "sim/cublaslt/cublaslt.h"

#include <stdlib.h>
#include <string.h>

struct attribute {
	int number;
	size_t offset, bytes;
};

#define ATTRIBUTE_OF(object, number, field) {number, offsetof(struct object, field), sizeof(((struct object *)NULL)->field)},

static const struct attribute desc_attributes[] = {
#define LT_DESC(number, type, field) ATTRIBUTE_OF(lt_desc, number, field)
#include "sim/cublaslt/lt_attributes.def"
	{.number = -1},
};

static const struct attribute layout_attributes[] = {
#define LT_LAYOUT(number, type, field) ATTRIBUTE_OF(lt_layout, number, field)
#include "sim/cublaslt/lt_attributes.def"
	{.number = -1},
};

static const struct attribute preference_attributes[] = {
#define LT_PREFERENCE(number, type, field) ATTRIBUTE_OF(lt_preference, number, field)
#include "sim/cublaslt/lt_attributes.def"
	{.number = -1},
};

static const struct attribute algo_attributes[] = {
#define LT_ALGO(number, type, field) ATTRIBUTE_OF(lt_algo, number, field)
#include "sim/cublaslt/lt_attributes.def"
	{.number = -1},
};

static const struct attribute *find_attribute(const struct attribute *list, int number)
{
	for (; list->number >= 0; list++) {
		if (list->number == number)
			return list;
	}
	return NULL;
}

static int set_attribute(void *object, const struct attribute *list, int number, const void *value, size_t bytes)
{
	const struct attribute *a = find_attribute(list, number);

	if (!object || !value || !a || a->bytes != bytes)
		return BLAS_INVALID_VALUE;
	memcpy((char *)object + a->offset, value, bytes);
	return BLAS_SUCCESS;
}

/* With no bytes asked for, only the size is returned. */
static int get_attribute(const void *object, const struct attribute *list, int number, void *value, size_t bytes,
			 size_t *written)
{
	const struct attribute *a = find_attribute(list, number);

	if (!object || !a || (bytes ? !value || a->bytes != bytes : !written))
		return BLAS_INVALID_VALUE;
	if (bytes)
		memcpy(value, (const char *)object + a->offset, bytes);
	if (written)
		*written = a->bytes;
	return BLAS_SUCCESS;
}

#define ATTRIBUTES(name, object, list)                                                                                       \
	STANDIN(int, cublasLt##name##SetAttribute, (struct object * o, int number, const void *value, size_t bytes)) \
	{                                                                                                                    \
		return set_attribute(o, list, number, value, bytes);                                                         \
	}                                                                                                                    \
	STANDIN(int, cublasLt##name##GetAttribute, \
		(const struct object *o, int number, void *value, size_t bytes, size_t *written)) \
	{                                                                                                                    \
		return get_attribute(o, list, number, value, bytes, written);                                                \
	}

ATTRIBUTES(MatmulDesc, lt_desc, desc_attributes)
ATTRIBUTES(MatrixLayout, lt_layout, layout_attributes)
ATTRIBUTES(MatmulPreference, lt_preference, preference_attributes)
ATTRIBUTES(MatmulAlgoConfig, lt_algo, algo_attributes)

/* Stores a copy of `first` on the heap. */
static int new_object(void **object, const void *first, size_t bytes)
{
	if (!object)
		return BLAS_INVALID_VALUE;
	*object = malloc(bytes);
	if (!*object)
		return BLAS_ALLOC_FAILED;
	memcpy(*object, first, bytes);
	return BLAS_SUCCESS;
}

static int free_object(void *object)
{
	free(object);
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtMatmulDescCreate, (void **desc, int compute, int scale))
{
	struct lt_desc first = {
		.compute = compute, .scale = scale, .fill_mode = 2, .epilogue = 1, .aux_type = -1, .bias_type = -1};

	return new_object(desc, &first, sizeof(first));
}

STANDIN(int, cublasLtMatmulDescDestroy, (void *desc))
{
	return free_object(desc);
}

STANDIN(int, cublasLtMatrixLayoutCreate, (void **layout, int type, uint64_t rows, uint64_t cols, int64_t ld))
{
	struct lt_layout first = {.type = (uint32_t)type, .rows = rows, .cols = cols, .ld = ld, .batch = 1};

	return new_object(layout, &first, sizeof(first));
}

STANDIN(int, cublasLtMatrixLayoutDestroy, (void *layout))
{
	return free_object(layout);
}

STANDIN(int, cublasLtMatmulPreferenceCreate, (void **preference))
{
	struct lt_preference first = {
		.reductions = ~0U, .align_a = 256, .align_b = 256, .align_c = 256, .align_d = 256, .implementations = ~0ULL};

	return new_object(preference, &first, sizeof(first));
}

STANDIN(int, cublasLtMatmulPreferenceDestroy, (void *preference))
{
	return free_object(preference);
}

/* It takes no device memory of its own: workspaces are the caller's. */
STANDIN(int, cublasLtCreate, (struct blas_head * *handle))
{
	struct blas_head *h;

	if (!handle)
		return BLAS_INVALID_VALUE;
	*handle = NULL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return BLAS_ALLOC_FAILED;
	if (blas_head_init(h)) {
		free(h);
		return BLAS_NOT_INITIALIZED;
	}
	*handle = h;
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtDestroy, (struct blas_head * handle))
{
	if (!handle)
		return BLAS_NOT_INITIALIZED;
	free(handle);
	return BLAS_SUCCESS;
}

STANDIN(size_t, cublasLtGetVersion, (void))
{
	return (size_t)blas_version(SONAME_MAJOR);
}

STANDIN(size_t, cublasLtGetCudartVersion, (void))
{
	return SONAME_MAJOR * 1000;
}

STANDIN(int, cublasLtGetProperty, (int property, int *value))
{
	if (!value || property < PROPERTY_MAJOR || property > PROPERTY_PATCH)
		return BLAS_INVALID_VALUE;
	*value = blas_version_part(SONAME_MAJOR, property);
	return BLAS_SUCCESS;
}

STANDIN(const char *, cublasLtGetStatusName, (int status))
{
	return blas_status_name(status);
}

STANDIN(const char *, cublasLtGetStatusString, (int status))
{
	return blas_status_text(status);
}

/* Nothing is logged. */
STANDIN(int, cublasLtLoggerSetLevel, (__attribute__((unused)) int level))
{
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtLoggerSetMask, (__attribute__((unused)) int mask))
{
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtLoggerForceDisable, (void))
{
	return BLAS_SUCCESS;
}
