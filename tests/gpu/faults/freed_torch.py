# SPDX-License-Identifier: Apache-2.0
# A pointer that is kept longer than its tensor, whose segment has been given back.
# expect: cause=illegal-access-use-after-free certainty=certain exit=1 code=700 kernel=fill
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")


class Buffer:
    def __init__(self, n):
        self.data = torch.zeros(n, device="cuda")
        self.pointer = self.data.data_ptr()

    def release(self):
        self.data = None
        torch.cuda.empty_cache()


def use(buffer):
    fill((8,), (256,), (buffer.pointer, np.int64(0), np.float32(1)))  # <- here


x = torch.ones(100, device="cuda")
buffer = Buffer(64 << 20)
use(buffer)
print(buffer.data[:2048].sum().item())
buffer.release()
use(buffer)
x = x * 2
print(x.sum().item())
