# SPDX-License-Identifier: Apache-2.0
# Recursion that is much too deep.
# expect: cause=kernel-stack-overflow certainty=certain exit=1 kernel=descend
# needs: torch cupy
import numpy as np
import torch
from helpers import kernels

descend = kernels.get("descend")


def search(tree, depth):
    descend((1,), (32,), (tree.data_ptr(), np.int32(depth)))  # <- here


tree = torch.zeros(32, device="cuda")
search(tree, 1)
print(tree.isfinite().all().item())
search(tree, 100000)
tree = tree + 1
print(tree.isfinite().all().item())
