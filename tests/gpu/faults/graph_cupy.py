# SPDX-License-Identifier: Apache-2.0
# A CuPy kernel in a graph; the pointer table that it reads is damaged between two replays.
# expect: cause=illegal-access-out-of-bounds code=700 kernel=lookup
# needs: torch cupy
import cupy
import numpy as np
import torch
from helpers import kernels

lookup = kernels.get("lookup")
table, out = torch.randn(1000, device="cuda"), torch.empty(64, device="cuda")
index = torch.arange(64, device="cuda")


def gather():
    with cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
        lookup((1,), (64,), (table.data_ptr(), index.data_ptr(), out.data_ptr(), np.int32(64)))  # <- here


gather()
torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    gather()
    result = out * 2


def run(steps):
    for _ in range(steps):
        graph.replay()  # <- replay


run(3)
print(torch.isfinite(result).all().item())
index[5] = 1 << 42
run(3)
print(torch.isfinite(result).all().item())
