# SPDX-License-Identifier: Apache-2.0
# leak: exceptions kept, with the frames (and tensors) of their tracebacks, about 24 MiB per step
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F


class AugmentError(ValueError):
    pass


class SignalNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(1, 16, 64, stride=32)
        self.c2 = nn.Conv1d(16, 32, 8, stride=4)
        self.fc = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        return self.fc(x.mean(-1))


def augment(x, meta):
    noisy = x + 0.05 * torch.randn_like(x)
    shifted = torch.roll(noisy, meta["shift"], dims=-1)
    if meta["shift"] % 2 == 1:
        raise AugmentError(f"odd shift {meta['shift']} not supported")
    return shifted


class Worker:
    def __init__(self):
        self.model = SignalNet().to("cuda")
        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.errors = []
        self.step = 0

    def train_step(self):
        self.step += 1
        meta = {"shift": self.step * 7}
        x = torch.randn(256, 1, 16384, device="cuda")
        y = torch.randint(0, 10, (256,), device="cuda")
        try:
            batch = augment(x, meta)
        except AugmentError as err:
            self.errors.append((self.step, err))
            batch = x
        loss = F.cross_entropy(self.model(batch), y)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()

    def forever(self):
        while True:
            self.train_step()
            if self.step % 50 == 0:
                print(f"{self.step}: {len(self.errors)} batches not augmented")


def main():
    w = Worker()
    try:
        w.forever()
    except torch.OutOfMemoryError:
        print(f"failed in step {w.step}")
    sys.exit(0)


if __name__ == "__main__":
    main()
