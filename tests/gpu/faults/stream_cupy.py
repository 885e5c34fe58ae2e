# SPDX-License-Identifier: Apache-2.0
# A CuPy kernel on a stream of its own, out of bounds, between good work on two other streams.
# expect: cause=illegal-access-out-of-bounds certainty=certain exit=1 code=700 kernel=fill
# needs: torch cupy
import cupy
import numpy as np
import torch
from helpers import kernels

fill = kernels.get("fill")
streams = [torch.cuda.Stream() for _ in range(3)]
buffers = [torch.zeros(256, device="cuda") for _ in streams]
torch.cuda.synchronize()


def launch(number, offset):
    with cupy.cuda.ExternalStream(streams[number].cuda_stream):
        fill((1,), (256,), (buffers[number].data_ptr(), np.int64(offset), np.float32(number)))  # <- here


for number in range(3):
    launch(number, 0)
torch.cuda.synchronize()
for number in range(3):
    launch(number, 1 << 37 if number == 1 else 0)
torch.cuda.synchronize()
print([b[0].item() for b in buffers])
