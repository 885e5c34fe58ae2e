# SPDX-License-Identifier: Apache-2.0
# A program that dies of something that has nothing to do with CUDA.
# expect-silent: exit=1
# needs: torch
import torch

x = torch.ones(4, device="cuda")
print(x.sum().item())
raise ValueError("the configuration has no learning rate")
