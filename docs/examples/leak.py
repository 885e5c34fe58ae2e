# SPDX-License-Identifier: Apache-2.0
# Training with an evaluation now and then. Its loss is kept for a plot, and with it everything backward would need.
# expect: cause=oom-graph-retention certainty=certain,likely exit=1 here=18 culprit=18
# needs: torch
# alone
import torch
import torch.nn as nn

WIDTH, LENGTH = 1024, 1024
torch.backends.cuda.matmul.allow_tf32 = True
layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
model = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
curve = []


def loss_of(batch):
    return model(torch.randn(batch, LENGTH, WIDTH, device="cuda")).square().mean()


def train():
    optimizer.zero_grad()
    loss_of(16).backward()
    optimizer.step()


def evaluate():
    return loss_of(6)


for step in range(1000):
    train()
    if step % 4 == 0:
        curve.append(evaluate())
