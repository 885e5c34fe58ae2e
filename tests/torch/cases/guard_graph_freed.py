# SPDX-License-Identifier: Apache-2.0
# A graph runs after one of its inputs has gone.
# expect: cause=illegal-access-use-after-free
# options: --guard
# needs: torch
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "gpu"))
from guard_programs import write  # noqa: E402

x = torch.zeros(4000, device="cuda")
graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.graph(graph, stream=stream):
    y = torch.ones(4000, device="cuda") * 2
    write(x.data_ptr(), 0, 4)
graph.replay()
torch.cuda.synchronize()
del x
for _ in range(13):
    torch.ones(300, device="cuda")
graph.replay()
torch.cuda.synchronize()
