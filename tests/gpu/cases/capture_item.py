# SPDX-License-Identifier: Apache-2.0
# .item() waits for the GPU, which a capture cannot.
# expect: cause=graph-capture-illegal-op certainty=certain,likely exit=1
# needs: torch
import torch


def step(x):
    y = x * 2
    if y.sum().item() > 3:  # <- here
        y = y + 1
    return y


x = torch.ones(4, device="cuda")
step(x)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    out = step(x)
graph.replay()
