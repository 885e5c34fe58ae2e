# SPDX-License-Identifier: Apache-2.0
# label: growth
"""Toy completion server: one KV state per user session, idle ones are evicted."""
import argparse
import itertools
import torch
import torch.nn as nn


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.h = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)

    def forward(self, x, past):
        n, t, d = x.shape
        q, k, v = self.qkv(x).view(n, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        if past is not None:
            k = torch.cat([past[0], k], 2)
            v = torch.cat([past[1], v], 2)
        k, v = k.contiguous(), v.contiguous()
        w = torch.softmax(q @ k.transpose(-1, -2) / (d // self.h) ** 0.5, -1)
        y = (w @ v).transpose(1, 2).reshape(n, t, d)
        return x + self.proj(y), (k, v)


class Session:
    def __init__(self, user):
        self.user = user
        self.kv = None
        self.last_used = 0


class Server:
    def __init__(self, layers, d, heads, idle_limit):
        self.layers = nn.ModuleList(Layer(d, heads) for _ in range(layers)).cuda().eval()
        self.sessions = {}
        self.idle_limit = idle_limit
        self.d = d

    def heartbeat(self, clock):
        for s in self.sessions.values():
            s.last_used = clock  #@here

    def evict(self, clock):
        for key in [k for k, s in self.sessions.items() if clock - s.last_used > self.idle_limit]:
            del self.sessions[key]

    @torch.no_grad()
    def complete(self, user, prompt_len, samples, clock):
        s = self.sessions.setdefault(user, Session(user))
        x = torch.randn(samples, prompt_len, self.d, device="cuda")
        kv = []
        for i, layer in enumerate(self.layers):
            x, pair = layer(x, None if s.kv is None else s.kv[i])
            kv.append(pair)
        s.kv, s.last_used = kv, clock
        return x[:, -1].argmax(-1).tolist()


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--scale", type=float, default=1.0)
    ap.add_argument("--turns", type=int, default=60)
    ap.add_argument("--variant", default="a")
    a = ap.parse_args()
    samples = max(1, round(4 * a.scale))
    prompt = 384 if a.variant == "a" else 352
    server = Server(layers=16, d=1024, heads=16, idle_limit=5)
    clock = itertools.count(1)
    for turn in range(a.turns):
        now = next(clock)
        user = f"user-{turn}"
        out = server.complete(user, prompt, samples, now)
        server.heartbeat(now)
        server.evict(now)
        print(turn, user, len(out), len(server.sessions), flush=True)


if __name__ == "__main__":
    main()
