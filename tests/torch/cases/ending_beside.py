# SPDX-License-Identifier: Apache-2.0
# Another library runs out of memory beside PyTorch, and the program's own code raises for the status that it got: that is no try of PyTorch's.
# expect: cause=oom-request-too-large certainty=likely exit=1
# needs: torch
import ctypes

import torch

torch.ones(1, device="cuda")


def reserve(size):
    address = ctypes.c_uint64()
    status = ctypes.CDLL("libcuda.so.1").cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))  # <- here
    if status:
        raise RuntimeError(f"no workspace: {status}")
    return address.value


reserve(1 << 40)
