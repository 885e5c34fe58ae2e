/* SPDX-License-Identifier: Apache-2.0
 * What PyTorch says about itself, in the files beside the library that a process loaded.
 */
#ifndef CUWHY_TORCH_VERSION_H
#define CUWHY_TORCH_VERSION_H

#include <stddef.h>

/* What follows `key` in a file, up to one of `ends`; "" if there is none. */
void file_value(const char *path, const char *key, const char *ends, char *out, size_t size);

/* Of torch/version.py. */
#define TORCH_VERSION_KEY "__version__ = '"
#define TORCH_CUDA_KEY	  "\ncuda: Optional[str] = '"
void torch_value(const char *torch_path, const char *key, char *out, size_t size);

#endif
