# SPDX-License-Identifier: Apache-2.0
# label: memory-fraction
"""Music language model; a dry run shows whether the small cards of the lab would do."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm = nn.LayerNorm(d)
        self.time = nn.Conv1d(d, d, 5, padding=2, groups=d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def forward(self, x):
        h = self.time(self.norm(x).transpose(1, 2)).transpose(1, 2)
        return x + self.down(F.relu(self.up(h)))


class MusicLM(nn.Module):
    def __init__(self, notes, d, layers):
        super().__init__()
        self.emb = nn.Embedding(notes, d)
        self.layers = nn.ModuleList(Layer(d) for _ in range(layers))
        self.head = nn.Linear(d, notes)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Trainer:
    def __init__(self, model, batch, length):
        self.model, self.batch, self.length = model, batch, length
        self.opt = torch.optim.Adam(model.parameters(), lr=3e-4)
        self.best = (float("inf"), None)

    def one(self, batch):
        ids = torch.randint(0, 512, (batch, self.length + 1), device="cuda")
        loss = F.cross_entropy(self.model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.item()

    def dry_run(self, steps=3):
        torch.cuda.set_per_process_memory_fraction(0.25)  #@here
        for _ in range(steps):
            self.one(1)
        peak = torch.cuda.max_memory_allocated() / 2 ** 20
        torch.cuda.reset_peak_memory_stats()
        return peak

    def run(self, turns):
        for t in range(turns):
            loss = self.one(self.batch)
            if loss + 1e-6 * t < self.best[0]:
                self.best = (loss, t)
            print(t, loss, self.best, flush=True)


if __name__ == "__main__":
    cli = argparse.ArgumentParser()
    cli.add_argument("--scale", type=float, default=1.0)
    cli.add_argument("--turns", type=int, default=20)
    cli.add_argument("--variant", choices=["a", "b"], default="a")
    o = cli.parse_args()
    model = MusicLM(512, 512 if o.variant == "a" else 576, 12).cuda()
    trainer = Trainer(model, max(2, int(20 * o.scale)), 1024)
    print(f"dry run: {trainer.dry_run():.0f} MiB")
    trainer.run(o.turns)
