# SPDX-License-Identifier: Apache-2.0
# One CUDA graph for each of many shapes, each with a pool of its own.
# expect: cause=oom-capacity|oom-growth exit=1
# needs: torch
# alone
import torch
import torch.nn as nn

model = nn.Sequential(nn.Linear(8192, 8192), nn.ReLU(), nn.Linear(8192, 8192)).cuda().eval()
graphs = {}


@torch.no_grad()
def captured(rows):
    x = torch.zeros(rows, 8192, device="cuda")
    model(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
    graphs[rows] = graph, x, y


for rows in range(131072, 10000000, 8192):
    captured(rows)
