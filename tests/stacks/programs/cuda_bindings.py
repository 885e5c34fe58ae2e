# SPDX-License-Identifier: Apache-2.0
"""The driver's functions work; the runtime inside the package says that it cannot start, and the program goes on."""
from cuda.bindings import driver, runtime

assert driver.cuInit(0)[0] == driver.CUresult.CUDA_SUCCESS
assert driver.cuDeviceGetCount() == (driver.CUresult.CUDA_SUCCESS, 1)
print("generated", runtime.cudaGetDeviceCount()[0])
