# SPDX-License-Identifier: Apache-2.0
# A wrong layout makes the number of blocks negative.
# expect: cause=launch-config-bad-shape exit=1 kernel=touch
# needs: torch
import torch
from torch.cuda._utils import _cuda_load_module

PTX = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry touch(.param .u64 data, .param .u32 count) { ret; }
"""
x = torch.zeros(3, 224, device="cuda")
touch = _cuda_load_module(PTX, ["touch"])["touch"]
halo = 8
touch(grid=(x.shape[0] - halo, 1, 1), block=(32, 1, 1), args=[x, x.numel()])  # <- here
