# SPDX-License-Identifier: Apache-2.0
# What the host wrote can be read back, and what was filled: masks, indices, seeds. What a kernel would compute is zero.
# expect-silent: exit=0
# needs: torch
import torch

index = torch.tensor([5, 3, 1]).cuda()
assert index.tolist() == [5, 3, 1]
assert (index + 1).sum().item() == 0
filled = torch.zeros(1000, device="cuda")
filled[:3].copy_(torch.tensor([1.0, 2.0, 3.0]))
assert filled[:3].cpu().tolist() == [1.0, 2.0, 3.0]
assert torch.ones(3, dtype=torch.bool, device="cuda").tolist() == [True] * 3
assert torch.full((2,), 1.5, dtype=torch.bfloat16, device="cuda").tolist() == [1.5, 1.5]
assert torch.full((2,), -7, device="cuda").tolist() == [-7, -7]
assert torch.full((), 1 + 2j, dtype=torch.complex128, device="cuda").item() == 1 + 2j
graph, x = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
with torch.cuda.graph(graph):
    x.fill_(4)
graph.replay()
assert x.tolist() == [4.0] * 8
