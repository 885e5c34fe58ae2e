# SPDX-License-Identifier: Apache-2.0
# leak: attention masks cached under a key with the step number in it, about 20 MiB per step
import torch
import torch.nn as nn
import torch.nn.functional as F

SEQ = 2304


class MaskCache:
    def __init__(self):
        self._masks = {}

    def get(self, step, length, window):
        key = (step, length, window)
        if key not in self._masks:
            i = torch.arange(length, device="cuda")
            dist = (i[:, None] - i[None, :])
            keep = (dist >= 0) & (dist < window)
            mask = torch.zeros(length, length, device="cuda")
            mask.masked_fill_(~keep, -1e4)
            self._masks[key] = mask
        return self._masks[key]


class LocalAttention(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(d, 3 * d)
        self.proj = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + self.proj(o.transpose(1, 2).reshape(b, t, d))


class TinyLM(nn.Module):
    def __init__(self, vocab=1000, d=128):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList(LocalAttention(d, 2) for _ in range(2))
        self.head = nn.Linear(d, vocab)
        self.cache = MaskCache()

    def forward(self, ids, step):
        mask = self.cache.get(step, ids.shape[1], 256)
        h = self.emb(ids)
        for l in self.layers:
            h = l(h, mask)
        return self.head(h)


step = 0
model = TinyLM().to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
try:
    while True:
        step += 1
        ids = torch.randint(0, 1000, (2, SEQ + 1), device="cuda")
        logits = model(ids[:, :-1], step)
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
except torch.OutOfMemoryError:
    print(f"failed in step {step}")
