# SPDX-License-Identifier: Apache-2.0
# A half-precision model with a single-precision input.
# expect: cause=dtype-mismatch certainty=certain,likely exit=1
# needs: torch
import torch
import torch.nn as nn

model = nn.Conv2d(3, 8, 3).cuda().half()
model(torch.ones(2, 3, 8, 8, device="cuda"))  # <- here
