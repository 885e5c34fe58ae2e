# SPDX-License-Identifier: Apache-2.0
# settles: tasks (heads with add_param_group) join at steps 1, 10, 20 and 30, after about step 30
import torch
import torch.nn as nn
import torch.nn.functional as F


class Head(nn.Module):
    def __init__(self, dim, hidden, out):
        super().__init__()
        self.l1, self.l2 = nn.Linear(dim, hidden), nn.Linear(hidden, out)

    def forward(self, x):
        return self.l2(F.gelu(self.l1(x)))


class Shared(nn.Module):
    def __init__(self, dim=1024):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(512, dim), nn.GELU(), nn.Linear(dim, dim), nn.GELU())
        self.heads = nn.ModuleDict()

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}


JOIN = {1: ("topic", 2048, 100), 10: ("author", 4096, 1000), 20: ("year", 4096, 500), 30: ("place", 6144, 2000)}


class MultiTaskRun:
    def __init__(self):
        self.model = Shared().to("cuda")
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.sizes = {}
        self.step = 0

    def maybe_join(self):
        if self.step not in JOIN:
            return
        name, hidden, out = JOIN[self.step]
        head = Head(1024, hidden, out).to("cuda")
        self.model.heads[name] = head
        self.opt.add_param_group({"params": list(head.parameters()), "lr": 5e-4})
        self.sizes[name] = out

    def run(self):
        while True:
            self.step += 1
            self.maybe_join()
            x = torch.randn(2048, 512, device="cuda")
            outs = self.model(x)
            loss = 0
            for name, logits in outs.items():
                y = torch.randint(0, self.sizes[name], (2048,), device="cuda")
                loss = loss + F.cross_entropy(logits, y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()


if __name__ == "__main__":
    r = MultiTaskRun()
    try:
        r.run()
    except torch.OutOfMemoryError:
        print(f"failed in step {r.step}")
