# SPDX-License-Identifier: Apache-2.0
"""A hundred random moments of a program that allocates, frees, trains and empties the cache: do the recorder's totals
equal PyTorch's own? exact.py LIBRARY [eager|compile|graphs]"""
import ctypes
import json
import random
import sys

import torch
import torch.nn as nn

library, mode = ctypes.CDLL(sys.argv[1]), sys.argv[2]
rng = random.Random(20261115)
model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
kept = []


def train(x):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=rng.random() < 0.5)


def capture():
    x = torch.randn(64, 512, device="cuda")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        y = model(x)
    graph.replay()
    return graph, x, y


def step():
    do = rng.random()
    if do < 0.35:
        kept.append(torch.empty(int(10 ** rng.uniform(1, 8.5)), dtype=torch.uint8, device="cuda"))
    elif do < 0.65 and kept:
        kept.pop(rng.randrange(len(kept)))
    elif do < 0.85:
        train(torch.randn(rng.randrange(1, 2048), 512, device="cuda"))
    elif do < 0.9 and mode == "graphs":
        kept.append(capture())
    elif do < 0.93:
        torch.cuda.empty_cache()
    elif do < 0.97:
        kept.append(torch.empty(1 << 20, dtype=torch.uint8).pin_memory())


if mode == "compile":
    model = torch.compile(model)
differ, biggest, out = [], 0, (ctypes.c_uint64 * 4)()
for moment in range(100):
    for _ in range(rng.randrange(1, 30)):
        step()
    ours = tuple(out[:2]) if library.now(out) else None
    theirs = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    biggest = max(biggest, theirs[1])
    if ours != theirs:
        differ.append([moment, ours, theirs])
print("RESULT " + json.dumps({"moments": 100, "differ": len(differ), "first": differ[:3], "reserved_most": biggest}))
