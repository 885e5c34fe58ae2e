# SPDX-License-Identifier: Apache-2.0
# Checks that raise an exception get the answer with which they do not, however often they ask; other questions get False, and then True.
# expect-silent: exit=0
# needs: torch
import torch

x = torch.rand(100, device="cuda")
for step in range(1500):
    y = x * 2
    if torch.isnan(y).any():  # <- reads
        raise RuntimeError("not a number in step %d of %d: %s" % (step, 1500, y.shape))
    if not torch.isfinite(y).all():  # <- reads
        raise RuntimeError("not finite")
    assert (y >= 0).all(), "negative"  # <- reads
    assert not (y < 0).any().item()  # <- reads
    if y.sum() > 0 and not (y == y).all():  # <- reads
        raise ValueError("not equal")
    if (y > 9).any() or (y < -9).any():  # <- reads
        raise ValueError("out of range")

policy = torch.distributions.Categorical(logits=torch.randn(4, 6, device="cuda"))  # <- reads
assert policy.log_prob(policy.sample()).shape == (4,)  # <- reads
normal = torch.distributions.Normal(torch.zeros(3, device="cuda"), torch.rand(3, device="cuda"))  # <- reads
assert normal.rsample().shape == (3,)

rounds = 0
while not (x.sum() < 0.1).item():  # <- reads
    x, rounds = x * 0.5, rounds + 1
assert 1000 <= rounds <= 1001, rounds
