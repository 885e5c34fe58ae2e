# SPDX-License-Identifier: Apache-2.0
# 3 against 4 elements.
# expect: cause=shape-mismatch certainty=certain,likely exit=1
# needs: torch
import torch


def residual(x, y):
    return x + y  # <- here


residual(torch.ones(3, device="cuda"), torch.ones(4, device="cuda"))
