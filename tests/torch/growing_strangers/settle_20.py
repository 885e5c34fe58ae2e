# SPDX-License-Identifier: Apache-2.0
# settles: self-distillation from at most 4 snapshots (every 8 steps, then replaced in turn), after about step 40
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Student(nn.Module):
    def __init__(self, w=2048):
        super().__init__()
        self.l1 = nn.Linear(768, w)
        self.l2 = nn.Linear(w, w)
        self.l3 = nn.Linear(w, w)
        self.l4 = nn.Linear(w, 200)

    def forward(self, x):
        x = F.relu(self.l1(x))
        x = F.relu(self.l2(x))
        x = F.relu(self.l3(x))
        return self.l4(x)


class SnapshotEnsemble:
    def __init__(self, size=4):
        self.size = size
        self.members = []
        self.next = 0

    def take(self, model):
        snap = copy.deepcopy(model).eval()
        snap.requires_grad_(False)
        if len(self.members) < self.size:
            self.members.append(snap)
        else:
            self.members[self.next] = snap
            self.next = (self.next + 1) % self.size

    def soft_targets(self, x, t=2.0):
        if not self.members:
            return None
        with torch.no_grad():
            return sum((m(x) / t).softmax(-1) for m in self.members) / len(self.members)


def distill(log_p, q):
    return F.kl_div(log_p, q, reduction="batchmean")


def main(state):
    torch.manual_seed(42)
    model = Student().to("cuda")
    opt = torch.optim.Adam(model.parameters(), lr=3e-4, weight_decay=1e-5)
    ens = SnapshotEnsemble()
    while True:
        state["n"] += 1
        x = torch.randn(1024, 768, device="cuda")
        y = torch.randint(0, 200, (1024,), device="cuda")
        logits = model(x)
        loss = F.cross_entropy(logits, y)
        soft = ens.soft_targets(x)
        if soft is not None:
            loss = loss + 0.5 * distill((logits / 2.0).log_softmax(-1), soft)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if state["n"] % 8 == 0:
            ens.take(model)


state = {"n": 0}
try:
    main(state)
except torch.OutOfMemoryError:
    print(f"failed in step {state['n']}")
