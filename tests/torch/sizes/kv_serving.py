# SPDX-License-Identifier: Apache-2.0
import argparse
import torch
import torch.nn as nn

LAYERS, HEADS, DIM, CONTEXT = 24, 16, 1024, 1024


class Layer(nn.Module):
    def __init__(self, sessions):
        super().__init__()
        self.qkv, self.out = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        shape = (sessions, HEADS, CONTEXT, DIM // HEADS)
        self.register_buffer("k", torch.zeros(shape))
        self.register_buffer("v", torch.zeros(shape))

    def forward(self, x, at):
        n = len(x)
        q, k, v = self.qkv(x).view(n, 3, HEADS, DIM // HEADS).unbind(1)
        self.k[:, :, at], self.v[:, :, at] = k, v
        w = torch.softmax(q[:, :, None] @ self.k[:, :, : at + 1].transpose(2, 3) / 8.0, -1)
        return x + self.out((w @ self.v[:, :, : at + 1]).reshape(n, DIM))


class Engine:
    def __init__(self, max_sessions):
        self.n = max_sessions
        torch.set_default_dtype(torch.float16)
        with torch.device("cuda"):
            self.layers = nn.ModuleList(Layer(max_sessions) for _ in range(LAYERS))
            self.emb = nn.Embedding(8000, DIM)
        self.at = 0

    @torch.no_grad()
    def decode(self):
        x = self.emb(torch.randint(0, 8000, (self.n,), device="cuda"))
        for layer in self.layers:
            x = layer(x, self.at)
        self.at += 1
        return (x @ self.emb.weight.t()).argmax(-1).tolist()


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--max-sessions", type=int, default=128)
    ap.add_argument("--tokens", type=int, default=12)
    a = ap.parse_args()
    engine = Engine(a.max_sessions)
    for t in range(a.tokens):
        print(t, len(engine.decode()), flush=True)
