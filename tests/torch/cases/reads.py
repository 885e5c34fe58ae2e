# SPDX-License-Identifier: Apache-2.0
# Whoever reads a value that only a real GPU can compute gets zeros, and the line is named, once. What the host wrote is not.
# expect-silent: exit=0
# needs: torch
import torch
import torch.nn.functional as F


def report(loss):
    return loss.item()  # <- reads


model = torch.nn.Linear(64, 10).cuda()
optimizer = torch.optim.AdamW(model.parameters())
x, y = torch.randn(8, 64).cuda(), torch.randint(0, 10, (8,)).cuda()
for step in range(20):
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    assert report(loss) == 0
assert torch.tensor([5, 3, 1]).cuda().tolist() == [5, 3, 1]
# PyTorch gives the new tensor the memory of the last one, and fills it with a kernel: what was there before is not read.
assert torch.linspace(7, 10, 3, device="cuda").tolist() == [0, 0, 0]  # <- reads
assert len((x > 0).nonzero()) == 0  # <- reads
if (x > 0).any():  # <- reads
    raise SystemExit("a comparison was computed")
assert x[x > 0].numel() == 0  # <- reads
model.weight.detach().cpu()  # <- reads, <- perhaps
y.tolist()  # <- reads, <- perhaps
torch.zeros(1 << 20).cuda().cpu()  # <- reads
