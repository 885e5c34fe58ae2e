/* SPDX-License-Identifier: Apache-2.0
 * The tables of a bundle, private to its files.
 */
#ifndef CUWHY_BUNDLE_PRIV_H
#define CUWHY_BUNDLE_PRIV_H

#include "base/fields.h"

extern const struct fields bundle_envs;		/* struct pyenvs */
extern const struct fields bundle_process;	/* struct py_process */
extern const struct fields bundle_nvml;		/* struct gpu_usage */
extern const struct fields bundle_cuda;		/* struct cuda_answer */

#endif
