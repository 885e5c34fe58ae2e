# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad oom-graph-retention
# fix: edit kept
"""Distillation: the teacher's answers are kept for later epochs, with their graphs."""
import torch
import torch.nn as nn
import torch.nn.functional as F

ROWS, BATCHES = 32768, 60  #@cpu 8, 4
torch.manual_seed(0)
teacher = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 10)).cuda().eval()
model = nn.Linear(512, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(ROWS, 512) for _ in range(2)]
answers = {}
for epoch in range(2):
    for index in range(BATCHES):
        x = batches[index % 2].cuda()
        if index not in answers:
            answers[index] = teacher(x).softmax(1)
        loss = F.mse_loss(model(x).softmax(1), answers[index].detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
