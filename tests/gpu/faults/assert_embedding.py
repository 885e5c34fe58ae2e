# SPDX-License-Identifier: Apache-2.0
# A token that the vocabulary does not have.
# expect: cause=embedding-index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch
import torch.nn as nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(1000, 64)
        self.out = nn.Linear(64, 8)

    def forward(self, ids):
        x = self.tokens(ids)  # <- here
        return self.out(x.mean(dim=1))


model = Encoder().cuda()
ids = torch.randint(0, 1000, (16, 40), device="cuda")
print(model(ids).shape)
ids[3, 21] = 1000
result = model(ids)
for _ in range(3):
    result = torch.relu(result)
print(result.sum().item())
