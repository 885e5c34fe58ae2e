# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
from torch import nn


class SceneNet(nn.Module):
    def __init__(self, ch=64, blocks=16, scenes=10):
        super().__init__()
        self.front = nn.Conv1d(1, ch, 9, stride=2, padding=4)
        self.blocks = nn.ModuleList(nn.Conv1d(ch, ch, 9, padding=4) for _ in range(blocks))
        self.act = nn.GELU()
        self.out = nn.Linear(ch, scenes)

    def forward(self, wave):
        x = self.front(wave)
        for conv in self.blocks:
            x = self.act(conv(x))
        return self.out(x.mean(-1))


class Trainer:
    def __init__(self, batch_size):
        self.batch_size = batch_size
        self.net = SceneNet().cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        self.loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)

    def batch(self):
        return (torch.randn(self.batch_size, 1, 32_000, device="cuda"),
                torch.randint(0, 10, (self.batch_size,), device="cuda"))

    def step(self):
        wave, scene = self.batch()
        loss = self.loss_fn(self.net(wave), scene)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--batch-size", type=int, default=88)
    p.add_argument("--steps", type=int, default=4)
    a = p.parse_args()
    trainer = Trainer(a.batch_size)
    for s in range(a.steps):
        print(s, trainer.step(), flush=True)
