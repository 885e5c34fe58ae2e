# SPDX-License-Identifier: Apache-2.0
# leak: running feature centre is never detached, its chain keeps the LSTM outputs of all steps, about 24 MiB per step
import torch
import torch.nn as nn
import torch.nn.functional as F


class CentreLoss(nn.Module):
    def __init__(self, dim, momentum=0.9):
        super().__init__()
        self.m = momentum
        self.centre = torch.zeros(dim, device="cuda")

    def forward(self, feats):
        mean = F.normalize(feats, dim=-1).mean(dim=(0, 1))
        penalty = (feats.mean(dim=(0, 1)) - self.centre.detach()).pow(2).mean()
        self.centre = self.m * self.centre + (1 - self.m) * mean
        return penalty


class SequenceModel(nn.Module):
    def __init__(self, inp=64, hidden=768, classes=12):
        super().__init__()
        self.rnn = nn.LSTM(inp, hidden, batch_first=True)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        h, _ = self.rnn(x)
        return h, self.out(h[:, -1])


def main():
    step = 0
    try:
        model = SequenceModel().to("cuda")
        centre = CentreLoss(768)
        opt = torch.optim.RMSprop(model.parameters(), lr=1e-3, momentum=0.9)
        while True:
            step += 1
            x = torch.randn(64, 128, 64, device="cuda")
            y = torch.randint(0, 12, (64,), device="cuda")
            feats, logits = model(x)
            loss = F.cross_entropy(logits, y) + 0.01 * centre(feats)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            opt.step()
    except torch.OutOfMemoryError:
        print(f"failed in step {step}")


if __name__ == "__main__":
    main()
