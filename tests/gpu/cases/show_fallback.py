# SPDX-License-Identifier: Apache-2.0
# A program that falls back to the CPU works exactly as it does without cuwhy.
# expect-note: cause=oom-request-too-large exit=0
# needs: torch
# same-output
import torch


def build(device):
    rows = 1 << 40 if device == "cuda" else 1 << 4
    return torch.ones(rows, 4, device=device)  # <- note


try:
    x = build("cuda")
except RuntimeError as error:
    print("falling back:", str(error).split(".")[0])
    x = build("cpu")
print(x.device, x.sum().item())
