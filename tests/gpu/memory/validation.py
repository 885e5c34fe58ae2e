# SPDX-License-Identifier: Apache-2.0
# The program trains, and its validation collects outputs with their graphs.
# expect: cause=oom-eval-without-no-grad certainty=likely exit=1
# needs: torch
# alone
import torch
import torch.nn as nn
import torch.nn.functional as F

model = nn.Sequential(*(nn.Sequential(nn.Linear(4096, 4096), nn.GELU()) for _ in range(8))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)


def train_epoch():
    for _ in range(4):
        loss = F.mse_loss(model(torch.randn(8192, 4096, device="cuda")), torch.zeros(8192, 4096, device="cuda"))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def validate():
    outputs = []
    for _ in range(1000):
        outputs.append(model(torch.randn(32768, 4096, device="cuda")).mean(1))  # <- here  <- culprit
    return torch.cat(outputs).std()


train_epoch()
print(validate().item())
