# SPDX-License-Identifier: Apache-2.0
# Every turn keeps a tensor: a smaller batch only delays the end, and explain says so with what the recorder knows.
# expect-note: cause=oom-growth exit=0
# needs: torch
# gpu: sim:rtx3060
import os
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "python"))
import cuwhy

model = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
try:
    while True:
        out = model(torch.randn(32768, 2048, device="cuda"))
        out.square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        kept.append(out.detach())
except torch.OutOfMemoryError as e:
    verdict = cuwhy.explain(e, batch=32768)
assert (verdict.cause, verdict.retry) == ("oom-growth", False), (verdict.cause, verdict.retry, verdict.fits)
