# SPDX-License-Identifier: Apache-2.0
# label: request-too-large
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F


def tile_memory(memory, beams, dim=0):
    """Repeats the encoder output so that each hypothesis finds its own copy."""
    shape = [1] * memory.dim()
    shape[dim] = beams
    return memory.repeat(*shape)


class Hypotheses:
    def __init__(self, beams, length_penalty):
        self.beams, self.penalty = beams, length_penalty
        self.done = []

    def add(self, words, length):
        self.done.append((length ** self.penalty, words))
        self.done = sorted(self.done, key=lambda d: d[0])[: self.beams]


class Captioner(nn.Module):
    def __init__(self, vocab, d):
        super().__init__()
        self.vocab = vocab
        self.image = nn.Linear(768, d)
        self.emb = nn.Embedding(vocab, d)
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
        self.head = nn.Linear(d, vocab)

    def look(self, x, memory):
        w = F.softmax(self.q(x)[:, None] @ self.k(memory).transpose(1, 2), -1)
        return x + (w @ self.v(memory)).squeeze(1)

    def greedy(self, patches, length):
        memory = self.image(patches)
        word = torch.zeros(len(patches), dtype=torch.long, device="cuda")
        for _ in range(length):
            word = self.head(self.look(self.emb(word), memory)).argmax(-1)
        return word.tolist()

    def beam(self, patches, length, beams):
        memory = tile_memory(self.image(patches), self.vocab)  #@here
        hyps = Hypotheses(beams, 0.6)
        words = torch.zeros(len(memory), dtype=torch.long, device="cuda")
        for t in range(length):
            scores = self.head(self.look(self.emb(words), memory))
            words = scores.topk(beams, -1).indices[:, 0]
            hyps.add(words, t + 1)
        return len(hyps.done)


@torch.inference_mode()
def main():
    p = argparse.ArgumentParser()
    p.add_argument("--scale", type=float, default=1.0)
    p.add_argument("--turns", type=int, default=15)
    p.add_argument("--variant", choices=["a", "b"], default="a")
    a = p.parse_args()
    model = Captioner(8000 if a.variant == "a" else 7000, 512).cuda().eval()
    batch = max(1, int(16 * a.scale))
    for t in range(a.turns):
        patches = torch.randn(batch, 196, 768, device="cuda")
        if t % 4 == 3:
            print(t, "beam", model.beam(patches, 12, beams=4), flush=True)
        else:
            print(t, "greedy", len(model.greedy(patches, 12)), flush=True)


main()
