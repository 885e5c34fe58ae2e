# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""Audio tagging with gated dilated convolutions; clips in training, songs in testing."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Gated(nn.Module):
    def __init__(self, ch, dilation):
        super().__init__()
        self.conv = nn.Conv1d(ch, 2 * ch, 3, padding=dilation, dilation=dilation)
        self.mix = nn.Conv1d(ch, ch, 1)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, 1)
        return x + self.mix(torch.tanh(a) * torch.sigmoid(b))


class Tagger(nn.Module):
    def __init__(self, ch, layers, tags):
        super().__init__()
        self.front = nn.Conv1d(1, ch, 16, stride=4, padding=6)
        self.stack = nn.ModuleList(Gated(ch, 2 ** (i % 6)) for i in range(layers))
        self.tags = nn.Linear(ch, tags)

    def forward(self, wave):
        x = self.front(wave)
        for layer in self.stack:
            x = layer(x)
        return self.tags(x.mean(-1))


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad = patience, float("inf"), 0

    def update(self, value):
        self.bad = 0 if value < self.best else self.bad + 1
        self.best = min(self.best, value)
        return self.bad > self.patience


def songs(n, batch, samples, tags):
    for _ in range(n):
        yield (torch.randn(batch, 1, samples, device="cuda"),
               torch.randint(0, 2, (batch, tags), device="cuda").float())


def test(model, batch, tags):
    model.eval()
    losses = []
    for wave, y in songs(3, batch, 160_000, tags):
        out = model(wave)  #@here
        losses.append(F.binary_cross_entropy_with_logits(out, y).item())
    model.train()
    return sum(losses) / len(losses)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=12)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    tags = 50 if a.variant == "a" else 80
    net = Tagger(64, 9, tags).cuda()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    stop = EarlyStopping(patience=100)
    for epoch in range(a.turns):
        for wave, y in songs(4, 8, 16_000, tags):
            loss = F.binary_cross_entropy_with_logits(net(wave), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print(epoch, loss.item(), flush=True)
        if epoch > 0 and stop.update(test(net, max(1, int(32 * a.scale)), tags)):
            break
