# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""Pretraining, and a linear probe on features that are extracted after each epoch."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, d, layers):
        super().__init__()
        self.patch = nn.Linear(768, d)
        self.blocks = nn.Sequential(*[nn.TransformerEncoderLayer(d, 8, 4 * d, batch_first=True, norm_first=True) for _ in range(layers)])
        self.decode = nn.Linear(d, 768)

    def features(self, patches):
        return self.blocks(self.patch(patches)).mean(1)

    def forward(self, patches, keep=0.5):
        seen = patches * (torch.rand(patches.shape[:2], device=patches.device) < keep)[..., None]
        return F.mse_loss(self.decode(self.blocks(self.patch(seen))), patches)


class Probe:
    def __init__(self, model, batches, batch):
        self.model, self.batches, self.batch = model, batches, batch

    def extract(self):
        kept = []
        for i in range(self.batches):
            patches = torch.rand(self.batch, 196, 768, device="cuda")
            kept.append(self.model.features(patches).cpu())  #@here
            print("features", i, flush=True)
        return torch.cat(kept)

    def score(self):
        was = self.model.training
        self.model.eval()
        x = self.extract()
        self.model.train(was)
        return float(x.std())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    model = Encoder(384, 6 if a.variant == "a" else 8).cuda()
    probe = Probe(model, 64, int(32 * a.scale))
    opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for epoch in range(3):
        for step in range(4):
            loss = model(torch.rand(8, 196, 768, device="cuda"))
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(epoch, step, loss.item(), flush=True)
        print("probe", probe.score(), flush=True)


main()
