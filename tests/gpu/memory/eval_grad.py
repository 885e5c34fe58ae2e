# SPDX-License-Identifier: Apache-2.0
# Inference with gradients on: all activations of a deep model are kept for a backward that never comes.
# expect: cause=oom-eval-without-no-grad certainty=certain,likely exit=1
# needs: torch
# alone
import torch
import torch.nn as nn

layers = nn.ModuleList(nn.Linear(2048, 2048) for _ in range(200)).cuda()


def predict(x):
    for layer in layers:
        x = torch.relu(layer(x))  # <- here  <- culprit
    return x


print(predict(torch.randn(131072, 2048, device="cuda")).mean().item())
