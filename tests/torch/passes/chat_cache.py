# SPDX-License-Identifier: Apache-2.0
# label: growth
"""A chat server: prefill() and decode() of a small decoder, and a cache for each session."""
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.o = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def attend(self, x, past):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        x = x + self.o(y.transpose(1, 2).reshape(b, t, d))
        return x + self.down(F.silu(self.up(x))), (k, v)


class Decoder(nn.Module):
    def __init__(self, layers, d=1024):
        super().__init__()
        self.emb = nn.Embedding(32000, d)
        self.layers = nn.ModuleList(Layer(d, 16) for _ in range(layers))

    def run(self, ids, past=None):
        x, kept = self.emb(ids), []
        for i, layer in enumerate(self.layers):
            x, kv = layer.attend(x, past[i] if past else None)
            kept.append(kv)
        return x[:, -1] @ self.emb.weight.t(), kept


class Server:
    def __init__(self, model):
        self.model, self.sessions = model, {}

    @torch.inference_mode()
    def chat(self, session, ids, new):
        logits, past = self.model.run(ids)
        for _ in range(new):
            logits, past = self.model.run(logits.argmax(-1, keepdim=True), past)
        self.sessions[session] = past  #@here
        return new


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    server = Server(Decoder(8 if a.variant == "a" else 10).cuda())
    for request in range(400):
        prompt = torch.randint(0, 32000, (1, int(1024 * a.scale)), device="cuda")
        print("request", request, server.chat(request, prompt, 4), flush=True)


main()
