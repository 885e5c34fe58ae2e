# SPDX-License-Identifier: Apache-2.0
# The driver's own pool as PyTorch's allocator: no blocks are reported, the driver's allocations stand in.
# expect: cause=oom-growth|oom-capacity exit=1
# env: PYTORCH_CUDA_ALLOC_CONF=backend:cudaMallocAsync
# needs: torch
# alone
import torch

kept = []
with torch.no_grad():
    for step in range(100000):
        kept.append(torch.randn(256 << 20, device="cuda"))  # <- here
