# SPDX-License-Identifier: Apache-2.0
# The states of bitsandbytes' 8-bit optimizers: two bytes a weight and two scales a block of 256; paged ones are not in the GPU's memory.
# expect-silent: exit=0
# needs: torch bitsandbytes
import bitsandbytes
import torch

BLOCK, QUANTIZED, PAGED = 256, 4096, 100000     # weights: of a scale, of the smallest tensor that has 8-bit states, and paged ones
TABLES = 2 * 256 * 4                            # which number each of the 256 bytes stands for, once for all tensors


def states_of(count, paged):
    if count < QUANTIZED:
        return 2 * 4 * count
    scales = 2 * 4 * ((count + BLOCK - 1) // BLOCK)
    return scales if paged and count >= PAGED else 2 * count + scales


def requested():
    return torch.cuda.memory_stats()["requested_bytes.all.current"]


for kind in ("Adam8bit", "AdamW8bit", "PagedAdam8bit", "PagedAdamW8bit"):
    model = torch.nn.Sequential(torch.nn.Linear(1000, 4096), torch.nn.GELU(), torch.nn.Linear(4096, 1000)).cuda()
    optimizer = getattr(bitsandbytes.optim, kind)(model.parameters(), lr=1e-4)
    for step in range(3):
        model(torch.randn(64, 1000, device="cuda")).square().mean().backward()
        before = requested()
        optimizer.step()
        if step == 0:
            taken, due = requested() - before, TABLES + sum(states_of(p.numel(), "Paged" in kind) for p in model.parameters())
            assert taken == due, (kind, taken, due)
        optimizer.zero_grad()
    torch.cuda.synchronize()
