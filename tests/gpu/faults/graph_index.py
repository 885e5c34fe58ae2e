# SPDX-License-Identifier: Apache-2.0
# A CUDA graph: captured with good indices, replayed with bad ones.
# expect: cause=index-out-of-range certainty=certain,likely code=710
# needs: torch
import torch

x = torch.randn(1000, 64, device="cuda")
index = torch.zeros(32, dtype=torch.long, device="cuda")


def pick():
    rows = x.index_select(0, index)  # <- here
    return (rows * 2).sum()


side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        pick()
torch.cuda.current_stream().wait_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    total = pick()

batches = [torch.randint(0, 1000, (32,), device="cuda") for _ in range(4)]
batches[2][11] = 1000
for batch in batches:
    index.copy_(batch)
    graph.replay()  # <- replay
print(total.item())
