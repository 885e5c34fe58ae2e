# SPDX-License-Identifier: Apache-2.0
# leak: per-batch metrics keep probabilities, predictions and targets of a segmentation net, about 24 MiB per step
import torch
from torch import nn


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(inplace=True))


class SmallUNet(nn.Module):
    def __init__(self, classes=8):
        super().__init__()
        self.d1 = block(3, 16)
        self.d2 = block(16, 32)
        self.up = nn.ConvTranspose2d(32, 16, 2, stride=2)
        self.u1 = block(32, 16)
        self.head = nn.Conv2d(16, classes, 1)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(self.pool(a))
        return self.head(self.u1(torch.cat([a, self.up(b)], 1)))


class SegMetrics:
    def __init__(self):
        self.reset()

    def reset(self):
        self.values = {"prob": [], "pred": [], "target": []}

    def update(self, logits, target):
        prob = logits.detach().softmax(1)
        self.values["prob"].append(prob)
        self.values["pred"].append(prob.argmax(1))
        self.values["target"].append(target)

    def last_accuracy(self):
        return (self.values["pred"][-1] == self.values["target"][-1]).float().mean().item()


def main():
    metrics = SegMetrics()
    net = SmallUNet().to("cuda")
    opt = torch.optim.Adam(net.parameters(), lr=1e-3, amsgrad=True)
    crit = nn.CrossEntropyLoss()
    n = 0
    try:
        epoch = 0
        while True:  # epochs; an "epoch" is a pass over a very large tile set
            epoch += 1
            for _ in range(100000):
                n += 1
                img = torch.rand(8, 3, 256, 256, device="cuda")
                tgt = torch.randint(0, 8, (8, 256, 256), device="cuda")
                out = net(img)
                loss = crit(out, tgt)
                opt.zero_grad()
                loss.backward()
                opt.step()
                metrics.update(out, tgt)
                if n % 30 == 0:
                    print(f"epoch {epoch} it {n} acc {metrics.last_accuracy():.3f}")
            metrics.reset()
    except torch.OutOfMemoryError:
        print(f"failed in step {n}")


main()
