# SPDX-License-Identifier: Apache-2.0
# Nothing is wrong with CUDA: the program ends with a status of its own.
# expect-silent: exit=3
# needs: torch cupy
import sys

import numpy as np
import torch
from helpers import kernels

x = torch.zeros(256, device="cuda")
kernels.get("fill")((1,), (256,), (x.data_ptr(), np.int64(0), np.float32(2)))
print(x.sum().item())
sys.exit(3)
