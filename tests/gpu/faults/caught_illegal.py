# SPDX-License-Identifier: Apache-2.0
# An illegal access that the program catches and survives: it ends with 0, so it is only noted.
# expect-note: cause=illegal-access-out-of-bounds exit=0 code=700
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")


def attempt(name, function):
    try:
        print(name, function())
    except RuntimeError as error:
        print(name, "raised", "illegal memory access" in str(error))


x = torch.zeros(256, device="cuda")
attempt("before", lambda: x.sum().item())
fill((1,), (256,), (x.data_ptr(), np.int64(1 << 40), np.float32(1)))  # <- note
attempt("item", lambda: x.sum().item())
attempt("synchronize", torch.cuda.synchronize)
attempt("ones", lambda: torch.ones(4, device="cuda").sum().item())
print("on the CPU", torch.ones(4).sum().item())
