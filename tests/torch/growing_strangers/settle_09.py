# SPDX-License-Identifier: Apache-2.0
# settles: evaluation every 10 steps with a batch 32 times as large, after about step 10
import torch
import torch.nn as nn


class ViTish(nn.Module):
    def __init__(self, d=192, depth=3, patch=8, img=64):
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (img // patch) ** 2, d))
        layer = nn.TransformerEncoderLayer(d, 6, 4 * d, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.fc = nn.Linear(d, 100)

    def forward(self, x):
        h = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        return self.fc(self.enc(h).mean(1))


def batch(n):
    return torch.rand(n, 3, 64, 64, device="cuda"), torch.randint(0, 100, (n,), device="cuda")


@torch.no_grad()
def evaluate(model, rounds=2):
    model.eval()
    hits, seen = 0.0, 0
    for _ in range(rounds):
        x, y = batch(2048)
        hits += (model(x).argmax(1) == y).sum().item()
        seen += len(y)
    model.train()
    return hits / seen


def loop(status):
    model = ViTish().to("cuda")
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.05)
    crit = nn.CrossEntropyLoss()
    while True:
        status.step += 1
        x, y = batch(64)
        loss = crit(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if status.step % 10 == 0:
            print(f"step {status.step} accuracy {evaluate(model):.3f}")


class Status:
    step = 0


try:
    loop(Status)
except torch.OutOfMemoryError:
    print(f"failed in step {Status.step}")
