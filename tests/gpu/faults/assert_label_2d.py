# SPDX-License-Identifier: Apache-2.0
# Segmentation: a class map with the "ignore" value 255 that nobody told the loss about.
# expect: cause=label-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch
import torch.nn as nn

criterion = nn.CrossEntropyLoss()
logits = torch.randn(2, 21, 32, 32, device="cuda")
target = torch.randint(0, 21, (2, 32, 32), device="cuda")
first = criterion(logits, target)
print(first.item() > 0)
target[1, 5, 7] = 255
second = criterion(logits, target)  # <- here
total = first + second
print(total.item())
