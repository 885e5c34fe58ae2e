# SPDX-License-Identifier: Apache-2.0
# Growth with expandable segments: the advice must not name a setting that is already on.
# expect: cause=oom-growth certainty=certain,likely exit=1
# env: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
# needs: torch
# alone
import torch

log = []
weight = torch.randn(8192, 8192, device="cuda")
with torch.no_grad():
    for step in range(100000):
        scratch = weight @ weight
        log.append(scratch.softmax(-1))  # <- here  <- culprit
