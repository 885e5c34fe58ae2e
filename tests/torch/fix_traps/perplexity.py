# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad oom-graph-retention
# fix: edit kept no_grad
"""The perplexity of a long text, window by window; nothing trains."""
import torch
import torch.nn as nn
import torch.nn.functional as F

WINDOWS, LENGTH = 100, 8192  #@cpu 5, 16
torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(4096, 512), nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 4096)).cuda()
model.eval()


def perplexity(model, tokens):
    nlls = []
    for begin in range(0, WINDOWS * LENGTH, LENGTH):
        window = tokens[begin:begin + LENGTH + 1].cuda()
        logits = model(window[:-1])
        nll = F.cross_entropy(logits, window[1:])
        nlls.append(nll)
    return torch.exp(torch.stack(nlls).mean())


print("perplexity", perplexity(model, torch.randint(4096, (WINDOWS * LENGTH + 1,))).item())
