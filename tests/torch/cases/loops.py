# SPDX-License-Identifier: Apache-2.0
# Loops that end by a truth value of the GPU end: where the program itself says so, else after a thousand equal answers.
# expect-silent: exit=0
# needs: torch
import torch


def steps_until(length, batch):
    """As transformers' generate() does it: the limit is known, what it is combined with is not."""
    unfinished, tokens = torch.ones(batch, dtype=torch.long, device="cuda"), torch.zeros(batch, dtype=torch.long, device="cuda")
    for step in range(1, 5000):
        mask = torch.ones(batch, dtype=torch.bool, device="cuda")
        tokens = torch.where(mask, tokens + 1, tokens)
        done = torch.full((batch,), False, device="cuda", dtype=torch.bool) | (tokens == 7)
        done = done | torch.full((batch,), step >= length, device="cuda", dtype=torch.bool)
        unfinished = unfinished & ~done
        if unfinished.max() == 0:  # <- reads
            return step
    return None


assert [steps_until(length, batch) for length in (64, 20) for batch in (8, 1)] == [64, 64, 20, 20]

x, rounds = torch.rand(100, device="cuda"), 0
while not (x.sum() < 0.1).item():  # <- reads
    x, rounds = x * 0.5, rounds + 1
assert 1000 <= rounds <= 1001, rounds
