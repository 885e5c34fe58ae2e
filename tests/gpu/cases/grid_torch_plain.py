# SPDX-License-Identifier: Apache-2.0
# A batch of 70,000 through an operator that has a block for every element of the batch along z.
# expect: cause=launch-config-grid-limit certainty=certain,likely exit=1
# needs: torch
import torch
import torch.nn.functional as F

x = torch.randn(70_000, 1, 4, 4, device="cuda")
y = F.fractional_max_pool2d(x, kernel_size=2, output_size=2)  # <- here
print(y.shape)
