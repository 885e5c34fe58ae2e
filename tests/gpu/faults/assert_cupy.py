# SPDX-License-Identifier: Apache-2.0
# A kernel with an assert of its own.
# expect: cause=kernel-assert certainty=certain exit=1 code=710 kernel=ages
# needs: torch cupy
import cupy
import numpy as np
import torch

ages = cupy.RawKernel(r"""
extern "C" __global__ void ages(const int *born, int *age, int year)
{
	age[threadIdx.x] = year - born[threadIdx.x];
	assert(born[threadIdx.x] <= year);
}
""", "ages")


def compute(born, year):
    age = torch.empty_like(born)
    ages((1,), (born.numel(),), (born.data_ptr(), age.data_ptr(), np.int32(year)))  # <- here
    return age


born = torch.arange(1950, 2014, dtype=torch.int32, device="cuda")
print(compute(born, 2020).sum().item())
wrong = compute(born, 2000)
print((wrong + 1).sum().item())
