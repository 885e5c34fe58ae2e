# SPDX-License-Identifier: Apache-2.0
# One operand was left on the CPU.
# expect: cause=tensor-device-mismatch certainty=certain,likely exit=1
# needs: torch
import torch


def attend(q, k):
    return q @ k.T  # <- here


attend(torch.ones(4, 8, device="cuda"), torch.ones(4, 8))
