# SPDX-License-Identifier: Apache-2.0
# PTX of a version that no driver knows yet.
# expect: cause=ptx-newer-than-driver certainty=certain,likely exit=1 code=222
# needs: torch
import torch
from torch.cuda._utils import _cuda_load_module

PTX = """
.version 99.0
.target sm_80
.address_size 64
.visible .entry touch() { ret; }
"""
torch.zeros(1, device="cuda")
_cuda_load_module(PTX, ["touch"])  # <- here
