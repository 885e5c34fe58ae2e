# SPDX-License-Identifier: Apache-2.0
# label: eval-without-no-grad
"""Neural collaborative filtering: sampled training, full ranking at evaluation."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class NCF(nn.Module):
    def __init__(self, users, items, dim, layers):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)
        self.mlp = nn.ModuleList(nn.Linear(2 * dim, 2 * dim) for _ in range(layers))
        self.out = nn.Linear(2 * dim, 1)

    def score(self, u, i):
        x = torch.cat([u, i], -1)
        for fc in self.mlp:
            x = F.relu(fc(x))
        return self.out(x).squeeze(-1)

    def forward(self, users, items):
        return self.score(self.user(users), self.item(items))


class FullRanking:
    def __init__(self, model, chunk, k=20):
        self.model, self.chunk, self.k = model, chunk, k
        self.model_was_training = True

    def __enter__(self):
        self.model_was_training = self.model.training
        self.model.eval()
        return self

    def __exit__(self, *exc):
        self.model.train(self.model_was_training)
        return False

    def top(self, users):
        n = self.model.item.num_embeddings
        u = self.model.user(users)[:, None].expand(-1, n, -1)
        i = self.model.item.weight[None].expand(len(users), -1, -1)
        return self.model.score(u, i).topk(self.k, dim=1).indices  #@here

    def recall(self, chunks):
        hits = 0.0
        for _ in range(chunks):
            users = torch.randint(0, self.model.user.num_embeddings, (self.chunk,), device="cuda")
            hits += (self.top(users) == 7).any(1).float().mean().item()
        return hits / chunks


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=40)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    items = 10_000 if a.variant == "a" else 11_000
    model = NCF(50_000, items, 128, layers=8).cuda()
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(a.turns):
        u = torch.randint(0, 50_000, (8192,), device="cuda")
        i = torch.randint(0, items, (8192,), device="cuda")
        loss = F.binary_cross_entropy_with_logits(model(u, i), torch.rand(8192, device="cuda").round())
        opt.zero_grad()
        loss.backward()
        opt.step()
        print(step, loss.item(), flush=True)
        if step % 10 == 9:
            with FullRanking(model, max(1, int(128 * a.scale))) as ranking:
                print("recall", ranking.recall(2), flush=True)


main()
