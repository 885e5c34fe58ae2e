# SPDX-License-Identifier: Apache-2.0
# label: capacity
import argparse
import torch
import torch.nn as nn


class ExpertZoo(nn.Module):
    """Inference of a sparsely routed model. Every expert sits on the card."""

    def __init__(self, d, hidden, n):
        super().__init__()
        self.router = nn.Linear(d, n, device="cuda")
        self.up = nn.ModuleList()
        self.down = nn.ModuleList()
        for i in range(n):
            self.up.append(nn.Linear(d, hidden, bias=False, device="cuda"))  #@here
            self.down.append(nn.Linear(hidden // 16, d, bias=False, device="cuda"))
            if i % 8 == 7:
                print("loaded", i + 1, "experts", flush=True)

    def forward(self, x, plan):
        gate = torch.softmax(self.router(x), -1)
        y = torch.zeros_like(x)
        for e in plan:
            h = torch.relu(self.up[e](x)).unflatten(-1, (16, -1)).mean(-2)
            y = y + gate[..., e:e + 1] * self.down[e](h)
        return y


class RequestLog:
    def __init__(self, keep=100):
        self.keep, self.rows = keep, []

    def write(self, turn, plan, mean):
        self.rows.append({"turn": turn, "plan": plan, "mean": mean})
        del self.rows[: -self.keep]


def plans(n, turns, per_token=2):
    for t in range(turns):
        yield [(7 * t + 3 * j) % n for j in range(per_token)]


@torch.no_grad()
def serve(model, n, turns, tokens, d):
    log = RequestLog()
    for t, plan in enumerate(plans(n, turns)):
        x = torch.randn(tokens, d, device="cuda")
        y = model(x, plan)
        log.write(t, plan, y.mean().item())
        print(log.rows[-1], flush=True)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description="sparse experts")
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=40)
    ap.add_argument("--variant", choices=["a", "b"], default="a")
    opt = ap.parse_args()
    d = 4096
    hidden = 16384 if opt.variant == "a" else 14336
    count = round(46 * opt.scale)
    zoo = ExpertZoo(d, hidden, count).eval()
    serve(zoo, count, opt.turns, 256, d)
