# SPDX-License-Identifier: Apache-2.0
# A mode that sees every question about a tensor is on: nothing is asked.
# expect: cause=oom-request-too-large exit=1
# tensors: -
# needs: torch
import torch

torch.set_default_device("cuda")
x = torch.ones(4)
y = torch.empty(10 ** 12)  # <- here
