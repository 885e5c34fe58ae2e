# SPDX-License-Identifier: Apache-2.0
# A graph that is captured and replayed as it should be.
# expect-silent: exit=0
# needs: torch
# same-output
import torch

x = torch.ones(4, device="cuda")
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        y = x * 2 + 1
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = x * 2 + 1
for value in (1.0, 5.0):
    x.fill_(value)
    graph.replay()
    print(y.sum().item())
