# SPDX-License-Identifier: Apache-2.0
# 32 x 64 threads: each dimension fits, the product does not.
# expect: cause=launch-config-block-limit certainty=certain,likely exit=1 kernel=touch
# needs: torch
import torch
from helpers.kernels import load

touch = load()
x = torch.zeros(64, 32, device="cuda")
touch(grid=(1, 1, 1), block=(32, 64, 1), args=[x, x.numel()])  # <- here
