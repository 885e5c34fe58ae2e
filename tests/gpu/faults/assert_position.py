# SPDX-License-Identifier: Apache-2.0
# A sequence that is longer than the table of positions.
# expect: cause=position-index-out-of-range certainty=certain,likely exit=1 code=710
# needs: torch
import torch
import torch.nn as nn


class Decoder(nn.Module):
    def __init__(self, vocabulary=500, context=128, width=64):
        super().__init__()
        self.wte = nn.Embedding(vocabulary, width)
        self.wpe = nn.Embedding(context, width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.wte(tokens)
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = x + self.wpe(positions)  # <- here
        return self.head(x)


model = Decoder().cuda()
for length in (64, 128, 130):
    logits = model(torch.randint(0, 500, (4, length), device="cuda"))
print(logits.argmax(-1)[0, 0].item())
