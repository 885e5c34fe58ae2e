# SPDX-License-Identifier: Apache-2.0
# A view that the number of elements does not allow.
# expect: cause=shape-mismatch certainty=certain,likely exit=1
# needs: torch
import torch


def split_heads(x, heads):
    return x.view(2, heads, -1)  # <- here


split_heads(torch.ones(2, 16, device="cuda"), 5)
