# SPDX-License-Identifier: Apache-2.0
# A compiled function that works: autotuning and probing inside are nobody's business.
# expect-silent: exit=0
# needs: torch triton
# same-output
# timeout: 180
import torch


@torch.compile
def f(x, y):
    return (x @ y).relu().softmax(-1).sum()


x = torch.ones(128, 128, device="cuda", requires_grad=True)
loss = f(x, x)
loss.backward()
print(round(loss.item(), 3), x.grad.shape)
