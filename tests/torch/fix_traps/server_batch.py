# SPDX-License-Identifier: Apache-2.0
# label: oom-capacity
# fix: words
"""A server without gradients, with a batch that does not fit: gradient accumulation is no way out."""
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4096, 4096) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@torch.no_grad()
def generate(model, requests):
    return model(torch.randn(requests, 4096, device="cuda")).argmax(1).tolist()


model = Model().cuda().eval()
for requests in (16, 64, 400000):
    generate(model, requests)
