# SPDX-License-Identifier: Apache-2.0
# label: oom-growth
"""Translates requests with beam search."""
import torch
import torch.nn as nn

BEAMS, LENGTH, HIDDEN, VOCAB = 8, 24, 1024, 6000
SENTENCES = 64  #@scale


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.cell, self.out = nn.Embedding(VOCAB, HIDDEN), nn.LSTMCell(HIDDEN, HIDDEN), nn.Linear(HIDDEN, VOCAB)

    def step(self, tokens, state):
        h, c = self.cell(self.embed(tokens), state)  #@here
        return self.out(h).log_softmax(-1), (h, c)


class Hypothesis:
    def __init__(self, tokens, score, states):
        self.tokens, self.score, self.states = tokens, score, states


class Translator:
    def __init__(self):
        self.decoder = Decoder().cuda().eval()
        self.finished = []

    @torch.inference_mode()
    def translate(self):
        rows = SENTENCES * BEAMS
        state = (torch.zeros(rows, HIDDEN, device="cuda"), torch.zeros(rows, HIDDEN, device="cuda"))
        tokens, score, states, path = torch.zeros(rows, dtype=torch.long, device="cuda"), torch.zeros(rows, device="cuda"), [], []
        for _ in range(LENGTH):
            logp, state = self.decoder.step(tokens, state)  #@here
            best = (score[:, None] + logp).view(SENTENCES, -1).topk(BEAMS, dim=1)
            score, tokens = best.values.flatten(), (best.indices % VOCAB).flatten()
            states.append(state)
            path.append(tokens)
        self.finished.append(Hypothesis(torch.stack(path), score, states))  #@here
        return path[-1]


translator = Translator()
request = 0
while request < 5000:
    translator.translate()
    request += 1
