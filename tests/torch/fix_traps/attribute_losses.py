# SPDX-License-Identifier: Apache-2.0
# label: oom-graph-retention oom-eval-without-no-grad
# fix: words backward
"""A trainer keeps its losses in an attribute; another method runs backward over them."""
import torch
import torch.nn as nn

BATCH, STEPS = 65536, 24  #@cpu 8, 4


class Trainer:
    def __init__(self, model):
        self.model, self.losses = model, []
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def observe(self, x):
        self.losses.append(self.model(x).square().mean())

    def learn(self):
        loss = sum(self.losses) / len(self.losses)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.losses.clear()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024)).cuda()
trainer = Trainer(model)
for epoch in range(2):
    for step in range(STEPS):
        trainer.observe(torch.randn(BATCH, 1024, device="cuda"))
    trainer.learn()
