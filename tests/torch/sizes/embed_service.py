# SPDX-License-Identifier: Apache-2.0
"""Embeds passages in batches and answers with their nearest centroid."""
import argparse
import torch
import torch.nn as nn


class Embedder(nn.Module):
    def __init__(self, vocab=20_000, d=768, layers=3):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.up = nn.ModuleList(nn.Linear(d, 4 * d) for _ in range(layers))
        self.down = nn.ModuleList(nn.Linear(4 * d, d) for _ in range(layers))

    def forward(self, ids):
        x = self.emb(ids)
        for up, down in zip(self.up, self.down):
            x = x + down(torch.relu(up(x)))
        return nn.functional.normalize(x.mean(1), dim=1)


class Service:
    def __init__(self, batch_size, length=128):
        self.shape = (batch_size, length)
        self.model = Embedder().cuda().eval()
        self.centroids = torch.randn(100, 768, device="cuda")

    @torch.inference_mode()
    def handle(self):
        ids = torch.randint(0, 20_000, self.shape, device="cuda")
        return (self.model(ids) @ self.centroids.t()).argmax(1).tolist()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--batch-size", type=int, default=3072)
    ap.add_argument("--requests", type=int, default=8)
    args = ap.parse_args()
    service = Service(args.batch_size)
    for r in range(args.requests):
        print(r, len(service.handle()), flush=True)
