# SPDX-License-Identifier: Apache-2.0
# A wrong layout makes the number of blocks negative.
# expect: cause=launch-config-bad-shape exit=1 kernel=touch
# needs: torch
import torch
from helpers.kernels import load

touch = load()
x = torch.zeros(3, 224, device="cuda")
halo = 8
touch(grid=(x.shape[0] - halo, 1, 1), block=(32, 1, 1), args=[x, x.numel()])  # <- here
