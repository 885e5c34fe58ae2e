# SPDX-License-Identifier: Apache-2.0
# Old PTX is compiled by the driver, and looking for a function that is not there is no failure.
# expect-silent: exit=0
# needs: torch
# same-output
import ctypes

import torch
from helpers.kernels import load

touch = load("7.0")
touch(grid=(1, 1, 1), block=(32, 1, 1), args=[torch.zeros(4, device="cuda"), 4])
found = ctypes.c_void_p()
cuda = ctypes.CDLL("libcuda.so.1")
print(cuda.cuModuleGetFunction(ctypes.byref(found), touch.module, b"not_there"))
torch.cuda.synchronize()
