# SPDX-License-Identifier: Apache-2.0
# label: oom-eval-without-no-grad oom-graph-retention
# fix: edit kept no_grad
"""A server with gradients on keeps the answers of its sessions."""
import torch
import torch.nn as nn

ROWS = 32768  #@cpu 8
model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Linear(2048, 8)).cuda().eval()
sessions = {}


def handle(number, prompt):
    answer = model(prompt).softmax(-1)
    sessions[number] = answer
    return answer.argmax(-1)


for number in range(100):
    handle(number, torch.randn(ROWS, 1024, device="cuda"))
