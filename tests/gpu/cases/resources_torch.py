# SPDX-License-Identifier: Apache-2.0
# The same kernel through PyTorch's run-time compiler.
# expect: cause=too-many-resources certainty=certain,likely exit=1 kernel=heavy
# needs: torch nvcc cupy
import torch
from resources_cupy import HEAVY

heavy = torch.cuda._compile_kernel(HEAVY, "heavy")
data = torch.zeros(1024, device="cuda")
heavy(grid=(1, 1, 1), block=(1024, 1, 1), args=[data, 4])  # <- here
