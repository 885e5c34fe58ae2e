# SPDX-License-Identifier: Apache-2.0
# float32 by float16.
# expect: cause=dtype-mismatch certainty=certain,likely exit=1
# needs: torch
import torch


def project(x, w):
    return x @ w  # <- here


project(torch.ones(4, 8, device="cuda"), torch.ones(8, 4, device="cuda", dtype=torch.float16))
