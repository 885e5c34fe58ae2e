# SPDX-License-Identifier: Apache-2.0
# Every loss is kept with its graph: the tensors are small, the graphs are not.
# expect: cause=oom-graph-retention exit=1
# needs: torch
# gpu: sim:rtx4090
# holder: history 85
import torch
import torch.nn as nn


def train():
    model = nn.Sequential(nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 2048)).cuda()
    history = []
    while True:
        loss = model(torch.randn(8192, 2048, device="cuda")).square().mean()
        loss.backward(retain_graph=True)
        history.append(loss)


train()
