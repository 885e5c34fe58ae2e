# SPDX-License-Identifier: Apache-2.0
# A graph and its result go while it still runs in another stream than the one of its capture: PyTorch frees its pool only when all work has ended,
# and so does guard mode.
# expect: cause=none exit=0
# options: --guard
# needs: torch
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "gpu"))
from guard_programs import busy  # noqa: E402

x, stream = torch.randn(64, 64, device="cuda"), torch.cuda.Stream()
for kind in ("clone", "kernel"):
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        y = x.clone() if kind == "clone" else x * 2
    torch.cuda.synchronize()
    busy(400)
    graph.replay()
    del graph, y
    with torch.cuda.stream(stream):
        z = [torch.ones(300 + n, device="cuda") for n in range(200)]
        del z
    torch.cuda.synchronize()
print("ok")
