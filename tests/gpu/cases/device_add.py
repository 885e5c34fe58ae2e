# SPDX-License-Identifier: Apache-2.0
# An elementwise operation with operands on two devices, in a helper called through map().
# expect: cause=tensor-device-mismatch certainty=certain,likely exit=1
# needs: torch
import torch

bias = torch.ones(4)


def shift(x):
    return x + bias  # <- here


print(list(map(shift, [torch.ones(4, device="cuda")])))
