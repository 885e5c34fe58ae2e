# SPDX-License-Identifier: Apache-2.0
# What was allocated during a capture is the graph's, freed or not: a kernel of the graph that leaves it is no use after free.
# expect: cause=illegal-access-out-of-bounds
# options: --guard
# needs: torch
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "gpu"))
from guard_programs import write  # noqa: E402

graph, stream, where = torch.cuda.CUDAGraph(), torch.cuda.Stream(), torch.zeros(1, device="cuda")
with torch.cuda.graph(graph, stream=stream):
    y = torch.ones(4000, device="cuda")
    write(y.data_ptr(), 4000, 4)
    y = y * 2
torch.cuda.synchronize()
del y
for _ in range(13):
    torch.ones(300, device="cuda")
graph.replay()
torch.cuda.synchronize()
