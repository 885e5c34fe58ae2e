# SPDX-License-Identifier: Apache-2.0
# The same with gather, whose backward asserts.
# expect: cause=index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch


def forward(x, index):
    picked = torch.gather(x, 1, index)  # <- here
    return (picked * picked).mean()


x = torch.randn(8, 20, device="cuda", requires_grad=True)
index = torch.randint(0, 20, (8, 5), device="cuda")
forward(x, index).backward()
print(x.grad.isfinite().all().item())
loss = forward(x, index)
index.data.fill_(20)
loss.backward()  # <- backward
print(x.grad.isfinite().all().item())
