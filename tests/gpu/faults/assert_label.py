# SPDX-License-Identifier: Apache-2.0
# A label equal to the number of classes, in the third batch.
# expect: cause=label-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch
import torch.nn.functional as F

model = torch.nn.Linear(32, 10).cuda()


def loss_of(x, labels):
    return F.cross_entropy(model(x), labels)  # <- here


losses = []
for batch in range(5):
    x = torch.randn(64, 32, device="cuda")
    labels = torch.randint(0, 10, (64,), device="cuda")
    if batch == 2:
        labels[17] = 10
    losses.append(loss_of(x, labels))
print(torch.stack(losses).mean().item())
