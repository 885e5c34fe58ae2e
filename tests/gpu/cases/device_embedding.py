# SPDX-License-Identifier: Apache-2.0
# The index is on the GPU, the table on the CPU.
# expect: cause=tensor-device-mismatch certainty=certain,likely exit=1
# needs: torch
import torch
import torch.nn as nn


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids):
        return self.table(ids)  # <- here


Tokens()(torch.tensor([1, 2, 3], device="cuda"))
