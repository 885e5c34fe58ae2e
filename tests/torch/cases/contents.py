# SPDX-License-Identifier: Apache-2.0
# What the host wrote can be read back: masks, indices, seeds. What a kernel would compute is zero.
# expect-silent: exit=0
# needs: torch
import torch

index = torch.tensor([5, 3, 1]).cuda()
assert index.tolist() == [5, 3, 1]
assert (index + 1).sum().item() == 0
filled = torch.zeros(1000, device="cuda")
filled[:3].copy_(torch.tensor([1.0, 2.0, 3.0]))
assert filled[:3].cpu().tolist() == [1.0, 2.0, 3.0]
graph, x = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
with torch.cuda.graph(graph):
    x += 1
graph.replay()
torch.cuda.synchronize()
