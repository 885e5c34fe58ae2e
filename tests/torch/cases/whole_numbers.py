# SPDX-License-Identifier: Apache-2.0
# Whole numbers that the host wrote are joined, added up and compared as on a real GPU; other results are unknown, and named.
# expect-silent: exit=0
# needs: torch
import torch

sizes = [torch.tensor([n], device="cuda") for n in (5, 700, 0, 123456789012)]
joined = torch.cat(sizes)
assert joined.tolist() == [5, 700, 0, 123456789012], joined
assert joined.sum().item() == 123456789717 and joined[:2].sum().item() == 705
assert (joined[0] + joined[1]).item() == 705 and (joined + 2).tolist() == [7, 702, 2, 123456789014]
assert torch.add(joined[0], joined[1], alpha=-3).item() == -2095
assert joined.max().item() == 123456789012 and joined.min().item() == 0 and joined[:2].min().item() == 5
assert max(sizes).item() == 123456789012 and min(sizes).item() == 0
for compare in (torch.ge, torch.gt, torch.le, torch.lt):
    a, b = torch.tensor([1, 2, 3]), torch.tensor([3, 2, 1])
    assert compare(a.cuda(), b.cuda()).tolist() == compare(a, b).tolist(), compare

texts = [torch.tensor(list(text), dtype=torch.uint8).cuda() for text in (b"several ", b"pieces of ", b"", b"bytes")]
assert bytes(torch.cat(texts).tolist()) == b"several pieces of bytes"
many = [torch.full((2,), n, device="cuda") for n in range(300)]
assert torch.cat(many).tolist() == [n for n in range(300) for _ in range(2)]
counter = torch.zeros((), dtype=torch.long, device="cuda")
for _ in range(10):
    counter += 1
assert counter.item() == 10

# steps between the elements, several dimensions, other types, unknown inputs: no number is made up
table = torch.arange(12, device="cuda").view(3, 4)
assert table[:, 1].sum().item() in (0, 15)
assert torch.cat((table, table), 1).shape == (3, 8)
assert torch.cat((joined, torch.randint(9, (2,), device="cuda"))).shape == (6,)
assert (joined + torch.randint(9, (4,), device="cuda")).shape == (4,)
