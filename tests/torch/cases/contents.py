# SPDX-License-Identifier: Apache-2.0
# What the host wrote can be read back, and what was filled or counted: masks, indices, seeds, positions. What a kernel would compute is zero.
# expect-silent: exit=0
# needs: torch
import torch

index = torch.tensor([5, 3, 1]).cuda()
assert index.tolist() == [5, 3, 1]
assert (index + 1).sum().item() == 12 and (index * 2).sum().item() == 0
filled = torch.zeros(1000, device="cuda")
filled[:3].copy_(torch.tensor([1.0, 2.0, 3.0]))
assert filled[:3].cpu().tolist() == [1.0, 2.0, 3.0]
assert torch.ones(3, dtype=torch.bool, device="cuda").tolist() == [True] * 3
assert torch.full((2,), 1.5, dtype=torch.bfloat16, device="cuda").tolist() == [1.5, 1.5]
assert torch.full((2,), -7, device="cuda").tolist() == [-7, -7]
assert torch.full((), 1 + 2j, dtype=torch.complex128, device="cuda").item() == 1 + 2j
for kind in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64):
    for start, end, step in ((7, 10, 1), (-5 if kind.is_signed else 50, 100, 7), (0, 60000 if kind.itemsize > 2 else 100, 1)):
        same = torch.arange(start, end, step, dtype=kind)
        assert torch.equal(torch.arange(start, end, step, device="cuda", dtype=kind).cpu(), same), (kind, start, end, step)
tiny = (torch.arange(100, dtype=torch.float32) * 1e-7).half()
assert torch.equal(torch.arange(0, 1e-5, 1e-7, device="cuda", dtype=torch.float16).cpu()[:99], tiny[:99])
graph, x = torch.cuda.CUDAGraph(), torch.zeros(8, device="cuda")
with torch.cuda.graph(graph):
    x.fill_(4)
graph.replay()
assert x.tolist() == [4.0] * 8

# what a tensor was before is not what kernels make of the next one in its place
for _ in range(8):
    number = torch.tensor([5], device="cuda")
    before = torch.full((512,), 255, dtype=torch.uint8, device="cuda")
    del before
    assert not bool(number == 3), "the value of another tensor"
