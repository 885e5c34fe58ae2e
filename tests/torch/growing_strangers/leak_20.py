# SPDX-License-Identifier: Apache-2.0
# leak: backward hook stores the output gradients of a block for both micro-batches, about 32 MiB per step
import torch
import torch.nn as nn

ACCUM = 2


class Block(nn.Module):
    def __init__(self, tokens, dim):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Linear(tokens, tokens)
        self.ch = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class MixerNet(nn.Module):
    def __init__(self, tokens=256, dim=512, depth=3):
        super().__init__()
        self.stem = nn.Linear(48, dim)
        self.blocks = nn.ModuleList([Block(tokens, dim) for _ in range(depth)])
        self.head = nn.Linear(dim, 10)

    def forward(self, x):
        x = self.stem(x)
        for b in self.blocks:
            x = b(x)
        return self.head(x.mean(1))


grad_trace = []


def trace(module, grad_input, grad_output):
    grad_trace.append(grad_output[0].detach())


def micro_batches():
    while True:
        yield torch.randn(32, 256, 48, device="cuda"), torch.randint(0, 10, (32,), device="cuda")


def train(counter):
    model = MixerNet().to("cuda")
    model.blocks[0].register_full_backward_hook(trace)
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
    lossf = nn.CrossEntropyLoss(label_smoothing=0.1)
    source = micro_batches()
    while True:
        counter["n"] += 1
        opt.zero_grad()
        for _ in range(ACCUM):
            x, y = next(source)
            (lossf(model(x), y) / ACCUM).backward()
        opt.step()


counter = {"n": 0}
try:
    train(counter)
except torch.OutOfMemoryError:
    print("failed in step", counter["n"])
