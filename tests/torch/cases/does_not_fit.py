# SPDX-License-Identifier: Apache-2.0
# The same model with its gradients does not fit on a card of 40 GB.
# expect: cause=oom-capacity|oom-request-too-large|oom-growth exit=1
# needs: torch
# gpu: sim:a100-40gb
import torch

with torch.device("meta"):
    model = torch.nn.Sequential(*(torch.nn.Linear(16384, 16384, dtype=torch.bfloat16) for _ in range(52)))
model.to_empty(device="cuda")
model(torch.zeros(8, 16384, dtype=torch.bfloat16, device="cuda")).sum().backward()  # <- here
