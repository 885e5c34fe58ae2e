# SPDX-License-Identifier: Apache-2.0
# The card is full when cuBLAS wants its first memory: PyTorch reports a cuBLAS status, or plain lack of memory.
# expect: cause=oom-masked-as-library-error|oom-capacity|oom-other-library certainty=certain,likely exit=1
# needs: torch cupy
# alone
import cupy
import torch

x = torch.randn(64, 64, device="cuda")
torch.cuda.synchronize()
pieces, size = [], 1 << 30
while size >= 1 << 20:
    try:
        pieces.append(cupy.cuda.runtime.malloc(size))  # <- here
    except cupy.cuda.runtime.CUDARuntimeError:
        size //= 2
y = x @ x  # <- here
print(y.sum().item())
