# SPDX-License-Identifier: Apache-2.0
# is_available() is False and the program ends with 0: a note says why.
# expect-note: cause=visible-devices-wrong exit=0
# needs: torch
# env: CUDA_VISIBLE_DEVICES=99
# same-output
import torch

print("available", torch.cuda.is_available())
device = "cuda" if torch.cuda.is_available() else "cpu"
print(torch.ones(2, device=device).sum().item())
