# SPDX-License-Identifier: Apache-2.0
# A kernel with an assert of its own.
# expect: cause=kernel-assert certainty=certain exit=1 code=710 kernel=ages
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

ages = kernels.get("ages")


def compute(born, year):
    age = torch.empty_like(born)
    ages((1,), (born.numel(),), (born.data_ptr(), age.data_ptr(), np.int32(year)))  # <- here
    return age


born = torch.arange(1950, 2014, dtype=torch.int32, device="cuda")
print(compute(born, 2020).sum().item())
wrong = compute(born, 2000)
print((wrong + 1).sum().item())
